"""Results from files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..statistics.nulls import NULLS
from ..statistics.ustatistic import Components
from .base import CHECKED, READABLE, SCHEMA, TestResult
from .comparison import ComparisonResult
from .details import Diagnostics, Unconverged, Words
from .fit import GoodnessOfFitResult
from .mmd import MMDResult
from .plausibility import check_record, check_result
from .ranking import RankResult
from .records import MissingClass, decode, record_checksum

RECORDS = (ComparisonResult, MMDResult, GoodnessOfFitResult, RankResult, Components, Diagnostics, Unconverged, Words)
KINDS: dict[str, type] = {kind.__name__: kind for kind in RECORDS}


def load_result(path: str | Path):
    """Read a result written by ``to_json``. A file that was cut, changed or damaged since is refused.

    The module of a null distribution of your own must be imported before.
    """
    try:
        record = json.loads(
            Path(path).read_text(encoding="utf-8"), object_pairs_hook=without_doubles, parse_constant=refuse_constant
        )
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{path}: expected a result written by to_json; it is not JSON ({error}). Check the file.") from error
    if not isinstance(record, dict) or "result" not in record or record.get("schema") not in READABLE:
        raise ValueError(f"{path}: expected a result of schema {SCHEMA} written by to_json; got something else. Check the file.")
    try:
        if ("checksum" in record or record["schema"] >= CHECKED) and record.get("checksum") != record_checksum(record):
            raise ValueError("the content is not what was written")
        result = decode(record["result"], NULLS | KINDS)
        if not isinstance(result, TestResult):
            raise TypeError("no result inside")
        check_record(result)
        check_result(result)
        return replace(result, settings=as_dict(record["settings"]), versions=as_dict(record["versions"]))
    except MissingClass as error:
        raise ValueError(
            f"{path}: the result holds a {error}, a class that is not defined here. Import the module that defines it, and load "
            "the file again."
        ) from None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: the result is damaged or from another version ({error}). Run the test again.") from error


def as_dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("settings or versions are no dictionary")
    return value


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice in one record")
    return found


def refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")

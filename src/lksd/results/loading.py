"""Results from files, and whether what a file says can be one."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..statistics.nulls import NULLS, Bootstrap, NullDistribution
from ..statistics.ustatistic import Components
from .base import CHECKED, READABLE, SCHEMA, MissingClass, TestResult, decode, record_checksum
from .choice import Choice
from .comparison import ComparisonResult, MMDResult
from .consistency import check_ranges, check_result, need
from .details import Diagnostics, Pointwise, Unconverged, Words
from .fit import GoodnessOfFitResult
from .ranking import RankResult

RECORDS = (
    Choice,
    ComparisonResult,
    MMDResult,
    GoodnessOfFitResult,
    RankResult,
    Components,
    Diagnostics,
    Pointwise,
    Unconverged,
    Words,
)
KINDS: dict[str, type] = {kind.__name__: kind for kind in RECORDS}
NUMBER = (int, float)
TYPES: dict[str, Any] = {
    "float": NUMBER,
    "int": int,
    "bool": bool,
    "str": str,
    "np.ndarray": np.ndarray,
    "Any": NUMBER,
    "Components": Components,
    "NullDistribution": NullDistribution,
    "ComparisonResult": ComparisonResult,
    "RankResult": RankResult,
    "Choice": Choice,
    "MMDResult": MMDResult,
    "Diagnostics": Diagnostics,
    "Pointwise": Pointwise,
    "Beside": (ComparisonResult, MMDResult),
    "Words": Words,
}


def load_result(path: str | Path):
    """Read a result written by ``to_json``. A file that was cut, changed or damaged since is
    refused.

    The module of a null distribution of your own must be imported before.
    """
    try:
        record = json.loads(
            Path(path).read_text(encoding="utf-8"),
            object_pairs_hook=without_doubles,
            parse_constant=refuse_constant,
        )
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"{path}: expected a result written by to_json; it is not JSON ({error}). Check the "
            "file."
        ) from error
    if (
        not isinstance(record, dict)
        or "result" not in record
        or record.get("schema") not in READABLE
    ):
        raise ValueError(
            f"{path}: expected a result of schema {SCHEMA} written by to_json; got something else. "
            "Check the file."
        )
    try:
        if "checksum" in record or record["schema"] >= CHECKED:
            need(
                record.get("checksum") == record_checksum(record),
                "the content is not what was written",
            )
        result = decode(record["result"], NULLS | KINDS)
        need(isinstance(result, TestResult), "no result inside")
        check_record(result)
        beside = {name: record[name] for name in ("settings", "versions")}
        need(
            all(isinstance(one, dict) for one in beside.values()),
            "settings or versions are no dictionary",
        )
        result = replace(result, **beside)
        check_result(result)
        return result
    except MissingClass as error:
        raise ValueError(
            f"{path}: the result holds a {error}, a class that is not defined here. Import the "
            "module that defines it, and load the file again."
        ) from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(
            f"{path}: the result is damaged or from another version ({error}). Run the test again."
        ) from error


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    need(len(found) == len(pairs), "a name occurs twice in one record")
    return found


def refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def check_record(record: Any) -> None:
    """Every field of the type that it is declared with, also in the records inside."""
    if isinstance(record, tuple):
        if hasattr(record, "_asdict"):
            need(
                all(isinstance(one, NUMBER) for one in record), f"{short(record)} holds no numbers"
            )
        for one in record:
            check_record(one)
    if not is_dataclass(record) or not type(record).__module__.startswith("lksd."):
        return
    for field in fields(record):
        value, kind = getattr(record, field.name), str(field.type)
        if "beside" in field.metadata:
            continue
        need(is_a(value, kind), f"{field.name} is {short(value)}, where {kind} is expected")
        check_ranges(field.name, value)
        check_record(value)
    if isinstance(record, Words):
        need(
            record.ids.shape == record.contributions.shape, "words and their parts differ in number"
        )
        need(
            record.ids.ndim == 1 and len(record.names) in (0, len(record.ids)),
            "words and their names differ in number",
        )
    if isinstance(record, Bootstrap):
        values = record.replicates
        need(values and all(a <= b for a, b in pairwise(values)), "the replicates are not in order")


def is_a(value: Any, kind: str) -> bool:
    """Whether a value is of a type as it is written in a record: a name, several with |, or a tuple
    of one.
    """
    if " | " in kind:
        return any(is_a(value, one) for one in kind.split(" | "))
    if kind == "None":
        return value is None
    if kind.startswith("tuple["):
        inner = kind.removeprefix("tuple[").removesuffix("]").split(",")[0].strip()
        return (
            isinstance(value, tuple)
            and not hasattr(value, "_asdict")
            and all(is_a(one, inner) for one in value)
        )
    if kind != "bool" and isinstance(value, bool):
        return False
    return isinstance(value, TYPES.get(kind, object))


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."

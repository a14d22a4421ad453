"""Results from files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from .calibration import Bootstrap, Conservative, Edgeworth, Steadied
from .details import Diagnostics, Unconverged, Words
from .fit_result import GoodnessOfFitResult
from .rank_result import RankResult
from .records import decode
from .results import SCHEMA, ComparisonResult, MMDResult, TestResult
from .ustatistic import Components

KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        ComparisonResult,
        MMDResult,
        GoodnessOfFitResult,
        RankResult,
        Edgeworth,
        Bootstrap,
        Conservative,
        Steadied,
        Components,
        Diagnostics,
        Unconverged,
        Words,
    )
}


def load_result(path: str | Path):
    """Read a result written by ``to_json``."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected a result written by to_json; it is not JSON ({error}). Check the file.") from error
    if not isinstance(record, dict) or "result" not in record or record.get("schema") != SCHEMA:
        raise ValueError(f"{path}: expected a result of schema {SCHEMA} written by to_json; got something else. Check the file.")
    try:
        result = decode(record["result"], KINDS)
        if not isinstance(result, TestResult):
            raise TypeError("no result inside")
        return replace(result, settings=dict(record["settings"]), versions=dict(record["versions"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: the result is damaged or from another version ({error}). Run the test again.") from error

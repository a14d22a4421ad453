"""Frozen records as plain JSON and back, and the options of a call as plain values."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from .._storage import checksum
from .._validation import column_names
from ..scores import ScoreEstimate

BESIDE = {"beside": True}  # metadata of a field that is written beside the record, not inside
RECORD = "record"  # the entry that tells a record from everything else, and names its type


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    return (
        ("python", platform.python_version()),
        *((name, version(name)) for name in ("lksd", "jax", "numpy", "scipy")),
    )


def versions() -> dict[str, str]:
    """What is needed to get the digits again."""
    return dict(_versions())


class MissingClass(LookupError):
    """A file names a class that is not defined in this process."""


def as_record(value: Any, inside: tuple[str, ...]) -> dict[str, Any]:
    """The name of the record's type, and its fields."""
    name = type(value).__name__
    if RECORD in inside:
        raise ValueError(
            f"{name}: a field called {RECORD!r} would hide the record's type. Rename it."
        )
    return {RECORD: name, **{name: encode(getattr(value, name)) for name in inside}}


def encode(value: Any) -> Any:
    """Records, arrays and non-finite numbers as plain JSON."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return as_record(value, value._fields)  # type: ignore[attr-defined]
    if is_dataclass(value):
        return as_record(
            value, tuple(f.name for f in fields(value) if f.init and "beside" not in f.metadata)
        )
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return encode(value.item())
    if isinstance(value, np.ndarray):
        if np.issubdtype(value.dtype, np.integer):
            return {"integers": value.tolist()}
        if value.ndim > 1:
            return {"rows": [encode(row) for row in value]}
        return {"array": [encode(float(entry)) for entry in value]}
    if isinstance(value, (tuple, list)):
        return [encode(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        "to_json: expected numbers, strings, arrays, and tuples or frozen dataclasses of these in "
        f"a result; got {type(value).__name__}. Make it one of these."
    )


def decode(value: Any, kinds: Mapping[str, type]) -> Any:
    """The inverse of ``encode``, for records of these kinds."""
    if isinstance(value, list):
        return tuple(decode(entry, kinds) for entry in value)
    if not isinstance(value, dict):
        return value
    if RECORD in value:  # first, since its fields may have any other name
        if value[RECORD] not in kinds:
            raise MissingClass(value[RECORD])
        arguments = {name: decode(part, kinds) for name, part in value.items() if name != RECORD}
        return kinds[value[RECORD]](**arguments)
    if value.keys() == {"float"}:
        return float(value["float"])
    if value.keys() == {"integers"}:
        return read_only(np.array(value["integers"], dtype=np.int64))
    if value.keys() == {"rows"}:
        return read_only(np.stack([decode(row, kinds) for row in value["rows"]]))
    if value.keys() == {"array"}:
        return read_only(
            np.array([decode(entry, kinds) for entry in value["array"]], dtype=np.float64)
        )
    raise ValueError(
        "expected a record, an array or a number; got the entries "
        f"{', '.join(sorted(value)) or 'of nothing'}"
    )


def record_checksum(record: dict[str, Any]) -> str:
    """Of a record as it is after it was written and read."""
    kept = {name: value for name, value in record.items() if name != "checksum"}
    return checksum(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode())


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def as_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Every option as it was given; objects by their text, arrays by their shape."""
    return dict(zip(options, map(plain, options.values()), strict=True))


def plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, ScoreEstimate):
        return f"scores {value.method}"
    if isinstance(value, (tuple, list)) and len(value) <= 20:
        return [plain(entry) for entry in value]
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        return f"array of shape {value.shape}" if value.shape else value.item()
    if column_names(value) is not None:
        return f"data frame of shape {tuple(value.shape)}"
    return getattr(value, "__name__", str(value))

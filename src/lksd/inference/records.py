"""Frozen records as plain JSON, and back."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from .._storage import checksum

BESIDE = {"beside": True}  # metadata of a field that is written beside the record, not inside


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    return (("python", platform.python_version()), *((name, version(name)) for name in ("lksd", "jax", "numpy", "scipy")))


def versions() -> dict[str, str]:
    """What is needed to get the digits again."""
    return dict(_versions())


def encode(value: Any) -> Any:
    """Records, arrays and non-finite numbers as plain JSON."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {"record": type(value).__name__, **{name: encode(part) for name, part in value._asdict().items()}}
    if is_dataclass(value):
        inside = [f.name for f in fields(value) if "beside" not in f.metadata]
        return {"record": type(value).__name__, **{name: encode(getattr(value, name)) for name in inside}}
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
    return value


def decode(value: Any, kinds: Mapping[str, type]) -> Any:
    """The inverse of ``encode``, for records of these kinds."""
    if isinstance(value, list):
        return tuple(decode(entry, kinds) for entry in value)
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "integers" in value:
        return read_only(np.array(value["integers"], dtype=np.int64))
    if "rows" in value:
        return read_only(np.stack([decode(row, kinds) for row in value["rows"]]))
    if "array" in value:
        return read_only(np.array([decode(entry, kinds) for entry in value["array"]], dtype=np.float64))
    arguments = {name: decode(part, kinds) for name, part in value.items() if name != "record"}
    return kinds[value["record"]](**arguments)


def record_checksum(record: dict[str, Any]) -> str:
    """Of a record as it is after it was written and read."""
    kept = {name: value for name, value in record.items() if name != "checksum"}
    return checksum(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode())


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array

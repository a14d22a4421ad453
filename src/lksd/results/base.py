"""What all results share: frozen records with a table as their text and JSON as their file."""

from __future__ import annotations

import json
import math
import platform
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._storage import checksum, write_whole
from .._text import Table, number
from .._validation import check_probability, column_names
from ..scores import ScoreEstimate
from ..statistics.nulls import NullDistribution
from .details import ROLES

# the newest, those that are read, and the first with a checksum
SCHEMA, READABLE, CHECKED = 4, (3, 4), 4
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


@dataclass(frozen=True, eq=False, kw_only=True)
class TestResult(ABC):
    """What every test has; the subclasses say what was compared.

    ``settings`` are the options of the call as given, ``versions`` those of the packages that
    computed. ``withheld`` is a reason for which no verdict is given; ``reject`` is then False.
    """

    statistic: float
    pvalue: float
    reject: bool
    alpha: float
    n: int
    kernel: str
    seed: int
    withheld: str | None = None
    settings: dict[str, Any] = field(default_factory=dict, metadata=BESIDE)
    versions: dict[str, str] = field(default_factory=versions, metadata=BESIDE)

    __test__ = False  # not a test class, whatever its name suggests to a test runner

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        return self._verdict if self.withheld is None else f"Withheld: {self.withheld}"

    @property
    @abstractmethod
    def _verdict(self) -> str:
        """The verdict, if it is not withheld."""

    @property
    @abstractmethod
    def question(self) -> str:
        """The hypotheses in words."""

    @property
    @abstractmethod
    def summary(self) -> Table:
        """The estimates as a table."""

    def to_json(self, path: str | Path | None = None) -> str:
        """The result as JSON text, also written to ``path`` if one is given; ``lksd.load_result``
        reads it.
        """
        record = {
            "schema": SCHEMA,
            "kind": type(self).__name__,
            "sentence": self.sentence,
            "settings": self.settings,
            "versions": self.versions,
            "result": encode(self),
        }
        record["checksum"] = record_checksum(record)
        text = json.dumps(record, indent=1, allow_nan=False)
        if path is not None:
            write_whole(path, text)
        return text

    def _repr_html_(self) -> str:
        from ..report.rendering import result_fragment

        return result_fragment(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class DifferenceResult(TestResult):
    """A test on the difference of two discrepancies.

    ``pvalue_reverse`` is the p-value of the same test with the two models exchanged; None in files
    that were written without it. ``names`` are what the models P and Q are called.
    """

    difference: float
    standard_error: float
    # what the statistic and the interval are made of: the difference, or its regularised form
    estimate: float
    null: NullDistribution
    margin: float = 0.0
    pvalue_reverse: float | None = None
    names: tuple[str, str] = ROLES

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval for the difference, with the test's calibration."""
        tail = (1 - check_probability("level", level)) / 2
        if self.standard_error == self.difference == 0:
            return (0.0, 0.0)
        if not self.standard_error > 0:
            return (-math.inf, math.inf)
        return (
            self.estimate - self.standard_error * self.null.upper_quantile(tail),
            self.estimate - self.standard_error * self.null.lower_quantile(tail),
        )

    @property
    def direction(self) -> str | None:
        """The model that this hypothesis alone shows to be the better: "P", "Q", or None."""
        forward, reverse = self.pvalue, self.pvalue_reverse
        if not self.smaller_pvalue <= self.alpha:
            return None
        if reverse is None or reverse == forward:  # both sides are tested as one
            return "Q" if self.statistic > 0 else "P" if self.statistic < 0 else None
        return "Q" if forward < reverse else "P"

    def name(self, role: str) -> str:
        """What the model in this role, "P" or "Q", is called."""
        return self.names[ROLES.index(role)]

    def better_than(self, role: str) -> str:
        """The words for the model in this role fitting better than the other."""
        better, worse = self.names if role == "P" else self.names[::-1]
        return f"{better} fits better than {worse}"

    @property
    def subtraction(self) -> str:
        """The difference by the names of the models: "P - Q" where they have none."""
        return " - ".join(self.names)

    @property
    def smaller_pvalue(self) -> float:
        """The smaller p-value of the two directions."""
        return self.pvalue if self.pvalue_reverse is None else min(self.pvalue, self.pvalue_reverse)

    @property
    def significance(self) -> tuple[float, float]:
        """What sorts hypotheses, the most significant in either direction first."""
        error = self.standard_error
        return self.smaller_pvalue, -abs(self.estimate / error) if error > 0 else 0.0

    def _estimates(
        self, measure: str, p: tuple[float, float | None], q: tuple[float, float | None]
    ) -> Table:
        """Both models' values of a measure with their errors, where these are known, and the
        difference with its interval.
        """
        low, high = self.confidence_interval()
        models = [
            (name, number(value), "" if error is None else number(error), "")
            for name, (value, error) in zip(self.names, (p, q), strict=True)
        ]
        last = (
            self.subtraction,
            number(self.difference),
            number(self.standard_error),
            f"[{number(low)}, {number(high)}]",
        )
        return Table(("", measure, "std. error", "95 % interval"), [*models, last])


# Records as plain JSON and back, and the options of a call as plain values --------------------


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

"""What all results share: frozen records with a table as their text and JSON as their file."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._storage import write_whole
from .._text import Table, number
from .._validation import check_probability
from ..statistics.nulls import NullDistribution
from .details import ROLES
from .records import BESIDE, encode, record_checksum, versions

# the newest, those that are read, and the first with a checksum
SCHEMA, READABLE, CHECKED = 4, (3, 4), 4


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

"""What the tests return: frozen records with a table as their text and JSON as their file."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from .._text import Table, number, pvalue_cell, pvalue_text, visible
from .._validation import MINIMUM_OBSERVATIONS, check_probability
from . import ustatistic
from .calibration import NullDistribution
from .details import Diagnostics, Words
from .records import BESIDE, encode, versions
from .ustatistic import Components

SCHEMA = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class TestResult(ABC):
    """What every test has; the subclasses say what was compared.

    ``settings`` are the options of the call as given, ``versions`` those of the packages that computed.
    """

    statistic: float
    pvalue: float
    reject: bool
    alpha: float
    n: int
    kernel: str
    seed: int
    settings: dict[str, Any] = field(default_factory=dict, metadata=BESIDE)
    versions: dict[str, str] = field(default_factory=versions, metadata=BESIDE)

    __test__ = False  # not a test class, whatever its name suggests to a test runner

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The verdict in words."""

    @property
    @abstractmethod
    def question(self) -> str:
        """The hypotheses in words."""

    @property
    @abstractmethod
    def summary(self) -> Table:
        """The estimates as a table."""

    def to_json(self, path: str | Path | None = None) -> str:
        """The result as JSON text, also written to ``path`` if one is given; ``lksd.load_result`` reads it."""
        record = {
            "schema": SCHEMA,
            "kind": type(self).__name__,
            "sentence": self.sentence,
            "settings": self.settings,
            "versions": self.versions,
            "result": encode(self),
        }
        text = json.dumps(record, indent=1, allow_nan=False)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _repr_html_(self) -> str:
        from ..report.fragment import result_fragment

        return result_fragment(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class DifferenceResult(TestResult):
    """A test on the difference of two discrepancies."""

    difference: float
    standard_error: float
    estimate: float  # what the statistic and the interval are made of: the difference, or its regularised form
    null: NullDistribution
    margin: float = 0.0

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval for the difference of the squared discrepancies, with the test's calibration."""
        tail = (1 - check_probability("level", level)) / 2
        if self.standard_error == self.difference == 0:
            return (0.0, 0.0)
        if not self.standard_error > 0:
            return (-math.inf, math.inf)
        return (
            self.estimate - self.standard_error * self.null.upper_quantile(tail),
            self.estimate - self.standard_error * self.null.lower_quantile(tail),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonResult(DifferenceResult):
    """The answer to "does Q fit better than P?".

    Attributes
    ----------
    statistic, pvalue, reject
        T = sqrt(n) U / sqrt(v), its p-value, and the decision at level ``alpha``.
    difference, standard_error
        U(P) - U(Q), positive when Q fits better, and sqrt(v/n).
    margin
        The difference that the null hypothesis allows; ``statistic`` is the distance from it.
    variance
        The estimator that was used; "regularised" also where ``variance="auto"`` has chosen it.
    ksd_p, ksd_q, ksd_p_error, ksd_q_error
        Squared discrepancies (U-statistics, so they may be negative) and their standard errors.
    contributions : (n,) array
        What each observation adds to ``difference``.
    words : Words or None
        What each word adds to it, where discrete models were given.
    order : (L,) array or None
        The order of the values in a cyclic operator; None is their own.
    tests : tuple of ComparisonResult
        One entry for each kernel and operator where several were tested; p-values are adjusted.
    rejected : tuple of str
        The null hypotheses that are rejected, where several were tested.
    mmd : MMDResult or None
        The relative MMD with ``also_mmd=True``; its p-value is adjusted too.
    indistinguishable : bool
        Whether the models' scores agree to rounding on this data.
    diagnostics : Diagnostics or None
        How the scores were estimated, where models were given.
    notes : tuple of str
        What a reader should know about how this result came about.
    withheld : str or None
        Why there is no verdict, where there is none; ``reject`` is then False.
    """

    ksd_p: float
    ksd_q: float
    ksd_p_error: float
    ksd_q_error: float
    alternative: str
    variance: str
    correction: str
    operator: str
    contributions: np.ndarray
    zeta: Components
    notes: tuple[str, ...] = ()
    tests: tuple[ComparisonResult, ...] = field(default=())
    diagnostics: Diagnostics | None = None
    indistinguishable: bool = False
    words: Words | None = None
    order: np.ndarray | None = None
    mmd: MMDResult | None = None
    withheld: str | None = None

    @property
    def rejected(self) -> tuple[str, ...]:
        """The null hypotheses that are rejected, by discrepancy, operator and kernel."""
        found = [f"KSD, {one.operator}, {one.kernel}" for one in self.tests or (self,) if one.reject]
        return (*found, f"MMD, {self.mmd.kernel}") if self.mmd is not None and self.mmd.reject else tuple(found)

    def documents(self, count: int = 5) -> list[tuple[int, float]]:
        """The observations that decide, with their contributions, the largest first."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")[:count]
        return [(int(i), float(self.contributions[i])) for i in order]

    @property
    def calibration(self) -> str:
        return str(self.null)

    def required_n(self, power: float = 0.8) -> int | float:
        """How many new observations would reject with probability ``power`` if the true difference equals the estimate."""
        return self._required_n(self.difference, power)

    def required_n_interval(self, power: float = 0.8, level: float = 0.95) -> tuple[int | float, int | float]:
        """``required_n`` at the two ends of the confidence interval of the difference."""
        low, high = self.confidence_interval(level)
        sizes = sorted(self._required_n(end, power) for end in (low, high))
        return (sizes[0], math.inf if low <= 0 <= high else sizes[1])

    def power(self, n: int) -> float:
        """The probability that ``n`` new observations reject if the true difference equals the estimate; see ``required_n``."""
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < MINIMUM_OBSERVATIONS:
            raise ValueError(f"n: expected an integer of at least {MINIMUM_OBSERVATIONS}; got {n!r}. Give a sample size.")
        difference, zeta, threshold = self._pilot(self.difference)
        error = math.sqrt(max(ustatistic.hoeffding_variance(int(n), zeta), 0.0))
        if error == 0:
            return float(difference > 0)
        return float(ndtr(difference / error - threshold))

    def _required_n(self, difference: float, power: float) -> int | float:
        power = check_probability("power", power)
        if not self.standard_error > 0:
            return math.inf
        difference, zeta, threshold = self._pilot(difference)
        return ustatistic.required_n(difference, zeta, threshold + float(ndtri(power)))

    def _pilot(self, difference: float) -> tuple[float, Components, float]:
        """The difference, the variance components and the threshold that a new sample is planned with."""
        two_sided, zeta = self.alternative == "two-sided", self.zeta
        if zeta.zeta_1 <= 0:  # where the unbiased estimate is not positive, what the test's own variance says
            zeta = zeta._replace(zeta_1=self.n * self.standard_error**2 / 4)
        beyond = (abs(difference) if two_sided else difference) - self.margin
        return beyond, zeta, float(-ndtri(self.alpha / 2 if two_sided else self.alpha))

    def plot(self, ax=None):
        """A forest plot of both discrepancies and their difference (matplotlib axes)."""
        from ..report.plots import plot_comparison

        return plot_comparison(self, ax)

    def plot_contributions(self, ax=None):
        """What each observation adds to the difference, sorted; for discrete models also the words that decide."""
        from ..report.plots import plot_contributions

        return plot_contributions(self, ax)

    def plot_diagnostics(self, axes=None):
        """R-hat and effective sample size of the chains over the observations (two matplotlib axes)."""
        from ..report.plots import plot_diagnostics

        return plot_diagnostics(self, axes)

    def plot_power(self, ax=None, power: float = 0.8):
        """The power of a new sample against its size, if the true difference equals the estimate."""
        from ..report.plots import plot_power

        return plot_power(self, ax, power)

    def to_html(self, path: str | Path, *, names: tuple[str, str] = ("P", "Q"), observations=None) -> None:
        """Write a report: one file that needs nothing else.

        Parameters
        ----------
        path : str or Path
        names : tuple of str
            What P and Q are, in words.
        observations : optional
            The data, so that the observations which decide are shown: (n, D) numbers or a data frame; (n, height, width) or
            (n, height, width, 3) images; documents as strings, lists of words, or lists of word ids.
        """
        from ..report.page import write_report

        write_report(self, path, names, observations)

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.withheld is not None:
            return f"Withheld: {self.withheld}"
        if self.mmd is None:
            return self._verdict
        return f"By the KSD: {self._verdict} By the MMD: {self.mmd.sentence}"

    @property
    def _verdict(self) -> str:
        p = pvalue_text(self.pvalue)
        if self.indistinguishable:
            return "P and Q are indistinguishable on this data: their scores agree to rounding."
        if self.reject:
            better, worse = ("Q", "P") if self.statistic > 0 else ("P", "Q")
            return f"{better} fits better than {worse}{self._by_margin} ({p})."
        if self.alternative == "greater" and self.difference <= self.margin:
            found = f"at most {number(self.margin)}" if self.margin else "not positive"
            return f"No evidence that Q fits better than P{self._by_margin} ({p}): the estimated difference is {found}."
        size = self.required_n(0.8)
        if not self.n < size < math.inf:
            return f"Undecided ({p})."
        return (
            f"Undecided ({p}): a new sample of {size:,.0f} would reject with probability 0.8 "
            "if the true difference equals the estimate."
        )

    @property
    def _by_margin(self) -> str:
        return f" by more than {number(self.margin)}" if self.margin else ""

    @property
    def question(self) -> str:
        if self.alternative == "two-sided":
            equal = f"differ by at most {number(self.margin)}" if self.margin else "fit equally well"
            return f"H0: P and Q {equal};  H1: one fits better{self._by_margin}"
        null = f"KSD(P)^2 - KSD(Q)^2 <= {number(self.margin)}" if self.margin else "P fits at least as well as Q"
        return f"H0: {null};  H1: Q fits better{self._by_margin}"

    @property
    def summary(self) -> Table:
        low, high = self.confidence_interval()
        rows = [
            ("P", number(self.ksd_p), number(self.ksd_p_error), ""),
            ("Q", number(self.ksd_q), number(self.ksd_q_error), ""),
            ("P - Q", number(self.difference), number(self.standard_error), f"[{number(low)}, {number(high)}]"),
        ]
        return Table(("", "squared KSD", "std. error", "95 % interval"), rows)

    @property
    def hypotheses(self) -> Table:
        """The kernels and operators that were tested together."""
        tested = [(t, t.operator) for t in self.tests or (self,)] + ([(self.mmd, "MMD")] if self.mmd is not None else [])
        rows = [(f"{t.statistic:.3f}", pvalue_cell(t.pvalue), "yes" if t.reject else "no", name, t.kernel) for t, name in tested]
        return Table(("T", "adjusted p", "rejected", "operator", "kernel"), rows, left=(3, 4))

    def __str__(self) -> str:
        lines = [
            self.question,
            "",
            *self.summary.lines(),
            "",
            f"T = {self.statistic:.3f}, {pvalue_text(self.pvalue)}, n = {self.n}; {self.variance} variance",
            f"p-value  {self.calibration}",
            f"kernel   {visible(self.kernel)}",
            f"operator {visible(self.operator)}",
        ]
        if self.diagnostics is not None:
            lines += [visible(line) for line in str(self.diagnostics).splitlines()]
        if self.tests or self.mmd is not None:
            lines += ["", *self.hypotheses.lines()]
        if self.words is not None:
            rows = [
                (f"{document}", number(share), word, number(part))
                for (document, share), (word, part) in zip_longest(self.documents(), self.words.top(), fillvalue=("", math.nan))
            ]
            cells = [tuple("" if cell == "nan" else cell for cell in row) for row in rows]
            lines += ["", *Table(("document", "adds to P - Q", "word", "adds to P - Q"), cells, left=(2,)).lines()]
        lines += ["", *(f"Note: {visible(note)}" for note in self.notes), self.sentence]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class MMDResult(DifferenceResult):
    """The relative maximum mean discrepancy test (Appendix B.5), on samples from the models."""

    mmd_p: float
    mmd_q: float
    n_p: int
    n_q: int

    @property
    def sentence(self) -> str:
        p = pvalue_text(self.pvalue)
        better, worse = ("Q", "P") if self.statistic > 0 or not self.reject else ("P", "Q")
        return (
            f"{better} fits better than {worse} ({p})."
            if self.reject
            else f"No evidence that {better} fits better than {worse} ({p})."
        )

    @property
    def question(self) -> str:
        return "H0: MMD(P) <= MMD(Q);  H1: Q fits better"

    @property
    def summary(self) -> Table:
        low, high = self.confidence_interval()
        rows = [
            ("P", number(self.mmd_p), "", ""),
            ("Q", number(self.mmd_q), "", ""),
            ("P - Q", number(self.difference), number(self.standard_error), f"[{number(low)}, {number(high)}]"),
        ]
        return Table(("", "squared MMD", "std. error", "95 % interval"), rows)

    def __str__(self) -> str:
        counts = f"n = {self.n} observations, {self.n_p} from P, {self.n_q} from Q"
        lines = [
            self.question,
            "",
            *self.summary.lines(),
            "",
            f"T = {self.statistic:.3f}, {pvalue_text(self.pvalue)}; {counts}",
            f"kernel   {visible(self.kernel)}",
            "",
            self.sentence,
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class GoodnessOfFitResult(TestResult):
    """Does the model fit at all? ``statistic`` is n times the squared KSD ``ksd``."""

    ksd: float
    operator: str
    contributions: np.ndarray
    replicates: int
    notes: tuple[str, ...] = ()
    diagnostics: Diagnostics | None = None
    withheld: str | None = None

    @property
    def sentence(self) -> str:
        if self.withheld is not None:
            return f"Withheld: {self.withheld}"
        p = pvalue_text(self.pvalue)
        return f"The model does not fit the data ({p})." if self.reject else f"No evidence against the model ({p})."

    @property
    def question(self) -> str:
        return "H0: the data come from the model"

    @property
    def summary(self) -> Table:
        cells = (number(self.ksd), f"{self.statistic:.3f}", pvalue_cell(self.pvalue), f"{self.n}")
        return Table(("squared KSD", "n KSD^2", "p", "n"), [cells], left=())

    def __str__(self) -> str:
        lines = [
            self.question,
            "",
            f"squared KSD = {number(self.ksd)}, n KSD^2 = {self.statistic:.3f}, {pvalue_text(self.pvalue)}, n = {self.n}",
            f"bootstrap with {self.replicates} replicates",
            f"kernel   {visible(self.kernel)}",
            f"operator {visible(self.operator)}",
            *(visible(line) for line in (str(self.diagnostics).splitlines() if self.diagnostics else ())),
            "",
            *(f"Note: {visible(note)}" for note in self.notes),
            self.sentence,
        ]
        return "\n".join(lines)

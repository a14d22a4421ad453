"""The answer to "does Q fit better than P?", by the KSD and by the MMD."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri

from .._text import Table, number, pvalue_text, visible
from .._validation import MINIMUM_OBSERVATIONS, check_probability
from ..statistics import ustatistic
from ..statistics.ustatistic import Components
from .base import DifferenceResult
from .criteria import criteria_frame, criteria_table, hypotheses_table
from .details import (
    Diagnostics,
    Pointwise,
    Words,
    by_margin,
    criterion_lines,
    mark_withheld,
    measure_of,
    sentence_of,
)
from .mmd import MMDResult


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonResult(DifferenceResult):
    """The answer to "does Q fit better than P?".

    Attributes
    ----------
    statistic, pvalue, reject
        T = sqrt(n) U / sqrt(v), the p-value, and the decision at level ``alpha``. Where several
        hypotheses were tested together, ``pvalue`` is the smallest of all, and T with what else
        belongs to one hypothesis is that of the most significant in either direction. ``reject`` is
        False where the tests disagree, or where the verdict is withheld.
    pvalue_reverse
        The p-value for P being better than Q: the ``pvalue`` of the call with the models exchanged.
    names : tuple of str
        What the models P and Q are called: ("P", "Q") where they have no names.
    favours : str or None
        The name of the model that is shown to fit better, in either direction and whatever
        ``alternative`` is.
    disputed : bool
        Whether hypotheses that were tested together are significant in opposite directions.
    difference, standard_error
        U(P) - U(Q), positive when Q fits better, and sqrt(v/n).
    margin
        The difference that the null hypothesis allows; ``statistic`` is the distance from it.
    variance
        The estimator that was used; "regularised" also where ``variance="auto"`` has chosen it.
    criterion : str
        By which the models are compared: "ksd", or the name of an additive criterion.
    ksd_p, ksd_q, ksd_p_error, ksd_q_error
        Squared discrepancies (U-statistics, so they may be negative) and their standard errors; NaN
        where none were computed.
    loss_p, loss_q, loss_p_error, loss_q_error
        The mean losses by an additive ``criterion``, smaller where the model fits better, and their
        standard errors; NaN with the KSD.
    beside : tuple of ComparisonResult or MMDResult
        What the secondary criteria say, each in a result of its own, with p-values that are
        adjusted for all of them.
    pointwise : Pointwise or None
        The loss of each observation by each additive criterion.
    table : data frame
        A row for each criterion, the one that decides first.
    caution : str or None
        That few observations decide, where leaving them out would change the verdict.
    breakdown : int or None
        The fewest observations without which the difference would not be significant; None where it
        is not.
    contributions : (n,) array
        What each observation adds to ``difference``.
    labels : tuple of str or None
        The labels of the observations, one for each of the ``contributions``, where the rows of the
        data had some.
    kept : (n,) array or None
        The rows of the observations in the data as given, where empty documents were left out; None
        where none were.
    words : Words or None
        What each word (or value) adds to it, where discrete models were given.
    order : (L,) array or None
        The order of the values in a cyclic operator; None is their own.
    tests : tuple of ComparisonResult
        One entry for each kernel and operator where several were tested, or the MMD beside;
        p-values are adjusted.
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
    kept: np.ndarray | None = None
    labels: tuple[str, ...] | None = None
    criterion: str = "ksd"
    loss_p: float = math.nan
    loss_q: float = math.nan
    loss_p_error: float = math.nan
    loss_q_error: float = math.nan
    caution: str | None = None
    beside: tuple[Beside, ...] = ()
    pointwise: Pointwise | None = None

    @property
    def estimates(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """What the criterion says of each model, with its standard error."""
        if math.isnan(self.loss_p):
            return (self.ksd_p, self.ksd_p_error), (self.ksd_q, self.ksd_q_error)
        return (self.loss_p, self.loss_p_error), (self.loss_q, self.loss_q_error)

    @property
    def measure(self) -> str:
        """What the criterion measures, in words."""
        return measure_of(self.criterion)

    @property
    def breakdown(self) -> int | None:
        """Found by leaving out first what speaks most for the better model, by the jackknife and
        the normal distribution.
        """
        if self.direction is None:
            return None
        parts = self.n * np.sort(
            self.contributions if self.direction == "P" else -self.contributions
        )
        left = np.arange(self.n, 0, -1)
        sums, squares = (np.cumsum(part[::-1])[::-1] for part in (parts, parts**2))
        variance = np.maximum(squares - sums**2 / left, 0.0) / np.maximum(left - 1, 1)
        tail = self.alpha / 2 if self.alternative == "two-sided" else self.alpha
        shown = -sums / left - self.margin > -ndtri(tail) * np.sqrt(variance / left)
        shown[-MINIMUM_OBSERVATIONS:] = False
        return int(np.argmin(shown))

    @property
    def ksd_tests(self) -> tuple[ComparisonResult, ...]:
        """The hypothesis of each kernel and operator: this one, where there are no others."""
        return self.tests or (self,)

    @property
    def every_test(self) -> tuple[DifferenceResult, ...]:
        """All hypotheses that were tested together, the MMD among them."""
        return self.ksd_tests if self.mmd is None else (*self.ksd_tests, self.mmd)

    @property
    def disputed(self) -> bool:
        return {"P", "Q"} <= {one.direction for one in self.every_test}

    @property
    def better_role(self) -> str | None:
        """The role of the model that all tests together show to fit better: "P", "Q", or None."""
        if self.disputed or self.withheld is not None:
            return None
        return next((found for one in self.every_test if (found := one.direction)), None)

    @property
    def favours(self) -> str | None:
        return None if self.better_role is None else self.name(self.better_role)

    def with_names(self, names: Sequence[str]) -> ComparisonResult:
        """The result with the models called so, also in the tests inside."""
        if isinstance(names, str) or len(names) != 2:
            raise ValueError(
                f"names: expected two, of P and of Q; got {names!r}. Give a pair of strings."
            )
        called = (str(names[0]), str(names[1]))
        tests = tuple(one.with_names(called) for one in self.tests)
        beside = tuple(one.with_names(called) for one in self.beside)
        mmd = self.mmd and replace(self.mmd, names=called)
        return replace(self, names=called, tests=tests, beside=beside, mmd=mmd)

    @property
    def rejected(self) -> tuple[str, ...]:
        """The null hypotheses that are rejected, by discrepancy, operator and kernel; each alone,
        also where they disagree.
        """
        found = [f"KSD, {one.operator}, {one.kernel}" for one in self.ksd_tests if one.reject]
        return (
            (*found, f"MMD, {self.mmd.kernel}")
            if self.mmd is not None and self.mmd.reject
            else tuple(found)
        )

    def documents(self, count: int = 5) -> list[tuple[int, float]]:
        """The observations that decide, by their rows in the data as given, with their
        contributions, the largest first.
        """
        return [(self.row(i), float(self.contributions[i])) for i in self.deciding(count)]

    def deciding(self, count: int) -> np.ndarray:
        """The numbers of the observations with the largest contributions, the largest first."""
        return np.argsort(-np.abs(self.contributions), kind="stable")[:count]

    def row(self, number: int) -> int:
        """Where an observation stands in the data as they were given."""
        return int(number if self.kept is None else self.kept[number])

    def label(self, number: int) -> str:
        """The label of an observation; empty where there are none."""
        return "" if self.labels is None else self.labels[number]

    @property
    def calibration(self) -> str:
        return str(self.null)

    def required_n(self, power: float = 0.8) -> int | float:
        """How many new observations would reject with probability ``power`` if the true difference
        equals the estimate.
        """
        return self._required_n(self.difference, power)

    def required_n_interval(
        self, power: float = 0.8, level: float = 0.95
    ) -> tuple[int | float, int | float]:
        """``required_n`` at the two ends of the confidence interval of the difference."""
        low, high = self.confidence_interval(level)
        sizes = sorted(self._required_n(end, power) for end in (low, high))
        return (sizes[0], math.inf if low <= 0 <= high else sizes[1])

    def power(self, n: int) -> float:
        """The probability that ``n`` new observations reject if the true difference equals the
        estimate; see ``required_n``.
        """
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < MINIMUM_OBSERVATIONS:
            raise ValueError(
                f"n: expected an integer of at least {MINIMUM_OBSERVATIONS}; got {n!r}. Give a "
                "sample size."
            )
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
        """The difference, the variance components and the threshold that a new sample is planned
        with.
        """
        two_sided, zeta = self.alternative == "two-sided", self.zeta
        # where the unbiased estimate is not positive, what the test's own variance says
        if zeta.zeta_1 <= 0:
            zeta = zeta._replace(zeta_1=self.n * self.standard_error**2 / 4)
        beyond = (abs(difference) if two_sided else difference) - self.margin
        return beyond, zeta, float(-ndtri(self.alpha / 2 if two_sided else self.alpha))

    def plot(self, ax=None):
        """A forest plot of both discrepancies and their difference (matplotlib axes)."""
        from ..report.plots import plot_comparison

        return plot_comparison(self, ax)

    def plot_contributions(self, ax=None):
        """What each observation adds to the difference, sorted; for discrete models also the words
        that decide.
        """
        from ..report.plots import plot_contributions

        return plot_contributions(self, ax)

    def plot_diagnostics(self, axes=None):
        """R-hat and effective sample size of the chains over the observations (two matplotlib
        axes).
        """
        from ..report.plots import plot_diagnostics

        return plot_diagnostics(self, axes)

    def plot_power(self, ax=None, power: float = 0.8):
        """The power of a new sample against its size, if the true difference equals the
        estimate.
        """
        from ..report.plots import plot_power

        return plot_power(self, ax, power)

    def to_html(
        self, path: str | Path, *, names: tuple[str, str] | None = None, observations=None
    ) -> None:
        """Write a report: one file that needs nothing else.

        Parameters
        ----------
        path : str or Path
        names : tuple of str, optional
            What P and Q are called, instead of the ``names`` of the result.
        observations : optional
            The data, so that the observations which decide are shown: (n, D) numbers or a data
            frame; (n, height, width) or (n, height, width, 3) images; documents as strings, lists
            of words, or lists of word ids.
        """
        from ..report.page import write_report

        write_report(self if names is None else self.with_names(names), path, observations)

    @property
    def _verdict(self) -> str:
        return sentence_of(self)

    @property
    def question(self) -> str:
        p, q = self.names
        if self.alternative == "two-sided":
            equal = (
                f"differ by at most {number(self.margin)}" if self.margin else "fit equally well"
            )
            return f"H0: {p} and {q} {equal};  H1: one fits better{by_margin(self.margin)}"
        null = (
            f"{self.measure} of {p} - that of {q} <= {number(self.margin)}"
            if self.margin
            else f"{p} fits at least as well as {q}"
        )
        return f"H0: {null};  H1: {q} fits better{by_margin(self.margin)}"

    @property
    def pvalue_line(self) -> str:
        """The p-value, and the reverse one where that is the smaller."""
        more = (
            f" (reverse: {pvalue_text(self.smaller_pvalue)})"
            if self.smaller_pvalue < self.pvalue
            else ""
        )
        return mark_withheld(pvalue_text(self.pvalue) + more, self)

    @property
    def summary(self) -> Table:
        return self._estimates(self.measure, *self.estimates)

    @property
    def criteria(self) -> Table:
        """What every criterion says, the one that decides first."""
        return criteria_table(self)

    @property
    def table(self):
        """The same as a pandas data frame."""
        return criteria_frame(self)

    @property
    def hypotheses(self) -> Table:
        """The kernels and operators that were tested together."""
        return hypotheses_table(self)

    def __str__(self) -> str:
        lines = [
            self.question,
            "",
            *self.summary.lines(),
            "",
            f"T = {self.statistic:.3f}, {self.pvalue_line}, n = {self.n}; {self.variance} variance",
            f"p-value  {self.calibration}",
            *criterion_lines(self),
        ]
        if self.diagnostics is not None:
            lines += self.diagnostics.lines(self.names)
        if self.beside:
            lines += ["", *self.criteria.lines()]
        if self.tests or self.mmd is not None:
            lines += ["", *self.hypotheses.lines()]
        if self.words is not None:
            rows = [
                (f"{document}", number(share), word, number(part))
                for (document, share), (word, part) in zip_longest(
                    self.documents(), self.words.top(), fillvalue=("", math.nan)
                )
            ]
            cells = [tuple("" if cell == "nan" else cell for cell in row) for row in rows]
            (whole, part), adds = self.words.kinds, f"adds to {self.subtraction}"
            lines += ["", *Table((whole, adds, part, adds), cells, left=(2,)).lines()]
        lines += ["", *(f"Note: {visible(note)}" for note in self.notes), self.sentence]
        return "\n".join(map(visible, lines))


Beside = ComparisonResult | MMDResult

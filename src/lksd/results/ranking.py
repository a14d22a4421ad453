"""The answer to "which of these models fit best?"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._text import Table, number, pvalue_cell, pvalue_text, rhat_text, visible
from .base import TestResult
from .details import (
    LONG_NAMES,
    Diagnostics,
    Pointwise,
    by_margin,
    criterion_lines,
    mark_withheld,
    measure_of,
    short_labels,
)

LISTED = 8  # models in a sentence
NAMES = {
    "min-p": "step-down min-p",
    "max-t": "step-down max-T",
    "holm": "Holm",
    "bonferroni": "Bonferroni",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class RankResult(TestResult):
    """Models from the best to the worst, and which differences are more than chance.

    ``pvalue`` is the smallest of all, ``reject`` says whether a difference is significant that no
    other test disputes. All arrays are in the order of ``names``.

    Where several kernels and operators were tested, ``pvalues`` and all that follows from them
    (``better``, ``confidence_set``, ``disputed``, the sentence) are those of all together, while
    ``statistic``, ``names``, discrepancies, differences, intervals and selective p-values are those
    of one: the most significant of those whose first model is in the confidence set.

    Where the verdict is ``withheld``, nothing is shown: ``better`` and ``disputed`` are empty and
    all models are in the confidence set, whatever the p-values.

    Attributes
    ----------
    names : tuple of str
        The models, the one with the smallest squared discrepancy first.
    criterion : str
        By which the models are compared: "ksd", or the name of an additive criterion.
    ksd, ksd_errors : (M,) arrays
        Squared discrepancies (U-statistics, so they may be negative) and their standard errors; NaN
        where none were computed.
    beside : tuple of RankResult
        The rankings by the secondary criteria.
    caution : str or None
        That few observations decide, where leaving them out would change the ranking.
    pointwise : Pointwise or None
        The loss of each observation by each additive criterion; the models in the order in which
        they were given.
    losses, loss_errors : (M,) arrays or None
        The mean losses by an additive ``criterion`` and their standard errors; None with the KSD.
    differences, standard_errors : (M, M) arrays
        Entry [i, j] is KSD_i^2 - KSD_j^2, or the difference of the mean losses, positive where j
        fits better, and its standard error.
    pvalues : (M, M) array
        Entry [i, j] for H0: i fits at least as well as j (by every kernel and operator); adjusted
        for all pairs (and for them).
    lower : (M, M) array
        Lower ends of simultaneous intervals of level 1 - alpha; see ``interval``.
    selective_pvalues : (M,) array
        For H0: i fits at least as well as the first model, given that these data chose the first
        (RelPSI). Each is valid by itself, for users who look at one model; the choice is accounted
        for, the number of models looked at is not.
    tests : tuple of RankResult
        One entry for each kernel and operator where several were tested.
    diagnostics : tuple of Diagnostics
        How each model's scores were estimated, where models were given.
    """

    names: tuple[str, ...]
    ksd: np.ndarray
    ksd_errors: np.ndarray
    differences: np.ndarray
    standard_errors: np.ndarray
    pvalues: np.ndarray
    lower: np.ndarray
    selective_pvalues: np.ndarray
    margin: float
    correction: str
    operator: str
    calibration: str
    notes: tuple[str, ...] = ()
    tests: tuple[RankResult, ...] = ()
    diagnostics: tuple[Diagnostics, ...] = ()
    criterion: str = "ksd"
    losses: np.ndarray | None = None
    loss_errors: np.ndarray | None = None
    beside: tuple[RankResult, ...] = ()
    pointwise: Pointwise | None = None
    caution: str | None = None

    @property
    def estimates(self) -> tuple[np.ndarray, np.ndarray]:
        """What the criterion says of each model, and the standard errors."""
        if self.losses is None or self.loss_errors is None:
            return self.ksd, self.ksd_errors
        return self.losses, self.loss_errors

    @property
    def adjusted_pvalues(self) -> np.ndarray:
        """Of each model, the smallest adjusted p-value for another model being better."""
        return self.pvalues.min(1)

    @property
    def confidence_set(self) -> tuple[str, ...]:
        """The models not shown to be worse than another: all that are best (by every kernel and
        operator) are among them with probability 1 - alpha. A model is not left out for a
        difference that is disputed.
        """
        return tuple(
            name
            for name, worse in zip(self.names, self.shown_worse, strict=True)
            if not worse.any()
        )

    @property
    def shown_worse(self) -> np.ndarray:
        """(M, M), whether model i is shown to be worse than j, and nothing shows the contrary."""
        groups = self._groups
        return self._significant & (groups[:, None] != groups)

    @property
    def disputed(self) -> tuple[tuple[str, ...], ...]:
        """Groups of models on whose order the tests disagree: significant differences lead from
        each of them to all the others.
        """
        groups = self._groups
        found = [
            tuple(name for name, own in zip(self.names, groups, strict=True) if own == group)
            for group in np.unique(groups)
        ]
        return tuple(
            sorted(
                (group for group in found if len(group) > 1),
                key=lambda group: self.names.index(group[0]),
            )
        )

    @property
    def _groups(self) -> np.ndarray:
        from scipy.sparse.csgraph import connected_components

        return connected_components(self._significant, connection="strong")[1]

    @property
    def _significant(self) -> np.ndarray:
        """(M, M), whether a test shows model i to be worse than j; none does where the verdict is
        withheld.
        """
        return (self.pvalues <= self.alpha) & (self.withheld is None)

    def interval(self, model: str, other: str) -> tuple[float, float]:
        """The simultaneous interval, of level 1 - alpha, for KSD^2 of ``model`` minus that of
        ``other``.
        """
        i, j = (self.position(name) for name in (model, other))
        return float(self.lower[i, j]), float(-self.lower[j, i])

    def position(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(
                f"name: expected one of the ranked models; got {name!r}. They are: "
                f"{', '.join(self.names[:20])}."
            )
        return self.names.index(name)

    @property
    def better(self) -> tuple[tuple[str, str], ...]:
        """All pairs (better, worse) of models whose difference is significant; both ways round
        where tests disagree.
        """
        return tuple((self.names[j], self.names[i]) for i, j in np.argwhere(self._significant))

    @property
    def _verdict(self) -> str:
        caution = f", {self.caution}" if self.caution and self.reject else ""
        return f"{self._own_verdict.removesuffix('.')}{caution}{self._others_say}."

    @property
    def _others_say(self) -> str:
        """What the secondary criteria say of the model that comes out best."""
        said, best = "", self.names[0]
        for one in self.beside:
            name = LONG_NAMES.get(one.criterion, one.criterion)
            if one.withheld is not None or best in one.confidence_set != (best,):
                agrees = "does not tell"
            else:
                agrees = "agrees" if best in one.confidence_set else "says otherwise"
            said += f"; {name} {agrees}"
        return said

    @property
    def _own_verdict(self) -> str:
        kept = self.confidence_set
        if contested := [group for group in self.disputed if set(group) & set(kept)]:
            return self._disagreement(contested)
        by = by_margin(self.margin)
        if kept == (self.names[0],):
            return f"{kept[0]} fits best{by} (level {self.alpha:g})."
        if len(kept) == 1:
            return (
                f"Only {kept[0]} is not shown to be worse than another{by} (level {self.alpha:g})."
            )
        agreed = self.names[0] in kept and all(one.names[0] == self.names[0] for one in self.tests)
        if len(kept) == len(self.names):
            subject = f"{self.names[0]} comes out best, but no model" if agreed else "No model"
            return f"{subject} is shown to be worse than another{by} ({pvalue_text(self.pvalue)})."
        lead = f"{self.names[0]} comes out best; " if agreed else ""
        return (
            f"{lead}{len(kept)} of {len(self.names)} models are not shown to be worse than "
            f"another{by}: {list_names(kept)}."
        )

    def _disagreement(self, groups: list[tuple[str, ...]]) -> str:
        """Between which models, and by which tests, of the dispute whose weaker side is the most
        significant.
        """
        labels = short_labels([(one.operator, one.kernel) for one in self.tests])

        def strongest(better: str, worse: str) -> tuple[float, str]:
            pvalues = [one.pvalues[one.position(worse), one.position(better)] for one in self.tests]
            return min(zip(pvalues, labels, strict=True))

        members = {name for group in groups for name in group}
        pairs = [(a, b) for a, b in self.better if {a, b} <= members and (b, a) in self.better]
        if not pairs:
            return f"The tests disagree on the order of {list_names(groups[0])}."
        a, b = min(
            pairs,
            key=lambda pair: (max(strongest(*pair), strongest(*pair[::-1])), strongest(*pair)),
        )
        (p, label), (against, other) = strongest(a, b), strongest(b, a)
        more = f", and on {len(pairs) // 2 - 1} more pairs" if len(pairs) > 2 else ""
        return (
            f"The tests disagree: {label} says that {a} fits better than {b} ({pvalue_text(p)}), "
            f"{other} that {b} does ({pvalue_text(against)}){more}."
        )

    @property
    def question(self) -> str:
        measure = "squared discrepancy" if self.losses is None else measure_of(self.criterion)
        by = f"the {measure} of A exceeds that of B by at most {number(self.margin)}"
        return (
            "H0, for every ordered pair (A, B): "
            f"{by if self.margin else 'A fits at least as well as B'}"
        )

    @property
    def summary(self) -> Table:
        contested = {name for group in self.disputed for name in group}
        pvalues = [mark_withheld(kind, self) for kind in ("adjusted p", "selective p")]
        header = [
            "rank",
            "model",
            measure_of(self.criterion),
            "std. error",
            "to best",
            "std. error",
            *pvalues,
            "in set",
        ]
        kept, (values, errors) = set(self.confidence_set), self.estimates
        rows: list[tuple[str, ...]] = []
        for i, name in enumerate(self.names):
            to_best = (
                (number(self.differences[i, 0]), number(self.standard_errors[i, 0]))
                if i
                else ("", "")
            )
            selective = pvalue_cell(self.selective_pvalues[i]) if i else ""
            figures = (
                number(values[i]),
                number(errors[i]),
                *to_best,
                pvalue_cell(self.adjusted_pvalues[i]),
                selective,
            )
            inside = ("disputed" if name in contested else "yes") if name in kept else "no"
            rows.append((str(i + 1), name, *figures, "withheld" if self.withheld else inside))
        if self.diagnostics:
            header.append("scores")
            rows = [
                (*row, quality_cell(one)) for row, one in zip(rows, self.diagnostics, strict=True)
            ]
        return Table(header, rows, left=(1, 9))

    @property
    def hypotheses(self) -> Table:
        """The kernels and operators that were tested together."""
        rows = [
            (
                pvalue_cell(t.pvalue),
                "withheld" if self.withheld else f"{len(t.better)}",
                t.names[0],
                t.operator,
                t.kernel,
            )
            for t in self.tests
        ]
        return Table(
            (mark_withheld("smallest p", self), "significant", "best", "operator", "kernel"),
            rows,
            left=(2, 3, 4),
        )

    def to_dataframe(self):
        """The table as a pandas data frame, indexed by the models' names."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "to_dataframe needs pandas, which is not installed. Run: pip install pandas"
            ) from error
        columns = {
            "rank": np.arange(1, len(self.names) + 1),
            self.criterion: self.estimates[0],
            "se": self.estimates[1],
            "difference": self.differences[:, 0],
            "difference_se": self.standard_errors[:, 0],
            "adjusted_pvalue": self.adjusted_pvalues,
            "selective_pvalue": self.selective_pvalues,
            "in_set": [name in self.confidence_set for name in self.names],
        }
        if self.diagnostics:
            columns |= {
                "method": [one.method_p for one in self.diagnostics],
                "rhat": [np.nan if one.rhat is None else one.rhat for one in self.diagnostics],
                "ess": [np.nan if one.ess is None else one.ess for one in self.diagnostics],
                "divergences": [one.divergences for one in self.diagnostics],
            }
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="model"))

    def plot(self, ax=None):
        """A forest plot: each model's difference to the best, with simultaneous intervals
        (matplotlib axes).
        """
        from ..report.plots import plot_ranking

        return plot_ranking(self, ax)

    def to_html(
        self, path: str | Path, *, title: str = "Which of these models fit the data best?"
    ) -> None:
        """Write a report: one file that needs nothing else."""
        from ..report.page import write_ranking

        write_ranking(self, path, title)

    def __str__(self) -> str:
        lines: Sequence[str] = [
            self.question,
            "",
            *self.summary.lines(),
            "",
            f"n = {self.n}, level {self.alpha:g}; {NAMES[self.correction]} over all pairs; "
            f"p-values: {self.calibration}",
            *criterion_lines(self),
            *(["", *self.hypotheses.lines()] if self.tests else []),
            "",
            *(f"Note: {visible(note)}" for note in self.notes),
            visible(self.sentence),
        ]
        return "\n".join(map(visible, lines))


def list_names(names: Sequence[str]) -> str:
    """The first names, and how many there are more."""
    if len(names) > LISTED:
        return f"{', '.join(names[:LISTED])} and {len(names) - LISTED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def quality_cell(quality: Diagnostics) -> str:
    if quality.rhat is None or quality.ess is None:
        return quality.method_p
    return (
        f"R-hat {rhat_text(quality.rhat)}, ESS {quality.ess:.0f}, {quality.divergences} divergences"
    )

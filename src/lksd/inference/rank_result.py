"""The answer to "which of these models fit best?"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._text import Table, number, pvalue_cell, pvalue_text, rhat_text, visible
from .details import Diagnostics
from .results import TestResult

NAMES = {"max-t": "step-down max-T", "holm": "Holm", "bonferroni": "Bonferroni"}


@dataclass(frozen=True, eq=False, kw_only=True)
class RankResult(TestResult):
    """Models from the best to the worst, and which differences are more than chance.

    ``statistic``, ``pvalue`` and ``reject`` tell of the most significant of all differences. All arrays are in the order of
    ``names``.

    Attributes
    ----------
    names : tuple of str
        The models, the one with the smallest squared discrepancy first.
    ksd, ksd_errors : (M,) arrays
        Squared discrepancies (U-statistics, so they may be negative) and their standard errors.
    differences, standard_errors : (M, M) arrays
        Entry [i, j] is KSD_i^2 - KSD_j^2, positive where j fits better, and its standard error.
    pvalues : (M, M) array
        Entry [i, j] for H0: i fits at least as well as j; adjusted for all pairs (and all kernels and operators).
    lower : (M, M) array
        Lower ends of simultaneous intervals of level 1 - alpha; see ``interval``.
    selective_pvalues : (M,) array
        For H0: i fits at least as well as the first model, given that these data chose the first (RelPSI). Each is valid by
        itself, for users who look at one model; the choice is accounted for, the number of models looked at is not.
    tests : tuple of RankResult
        One entry for each kernel and operator where several were tested.
    diagnostics : tuple of Diagnostics
        How each model's scores were estimated, where models were given.
    withheld : str or None
        Why there is no verdict, where there is none; ``reject`` is then False.
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
    withheld: str | None = None

    @property
    def adjusted_pvalues(self) -> np.ndarray:
        """Of each model, the smallest adjusted p-value for another model being better."""
        return self.pvalues.min(1)

    @property
    def confidence_set(self) -> tuple[str, ...]:
        """The models not shown to be worse than another: all the best ones are among them with probability 1 - alpha."""
        return tuple(name for name, p in zip(self.names, self.adjusted_pvalues, strict=True) if p > self.alpha)

    def interval(self, model: str, other: str) -> tuple[float, float]:
        """The simultaneous interval, of level 1 - alpha, for KSD^2 of ``model`` minus that of ``other``."""
        i, j = (self.position(name) for name in (model, other))
        return float(self.lower[i, j]), float(-self.lower[j, i])

    def position(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"name: expected one of the ranked models; got {name!r}. They are: {', '.join(self.names[:20])}.")
        return self.names.index(name)

    @property
    def better(self) -> tuple[tuple[str, str], ...]:
        """All pairs (better, worse) of models whose difference is significant."""
        return tuple((self.names[j], self.names[i]) for i, j in np.argwhere(self.pvalues <= self.alpha))

    @property
    def sentence(self) -> str:
        if self.withheld is not None:
            return f"Withheld: {self.withheld}"
        by = f" by more than {number(self.margin)}" if self.margin else ""
        best, others = self.names[0], self.confidence_set
        if len(others) == len(self.names):
            more = f"{len(self.better)} differences are significant" if self.reject else "no difference is significant"
            return (
                f"{best} comes out best, but no model is shown to be worse than another{by} ({pvalue_text(self.pvalue)}): {more}."
            )
        if others == (best,):
            return f"{best} fits best{by} (level {self.alpha:g})."
        among = ", ".join(others[:8]) + (f" and {len(others) - 8} more" if len(others) > 8 else "")
        return (
            f"{best} comes out best; {len(others)} of {len(self.names)} models are not shown to be worse than another{by}: {among}."
        )

    @property
    def question(self) -> str:
        by = f"exceeds that of the other by at most {number(self.margin)}" if self.margin else "is at most that of the other"
        return f"H0, for each of two models: its squared discrepancy {by}"

    @property
    def summary(self) -> Table:
        header = ["rank", "model", "squared KSD", "std. error", "to best", "std. error", "adjusted p", "selective p", "in set"]
        kept = set(self.confidence_set)
        rows: list[tuple[str, ...]] = []
        for i, name in enumerate(self.names):
            to_best = (number(self.differences[i, 0]), number(self.standard_errors[i, 0])) if i else ("", "")
            selective = pvalue_cell(self.selective_pvalues[i]) if i else ""
            figures = (number(self.ksd[i]), number(self.ksd_errors[i]), *to_best, pvalue_cell(self.adjusted_pvalues[i]), selective)
            rows.append((str(i + 1), name, *figures, "yes" if name in kept else "no"))
        if self.diagnostics:
            header.append("scores")
            rows = [(*row, in_short(one)) for row, one in zip(rows, self.diagnostics, strict=True)]
        return Table(header, rows, left=(1, 9))

    @property
    def hypotheses(self) -> Table:
        """The kernels and operators that were tested together."""
        rows = [(pvalue_cell(t.pvalue), f"{len(t.better)}", t.names[0], t.operator, t.kernel) for t in self.tests]
        return Table(("smallest p", "significant", "best", "operator", "kernel"), rows, left=(2, 3, 4))

    def to_dataframe(self):
        """The table as a pandas data frame, indexed by the models' names."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_dataframe needs pandas, which is not installed. Run: pip install pandas") from error
        columns = {
            "rank": np.arange(1, len(self.names) + 1),
            "ksd": self.ksd,
            "se": self.ksd_errors,
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
        """A forest plot: each model's difference to the best, with simultaneous intervals (matplotlib axes)."""
        from ..report.plots import plot_ranking

        return plot_ranking(self, ax)

    def to_html(self, path: str | Path, *, title: str = "Which of these models fit the data best?") -> None:
        """Write a report: one file that needs nothing else."""
        from ..report.page import write_ranking

        write_ranking(self, path, title)

    def __str__(self) -> str:
        lines: Sequence[str] = [
            self.question,
            "",
            *self.summary.lines(),
            "",
            f"n = {self.n}, level {self.alpha:g}; {NAMES[self.correction]} over all pairs; p-values: {self.calibration}",
            f"kernel   {visible(self.kernel)}",
            f"operator {visible(self.operator)}",
            *(["", *self.hypotheses.lines()] if self.tests else []),
            "",
            *(f"Note: {visible(note)}" for note in self.notes),
            visible(self.sentence),
        ]
        return "\n".join(lines)


def in_short(quality: Diagnostics) -> str:
    if quality.rhat is None or quality.ess is None:
        return quality.method_p
    return f"R-hat {rhat_text(quality.rhat)}, ESS {quality.ess:.0f}, {quality.divergences} divergences"

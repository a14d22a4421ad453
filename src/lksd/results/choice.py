"""The answer to "how many?"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._text import Table, number, pvalue_cell, visible
from .base import BESIDE, TestResult
from .details import measure_of
from .ranking import NAMES, RankResult, list_names

LISTED = 10  # words of a topic


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice(TestResult):
    """Which of several candidates, such as numbers of factors, describe the data best.

    Every observation is scored by models that were fitted without it. What is compared is the mean
    loss of a candidate's fits, each to all folds but one: how well the procedure does with that
    many observations.

    Attributes
    ----------
    candidates : tuple of str
        What the candidates are called, in the order in which they were given: from the simplest on.
    best : str
        The candidate with the smallest mean loss.
    confidence_set : tuple of str
        The candidates that are not shown to be worse than another, in the order given. The best of
        all is among them with probability 1 - alpha.
    simplest : str
        The first of them in the order given.
    model : LatentVariableModel or None
        The simplest candidate, fitted to all observations; None in a result that was loaded.
    ranking : RankResult
        All differences of mean losses, with simultaneous intervals and adjusted p-values.
    losses, loss_errors : (n, candidates) arrays
        The loss of each observation when it was left out, averaged over the repeats, and its Monte
        Carlo standard error.
    fold_losses : (repeats * folds, candidates) array
        The mean loss of each fold.
    fold_numbers : (repeats, n) array
        In which fold each observation was left out; the folds follow from ``seed``.
    failures : tuple of str
        The candidates that could not be fitted or scored, and why.
    procedure : str
        How the candidates were fitted, in words.
    topics : tuple of tuple of str
        The most probable words of each topic of ``model``, where it has topics.
    labels : tuple of str or None
        What the observations are called, where they have names.
    """

    candidates: tuple[str, ...]
    short: tuple[str, ...]
    noun: str
    ranking: RankResult
    losses: np.ndarray
    loss_errors: np.ndarray
    fold_losses: np.ndarray
    fold_numbers: np.ndarray
    folds: int
    repeats: int
    procedure: str
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    topics: tuple[tuple[str, ...], ...] = ()
    labels: tuple[str, ...] | None = None
    model: Any = field(default=None, metadata=BESIDE)

    @property
    def criterion(self) -> str:
        """By which the candidates are compared."""
        return self.ranking.criterion

    @property
    def best(self) -> str:
        return self.ranking.names[0]

    @property
    def confidence_set(self) -> tuple[str, ...]:
        kept = set(self.ranking.confidence_set)
        return tuple(name for name in self.candidates if name in kept)

    @property
    def simplest(self) -> str:
        return self.confidence_set[0]

    @property
    def question(self) -> str:
        return (
            f"How many {self.noun}s describe the data best?"
            if self.noun
            else "Which of the candidates describes the data best?"
        )

    def short_name(self, name: str) -> str:
        return self.short[self.candidates.index(name)]

    @property
    def _verdict(self) -> str:
        lost = [one.partition(": it cannot")[0] for one in self.failures]
        left_out = f"; left out, since it failed: {list_names(lost)}" if lost else ""
        return f"{self._own_verdict.removesuffix('.')}{left_out}."

    @property
    def _own_verdict(self) -> str:
        kept = self.confidence_set
        caution = f", {self.ranking.caution}" if self.ranking.caution and self.reject else ""
        if len(kept) == 1:
            return (
                f"{capital(kept[0])}: every other candidate is shown to fit worse (level "
                f"{self.alpha:g}){caution}."
            )
        simplest, best = self.short_name(self.simplest), self.short_name(self.best)
        reason = (
            f"{simplest} is the simplest that the data do not rule out"
            + (", and fits best" if simplest == best else f", {best} fits best")
            + f" (level {self.alpha:g}){caution}."
        )
        return f"{self._set_in_words(kept)}; {reason}"

    def _set_in_words(self, kept: tuple[str, ...]) -> str:
        """The confidence set as a range where it is one."""
        if len(kept) == len(self.candidates):
            return f"None of the {len(kept)} candidates is ruled out"
        if not self.noun:
            return f"Not ruled out: {list_names(kept)}"
        places = [self.candidates.index(name) for name in kept]
        short = [self.short[place] for place in places]
        if len(kept) > 2 and places[-1] - places[0] == len(places) - 1:
            return f"Between {short[0]} and {short[-1]} {self.noun}s"
        return f"{' or '.join([', '.join(short[:-1]), short[-1]])} {self.noun}s"

    @property
    def summary(self) -> Table:
        """The candidates in the order given."""
        order = [self.ranking.position(name) for name in self.candidates]
        values = self.ranking.estimates[0]
        rows = [
            (
                name,
                number(values[i]),
                "" if i == 0 else f"{self.ranking.differences[i, 0]:.3g}",
                "" if i == 0 else self._interval_text(name),
                "" if i == 0 else pvalue_cell(self.ranking.pvalues[i].min()),
                self._mark(name),
            )
            for name, i in zip(self.candidates, order, strict=True)
        ]
        interval = f"{1 - self.alpha:.0%} interval".replace("%", " %")
        header = (
            *("", measure_of(self.criterion), "above best", interval),
            *("p", ""),
        )
        return Table(header, rows, left=(0, 5))

    def _interval_text(self, name: str) -> str:
        low, high = self.ranking.interval(name, self.best)
        return f"[{low:.3g}, {high:.3g}]"

    def _mark(self, name: str) -> str:
        if self.withheld is not None:
            return ""
        if name not in self.confidence_set:
            return "ruled out"
        marks = {"best": name == self.best, "simplest": name == self.simplest}
        return ", ".join(mark for mark, holds in marks.items() if holds)

    @property
    def table(self):
        """The candidates as a pandas data frame, in the order given."""
        ranking = self.ranking.to_dataframe().loc[list(self.candidates)]
        ends = np.array([self.ranking.interval(name, self.best) for name in self.candidates])
        columns = ranking[[self.criterion, "se", "difference", "difference_se"]].copy()
        columns["low"], columns["high"] = ends[:, 0], ends[:, 1]
        columns["adjusted_pvalue"] = ranking["adjusted_pvalue"]
        columns["in_set"] = ranking["in_set"]
        columns.index.name = "candidate"
        return columns

    def plot(self, ax=None):
        """The mean loss of each candidate above that of the best, with simultaneous intervals
        (matplotlib axes).
        """
        from ..report.plots import plot_choice

        return plot_choice(self, ax)

    def to_html(self, path: str | Path, *, title: str | None = None) -> None:
        """Write a report: one file that needs nothing else."""
        from ..report.choice import write_choice

        write_choice(self, path, title or self.question)

    def __str__(self) -> str:
        partitions = f", {self.repeats} partitions" if self.repeats > 1 else ""
        lines: Sequence[str] = [
            self.question,
            "",
            *self.summary.lines(),
            "",
            f"n = {self.n}, {self.folds} folds{partitions}, seed {self.seed}; level "
            f"{self.alpha:g}; {NAMES[self.ranking.correction]} over all pairs",
            f"fitted by: {self.procedure}",
            f"p-values: {self.ranking.calibration}",
            *(f"Left out: {failure}" for failure in self.failures),
            *(f"Note: {note}" for note in self.notes),
            "",
            self.sentence,
        ]
        return "\n".join(map(visible, lines))


def capital(text: str) -> str:
    """The text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]

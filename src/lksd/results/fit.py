"""The answer to "does this model fit at all?"."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._text import Table, number, pvalue_cell, pvalue_text, visible
from ..statistics.nulls import NullDistribution
from .base import TestResult
from .details import Diagnostics, mark_withheld


@dataclass(frozen=True, eq=False, kw_only=True)
class GoodnessOfFitResult(TestResult):
    """Does the model fit at all? ``statistic`` is n times the squared KSD ``ksd``,
    ``null_deviation`` its spread where it fits.
    """

    ksd: float
    operator: str
    contributions: np.ndarray
    replicates: int
    null_deviation: float = math.nan
    notes: tuple[str, ...] = ()
    diagnostics: Diagnostics | None = None
    # of the observations, where the rows of the data had some
    labels: tuple[str, ...] | None = None
    # of the statistic, by the user's own calibration in the place of the bootstrap
    null: NullDistribution | None = None

    @property
    def _verdict(self) -> str:
        p = pvalue_text(self.pvalue)
        return (
            f"The model does not fit the data ({p})."
            if self.reject
            else f"No evidence against the model ({p})."
        )

    @property
    def calibration(self) -> str:
        return (
            f"bootstrap with {self.replicates:,} resamples" if self.null is None else str(self.null)
        )

    @property
    def question(self) -> str:
        return "H0: the data come from the model"

    @property
    def summary(self) -> Table:
        cells = (number(self.ksd), f"{self.statistic:.3f}", pvalue_cell(self.pvalue), f"{self.n}")
        return Table(("squared KSD", "n KSD^2", mark_withheld("p", self), "n"), [cells], left=())

    def __str__(self) -> str:
        p = mark_withheld(pvalue_text(self.pvalue), self)
        lines = [
            self.question,
            "",
            f"squared KSD = {number(self.ksd)}, n KSD^2 = {self.statistic:.3f}, {p}, n = {self.n}",
            f"p-value  {self.calibration}",
            f"kernel   {visible(self.kernel)}",
            f"operator {visible(self.operator)}",
            *(self.diagnostics.lines() if self.diagnostics else ()),
            "",
            *(f"Note: {visible(note)}" for note in self.notes),
            self.sentence,
        ]
        return "\n".join(map(visible, lines))

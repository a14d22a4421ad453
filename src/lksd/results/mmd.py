"""The answer of the relative maximum mean discrepancy test."""

from __future__ import annotations

from dataclasses import dataclass

from .._text import Table, number, pvalue_text, visible
from .base import DifferenceResult
from .verdicts import OTHER, both_pvalues


@dataclass(frozen=True, eq=False, kw_only=True)
class MMDResult(DifferenceResult):
    """The relative maximum mean discrepancy test (Appendix B.5), on samples from the models."""

    mmd_p: float
    mmd_q: float
    n_p: int
    n_q: int

    @property
    def favours(self) -> str | None:
        """The model that is shown to fit better: "P", "Q" or None."""
        return None if self.withheld is not None else self.direction

    @property
    def _verdict(self) -> str:
        better = self.favours
        if better is None:
            return f"Undecided ({both_pvalues(self)})."
        return f"{better} fits better than {OTHER[better]} ({pvalue_text(self.smaller_pvalue)})."

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
        return "\n".join(map(visible, lines))

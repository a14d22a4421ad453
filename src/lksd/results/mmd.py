"""The answer to "does Q fit better than P?" by the MMD."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._text import Table, pvalue_text, visible
from .base import DifferenceResult
from .details import both_pvalues


@dataclass(frozen=True, eq=False, kw_only=True)
class MMDResult(DifferenceResult):
    """The relative maximum mean discrepancy test (Appendix B.5), on samples from the models."""

    mmd_p: float
    mmd_q: float
    n_p: int
    n_q: int

    @property
    def criterion(self) -> str:
        return "mmd"

    @property
    def measure(self) -> str:
        return "squared MMD"

    @property
    def better_role(self) -> str | None:
        """The role of the model that is shown to fit better, "P" or "Q"."""
        return None if self.withheld is not None else self.direction

    @property
    def disputed(self) -> bool:
        return False

    @property
    def diagnostics(self) -> None:
        return None

    def with_names(self, names: tuple[str, str]) -> MMDResult:
        """The result with the models called so."""
        return replace(self, names=names)

    @property
    def favours(self) -> str | None:
        """The name of the model that is shown to fit better; None where none is."""
        return None if self.better_role is None else self.name(self.better_role)

    @property
    def _verdict(self) -> str:
        if self.direction is None:
            return f"Undecided ({both_pvalues(self)})."
        return f"{self.better_than(self.direction)} ({pvalue_text(self.smaller_pvalue)})."

    @property
    def question(self) -> str:
        p, q = self.names
        return f"H0: MMD({p}) <= MMD({q});  H1: {q} fits better"

    @property
    def summary(self) -> Table:
        return self._estimates("squared MMD", (self.mmd_p, None), (self.mmd_q, None))

    def __str__(self) -> str:
        counts = (
            f"n = {self.n} observations, {self.n_p} from {self.names[0]}, {self.n_q} from "
            f"{self.names[1]}"
        )
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

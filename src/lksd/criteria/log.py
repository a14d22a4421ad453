"""The log score: minus the log density of each observation."""

from __future__ import annotations

from typing import Any, ClassVar

from ..models.base import HasMarginal
from .base import Additive


class LogScore(Additive):
    """The log score -log p(x), whose discrepancy is the Kullback-Leibler divergence.

    It needs densities with all their factors: a model has it where ``log_marginal`` is exact and
    the class declares ``complete = True``.
    """

    name: ClassVar[str] = "log"

    def obstacle(self, model: Any, exact):
        declared = model.complete
        if not isinstance(model, HasMarginal):
            return "has no log_marginal(x), so its log density is not known"
        if exact is False:
            return "is to be compared by its chains, which do not give its log density"
        if not declared:
            return (
                "does not declare complete = True, that log_marginal has every constant; the log "
                "score needs them all"
            )
        return None

    def exact(self, model, x):
        return -model.log_marginal(x) if isinstance(model, HasMarginal) else None

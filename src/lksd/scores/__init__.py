"""Marginal scores by posterior sampling."""

from .estimate import estimate_scores, takes_gradients
from .files import load_scores
from .operators import discrete_operators, is_discrete, operators_for
from .result import ScoreEstimate

__all__ = [
    "ScoreEstimate",
    "discrete_operators",
    "estimate_scores",
    "is_discrete",
    "load_scores",
    "operators_for",
    "takes_gradients",
]

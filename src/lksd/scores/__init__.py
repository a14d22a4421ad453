"""Marginal scores by posterior sampling."""

from .estimate import estimate_scores
from .plans import takes_gradients
from .result import ScoreEstimate, load_scores

__all__ = [
    "ScoreEstimate",
    "estimate_scores",
    "load_scores",
    "takes_gradients",
]

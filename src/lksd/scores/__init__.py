"""Marginal scores by posterior sampling."""

from .estimate import estimate_scores, takes_gradients
from .files import load_scores
from .result import ScoreEstimate

__all__ = [
    "ScoreEstimate",
    "estimate_scores",
    "load_scores",
    "takes_gradients",
]

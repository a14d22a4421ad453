"""Stein operators, and the Stein Gram matrix reduced in tiles."""

from .base import SteinOperator, stein_kernel
from .discrete import Barker, Difference, DiscreteOperator, Gibbs, vocabulary_order
from .gram import GramSums, gram_sums
from .langevin import Langevin
from .moves import Moves
from .slopes import score_slopes
from .spherical import Spherical
from .tiles import paired

__all__ = [
    "Barker",
    "Difference",
    "DiscreteOperator",
    "Gibbs",
    "GramSums",
    "Langevin",
    "Moves",
    "Spherical",
    "SteinOperator",
    "gram_sums",
    "paired",
    "score_slopes",
    "stein_kernel",
    "vocabulary_order",
]

"""Stein operators, and the Stein Gram matrix reduced in tiles."""

from .base import SteinOperator, stein_kernel
from .discrete import Barker, Difference, DiscreteOperator, Gibbs, vocabulary_order
from .gram import GramSums, gram_sums
from .langevin import Langevin, Spherical
from .moves import Moves
from .tiles import paired, score_slopes

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

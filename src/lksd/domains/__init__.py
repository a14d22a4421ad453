"""Kinds of data. Each domain owns everything about its own: reading, checks,
coordinates, defaults.
"""

from .base import Domain, Observations, Prepared, is_estimate, kind_of, read_data
from .integers import (
    DISCRETE,
    Categories,
    Documents,
    Graphs,
    Integers,
    discrete_operators,
    share_vocabulary,
)
from .reals import CONTINUOUS, Directions, Reals

__all__ = [
    "CONTINUOUS",
    "DISCRETE",
    "Categories",
    "Directions",
    "Documents",
    "Domain",
    "Graphs",
    "Integers",
    "Observations",
    "Prepared",
    "Reals",
    "discrete_operators",
    "is_estimate",
    "kind_of",
    "read_data",
    "share_vocabulary",
]

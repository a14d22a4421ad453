"""Posterior samplers for one observation and one chain; the layer above maps them over observations."""

from .base import Info, Sampler
from .exact import Exact
from .gradient import HMC, MALA, NUTS
from .random_walk import RandomWalk

__all__ = ["HMC", "MALA", "NUTS", "Exact", "Info", "RandomWalk", "Sampler"]

"""Posterior samplers for one observation and one chain; the layer above maps them over
observations.
"""

from .base import BoxStart, Info, NormalStart, Sampler, Start, UniformStart
from .gibbs import Exact, Gibbs, WithinGibbs
from .metropolis import HMC, MALA, NUTS, AdaptiveHMC, Exchange, RandomWalk

__all__ = [
    "HMC",
    "MALA",
    "NUTS",
    "AdaptiveHMC",
    "BoxStart",
    "Exact",
    "Exchange",
    "Gibbs",
    "Info",
    "NormalStart",
    "RandomWalk",
    "Sampler",
    "Start",
    "UniformStart",
    "WithinGibbs",
]

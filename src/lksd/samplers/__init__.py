"""Posterior samplers for one observation and one chain; the layer above maps them over observations."""

from .adaptive import AdaptiveHMC
from .base import Info, Sampler
from .gibbs import Exact, Gibbs, WithinGibbs
from .metropolis import HMC, MALA, NUTS, Exchange, RandomWalk
from .start import BoxStart, NormalStart, Start, UniformStart

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

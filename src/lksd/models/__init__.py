"""Latent variable models: densities and simulation, no inference."""

from .base import LatentVariableModel
from .gaussian import PPCA, FactorAnalysis
from .mixture import GaussianMixture

__all__ = ["PPCA", "FactorAnalysis", "GaussianMixture", "LatentVariableModel"]

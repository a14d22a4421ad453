"""Latent variable models: densities and simulation, no inference."""

from .base import LatentVariableModel
from .dirichlet import DirichletProcessMixture
from .gaussian import PPCA, FactorAnalysis
from .mixture import GaussianMixture
from .predictive import PosteriorPredictive
from .topics import LDA
from .truncated import TruncatedPPCA

__all__ = [
    "LDA",
    "PPCA",
    "DirichletProcessMixture",
    "FactorAnalysis",
    "GaussianMixture",
    "LatentVariableModel",
    "PosteriorPredictive",
    "TruncatedPPCA",
]

"""Latent variable models: densities and simulation, no inference."""

from .base import LatentVariableModel
from .beta_binomial import BetaBinomial
from .blocks import StochasticBlockModel
from .decoder import Decoder
from .directional import VonMisesFisherMixture
from .dirichlet import DirichletProcessMixture
from .gaussian import PPCA, FactorAnalysis
from .markov import HiddenMarkov
from .mixture import GaussianMixture
from .predictive import PosteriorPredictive
from .topics import LDA
from .truncated import TruncatedPPCA

__all__ = [
    "LDA",
    "PPCA",
    "BetaBinomial",
    "Decoder",
    "DirichletProcessMixture",
    "FactorAnalysis",
    "GaussianMixture",
    "HiddenMarkov",
    "LatentVariableModel",
    "PosteriorPredictive",
    "StochasticBlockModel",
    "TruncatedPPCA",
    "VonMisesFisherMixture",
]

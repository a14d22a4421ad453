"""Latent variable models: densities and simulation, no inference."""

from .base import (
    AveragesRatios,
    Discrete,
    DiscreteLatent,
    HasGibbs,
    HasMarginal,
    HasMarginalRatios,
    HasMarginalScore,
    HasPosterior,
    IsMixture,
    KnowsValues,
    LatentVariableModel,
    ModifiesPosterior,
    Simulates,
    SimulatesLikelihood,
    Smooths,
    Starts,
)
from .beta_binomial import BetaBinomial
from .blocks import StochasticBlockModel
from .composed import PosteriorPredictive
from .decoder import Decoder
from .dirichlet import DirichletProcessMixture
from .gaussian import PPCA, FactorAnalysis
from .markov import HiddenMarkov
from .mixture import GaussianMixture, VonMisesFisherMixture
from .topics import LDA
from .truncated import TruncatedPPCA

__all__ = [
    "LDA",
    "PPCA",
    "AveragesRatios",
    "BetaBinomial",
    "Decoder",
    "DirichletProcessMixture",
    "Discrete",
    "DiscreteLatent",
    "FactorAnalysis",
    "GaussianMixture",
    "HasGibbs",
    "HasMarginal",
    "HasMarginalRatios",
    "HasMarginalScore",
    "HasPosterior",
    "HiddenMarkov",
    "IsMixture",
    "KnowsValues",
    "LatentVariableModel",
    "ModifiesPosterior",
    "PosteriorPredictive",
    "Simulates",
    "SimulatesLikelihood",
    "Smooths",
    "Starts",
    "StochasticBlockModel",
    "TruncatedPPCA",
    "VonMisesFisherMixture",
]

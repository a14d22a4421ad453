"""Procedures that fit one candidate of a family, by maximum likelihood or what comes near it."""

from .base import Fit
from .gaussian import fit_factors, fit_mixture
from .markov import fit_states
from .topics import TRAINERS, fit_topics, topic_trainer

__all__ = [
    "TRAINERS",
    "Fit",
    "fit_factors",
    "fit_mixture",
    "fit_states",
    "fit_topics",
    "topic_trainer",
]

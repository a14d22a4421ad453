"""The experiments by name, one file for each family of models."""

from __future__ import annotations

from ..experiment import Experiment
from . import arxiv, degenerate, mixture, ppca, ppca_chains, topics, truncated

FAMILIES = (ppca, ppca_chains, mixture, topics, arxiv, truncated, degenerate)
EXPERIMENTS: tuple[Experiment, ...] = tuple(
    one for family in FAMILIES for one in family.EXPERIMENTS
)


def experiment_named(name: str) -> Experiment:
    """The experiment of this very name."""
    return next(one for one in EXPERIMENTS if one.name == name)


def experiments_named(name: str) -> list[Experiment]:
    """By name, or by the number of a table or figure in the paper, which may have two parts."""
    wanted = name.lower().replace(" ", "")
    found = [one for one in EXPERIMENTS if wanted == one.name or wanted in one.aliases]
    if not found:
        raise ValueError(
            f"{name!r}: expected an experiment, or a table or figure of the paper. See lksd "
            "reproduce list."
        )
    return found

"""The experiments by name, one file for each family of models."""

from __future__ import annotations

from ..experiment import Experiment
from . import degenerate, mixture, ppca, ppca_chains, topics, truncated

FAMILIES = (ppca, ppca_chains, mixture, topics, truncated, degenerate)
EXPERIMENTS: tuple[Experiment, ...] = tuple(one for family in FAMILIES for one in family.EXPERIMENTS)
BY_NAME = {name: one for one in EXPERIMENTS for name in (one.name, *one.aliases)}


def experiment_named(name: str) -> Experiment:
    """By its name, or by a table's or figure's number in the paper."""
    wanted = name.lower().replace(" ", "")
    if wanted not in BY_NAME:
        raise ValueError(f"{name!r}: expected an experiment, or a table or figure of the paper. See lksd reproduce list.")
    return BY_NAME[wanted]

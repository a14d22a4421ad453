"""What is tested: every kernel with every operator, on checked observations and scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._validation import check_choice, check_count
from ..kernels import Kernel, as_kernel, check_on
from ..stein import Barker, Difference, Gibbs, Langevin, SteinOperator

DISCRETE = {"difference": Difference, "barker": Barker, "gibbs": Gibbs}
NAMES = ("langevin", *DISCRETE)


class Hypothesis(NamedTuple):
    """One kernel and one operator, with the observations and the (S, n, ...) scores in the form they take."""

    kernel: Kernel
    operator: SteinOperator
    x: np.ndarray
    scores: np.ndarray
    notes: tuple[str, ...] = ()


def hypotheses(x, scores, names, kernel, operator, mask) -> list[Hypothesis]:
    """All pairs of a kernel and an operator; with several operators each score is a tuple, one for each."""
    kernels = [as_kernel(one) for one in (kernel if isinstance(kernel, (list, tuple)) else [kernel])]
    several = isinstance(operator, (list, tuple))
    wanted = list(operator) if several else [operator]
    if not kernels or not wanted:
        raise ValueError("kernel and operator: expected at least one of each; got an empty list. Give one.")
    found = []
    for position, choice in enumerate(wanted):
        chosen = [part(score, name, position, len(wanted)) if several else score for score, name in zip(scores, names, strict=True)]
        for one in kernels:
            built = as_operator(choice, one)
            built.check_kernel(one)
            observations = built.observations(x, mask)
            check_count("x", len(observations))
            check_spread(observations)
            check_on(one, observations, scalar=not isinstance(built, Langevin))
            stacked = np.stack([built.scores(name, score, observations) for name, score in zip(names, chosen, strict=True)])
            found.append(Hypothesis(one, built, observations, stacked))
    return found


def part(score, name: str, position: int, count: int):
    """The scores that belong to one of several operators."""
    if not isinstance(score, (list, tuple)) or len(score) != count:
        raise ValueError(
            f"{name}: expected a tuple of {count} arrays, one for each operator; got {type(score).__name__}. Give one for each."
        )
    return score[position]


def as_operator(choice, kernel: Kernel) -> SteinOperator:
    """An operator from an object, a name, or nothing (Langevin)."""
    if isinstance(choice, SteinOperator):
        return choice
    if choice is None:
        if kernel.domain == "discrete":
            raise ValueError(
                f"operator: expected one for discrete data with the kernel {kernel}; got none. "
                "Say which operator the scores belong to, for example operator=lksd.stein.Difference(n_values)."
            )
        return Langevin()
    if not isinstance(choice, str):
        raise TypeError(f"operator: expected an operator object or one of {', '.join(NAMES)}; got {choice!r}. Give an instance.")
    check_choice("operator", choice, NAMES)
    if choice == "langevin":
        return Langevin()
    if not hasattr(kernel, "n_values"):
        raise ValueError(
            f"operator: expected an object, since the kernel {kernel} does not say how many values there are; got {choice!r}. "
            f"Use lksd.stein.{DISCRETE[choice].__name__}(n_values)."
        )
    return DISCRETE[choice](kernel.n_values, witness="shared")


def check_spread(x: np.ndarray) -> None:
    if (x == x[0]).all():
        raise ValueError("x: expected observations that differ; got n copies of one. There is nothing to compare the models on.")

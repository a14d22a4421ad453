"""What an experiment is, and what one trial of it yields."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..engines import Engine

TABLE, FIGURE, HEAT_MAP = 300, 100, 50  # trials


class Outcome(NamedTuple):
    """One test of one trial. ``case`` is the setting that the experiment varies, such as a
    perturbation; "" where there is none.
    """

    case: str
    method: str
    n: int
    alpha: float
    statistic: float
    pvalue: float
    reject: bool
    seconds: float  # of the test, and of its share in scores and samples


class Task(NamedTuple):
    """One trial, narrowed to what is wanted of it. What else is wanted moves a test by rounding
    only.
    """

    trial: int
    seed: int
    sizes: tuple[int, ...]
    methods: tuple[str, ...]
    cases: tuple[str, ...]
    alphas: tuple[float, ...]
    data: Path | None = None  # a snapshot of arXiv
    cache: Path | None = None  # a folder for what trials share and what takes long to make

    @property
    def largest(self) -> int:
        return max(self.sizes)

    def rng(self, *stream: int) -> np.random.Generator:
        """Random numbers of a stream of this trial."""
        return np.random.default_rng([self.seed, *stream])


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    aliases : the paper's numbers of it
    methods : the paper's rows; ``ours`` come after them
    run : the function from a task to its outcomes
    null : whether the null hypothesis holds in a case
    axis : what the cases are, where there are any
    prepare : work that all trials share, done once before them, from the data, a folder, the
    methods wanted and an engine
    """

    name: str
    aliases: tuple[str, ...]
    title: str
    sizes: tuple[int, ...]
    methods: tuple[str, ...]
    run: Callable[[Task], Iterator[Outcome]]
    ours: tuple[str, ...] = ()
    alphas: tuple[float, ...] = (0.05,)
    trials: int = FIGURE
    cases: tuple[str, ...] = ("",)
    axis: str = ""
    null: Callable[[str], bool] = lambda case: False
    prepare: Callable[[Path, Path, tuple[str, ...], Engine | None], None] | None = None

    @property
    def all_methods(self) -> tuple[str, ...]:
        return (*self.methods, *self.ours)

    def problem(self, case: str) -> str:
        """The name under which a case is stored."""
        return f"{self.name}[{case}]" if case else self.name


def trial_seed(name: str, trial: int, base: int = 0) -> int:
    """A seed that depends on the experiment's name, the trial's number and the user's
    seed alone.
    """
    digest = sha256(f"{name}/{trial}/{base}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1  # 31 bits, which every generator takes


def timed(function: Callable[..., Any]) -> Callable[..., tuple[Any, float]]:
    """``function`` computed once for each set of arguments, with the seconds that it took."""

    @cache
    def call(*arguments) -> tuple[Any, float]:
        began = time.perf_counter()
        value = function(*arguments)
        return value, time.perf_counter() - began

    return call

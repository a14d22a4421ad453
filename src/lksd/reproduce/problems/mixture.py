"""Dirichlet process mixtures conditioned on training data (Section 4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from ... import estimate_scores
from ..._jax import as_float64
from ...criteria import Fisher
from ...kernels import IMQ, Kernel
from ...models import DirichletProcessMixture
from ...models.simulation import draw
from ..experiment import Experiment, Outcome, Task, timed
from ..testing import Scored, run_tests
from .ppca import DATA

DIM, TRAIN, SETS, HOLDOUT = 10, 5, 50, 500
VARIANCE = 3.0  # of the data
# single-site updates in the paper; a sweep of ours makes one for each training point
WARMUP, DRAWS = 1_000, 500
CASES = tuple(f"{delta:.1f}" for delta in (0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.3, 1.4, 1.5))
KINDS: dict[str, Any] = {
    "ksd": {"exact": True},
    "lksd": {
        "exact": False,
        "control_variates": "none",
        "chains": 1,
        "warmup": WARMUP // TRAIN,
        "draws": DRAWS // TRAIN,
    },
    "ours": {},
    "fisher": {"criteria": Fisher(np.full(DIM, VARIANCE))},
}


def training_set(number: int) -> np.ndarray:
    """D_tr ~ R = N(0, 3 I); there are 50 of them, which the trials take in turn."""
    return np.sqrt(VARIANCE) * np.random.default_rng([3, number]).normal(size=(TRAIN, DIM))


def conditioned(delta: float, train: np.ndarray) -> DirichletProcessMixture:
    """GDPM(delta 1 / sqrt(D)) given the training data."""
    mean = delta * np.ones(DIM) / np.sqrt(DIM)
    base_variance, likelihood_variance, concentration = (
        as_float64(value) for value in (1.0, 2.0, 1.0)
    )
    return DirichletProcessMixture(mean, base_variance, likelihood_variance, concentration, train)


@cache
def kernel(name: str) -> Kernel:
    return IMQ.median(np.sqrt(VARIANCE) * np.random.default_rng(4).normal(size=(HOLDOUT, DIM)))


def run(task: Task) -> Iterator[Outcome]:
    train = training_set(task.trial % SETS)
    x = np.sqrt(VARIANCE) * task.rng(DATA).normal(size=(task.largest, DIM))

    @timed
    def score(kind: str, delta: float, role: int) -> Scored:
        found = estimate_scores(
            conditioned(delta, train), x, seed=task.seed + role, progress=False, **KINDS[kind]
        )
        if kind == "fisher":
            return Scored((found.losses[:, 0],))  # type: ignore[index]
        return Scored((found.score,))

    return run_tests(
        task,
        x,
        pairs=lambda case: (float(case), 1.0),
        score=lambda kind, delta, role, pair: score(kind, delta, role),
        sample=lambda delta, role, count: draw(conditioned(delta, train), count, task.seed + role),
        count=lambda kind, n: n + WARMUP + DRAWS,
        kernel=kernel,
    )


EXPERIMENTS = (
    Experiment(
        name="mixture",
        aliases=("figure6", "dpm"),
        title="Dirichlet process mixtures: rejections against delta, averaged over 50 training "
        "sets",
        sizes=(50, 100, 200),
        methods=("mmd-imq", "lksd-imq"),
        ours=("ksd-imq", "ours", "fisher"),
        trials=10 * SETS,
        cases=CASES,
        axis="delta",
        null=lambda case: float(case) < 1,
        run=run,
    ),
)

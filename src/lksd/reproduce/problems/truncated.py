"""Truncated PPCA, whose likelihood has an unknown normaliser (Appendix C.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ... import estimate_scores
from ..._jax import as_float64
from ...kernels import IMQ, Kernel
from ...models import TruncatedPPCA
from ...models.simulation import draw
from ...samplers import Exchange
from ..experiment import TABLE, Experiment, Outcome, Task, timed
from ..testing import Scored, run_tests
from .ppca import HOLDOUT, LATENT, NOISE, PROBLEM_1, PROBLEM_2, SIZES, crossed, perturbed

DIM, RADIUS, FLAT = 100, 50.0, 45.0
WARMUP, DRAWS = 500, 2_000
# The paper's step of 1e-3 is that of z + step g + sqrt(2 step) noise; ours is the factor of the
# noise.
PAPER = {
    "sampler": Exchange(step_size=np.sqrt(2e-3), inverse_mass_matrix=np.ones(LATENT)),
    "chains": 1,
}
KINDS: dict[str, Any] = {
    "lksd": PAPER | {"control_variates": "none", "warmup": WARMUP, "draws": DRAWS},
    "ours": {},
}


def truncated(delta: float) -> TruncatedPPCA:
    return TruncatedPPCA(
        perturbed(delta, DIM).weight, as_float64(NOISE), as_float64(RADIUS), as_float64(FLAT)
    )


def sample(delta: float, count: int, seed: int) -> np.ndarray:
    return draw(truncated(delta), count, seed, one_by_one=True)


@cache
def kernel(name: str) -> Kernel:
    holdout = sample(0.0, HOLDOUT, 6)
    return IMQ.covariance(holdout, shrinkage=0.0) if name == "cov" else IMQ.median(holdout)


@dataclass(frozen=True)
class Truncated:
    """Tests of truncated models with the perturbations ``deltas``."""

    deltas: tuple[float, float]

    def __call__(self, task: Task) -> Iterator[Outcome]:
        x = sample(0.0, task.largest, task.seed)

        @timed
        def score(kind: str, delta: float, role: int) -> Scored:
            found = estimate_scores(
                truncated(delta), x, seed=task.seed + role, progress=False, **KINDS[kind]
            )
            return Scored((found.score,))

        return run_tests(
            task,
            x,
            pairs=lambda case: self.deltas,
            score=lambda kind, delta, role, pair: score(kind, delta, role),
            sample=lambda delta, role, count: sample(delta, count, task.seed + role),
            count=lambda kind, n: n + WARMUP + DRAWS,
            kernel=kernel,
        )


NULL = Experiment(
    name="tppca-problem1",
    aliases=("table6",),
    title="Truncated PPCA Problem 1, the null: IMQ with the median scale and with the covariance",
    sizes=SIZES,
    methods=crossed(("mmd", "lksd"), ("imq", "cov")),
    ours=("ours",),
    alphas=(0.01, 0.05),
    trials=TABLE,
    null=lambda case: True,
    run=Truncated(PROBLEM_1),
)
POWER = replace(
    NULL,
    name="tppca-problem2",
    aliases=("figure11",),
    title="Truncated PPCA Problem 2, power against n",
    alphas=(0.05,),
    trials=100,
    null=lambda case: False,
    run=Truncated(PROBLEM_2),
)
EXPERIMENTS = (NULL, POWER)

"""Probabilistic PCA: Problems 1 and 2, kernel scales, perturbations (Section 4.1, Appendix C.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ... import estimate_scores
from ..._jax import as_float64
from ...criteria import Fisher
from ...kernels import IMQ, Gaussian, Kernel
from ...models import PPCA
from ...samplers import NUTS
from ..experiment import HEAT_MAP, TABLE, Experiment, Outcome, Task, timed
from ..testing import ADDITIVE, Scored, run_tests, usual_test

LATENT, NOISE = 10, 1.0
HOLDOUT = 1_000  # draws of R from which the kernels' scales come, once for all trials
EXTRA = 5_000  # points of a model's sample beyond n, for the MMD
DATA = 0  # a stream of random numbers; the roles of P and Q are others
PAPER: dict[str, Any] = {
    "exact": False,
    "control_variates": "none",
    "chains": 1,
    "warmup": 200,
    "draws": 500,
    "sampler": NUTS(),
}
KINDS: dict[str, dict[str, Any]] = {
    "ksd": {"exact": True},
    "lksd": PAPER,
    "ours": {"exact": False},
    "fisher": {"exact": False},
    "log": {"exact": True},
}
SCALES = tuple(10.0**power for power in range(-3, 4))


@cache
def weight(dim: int) -> np.ndarray:
    """A of the data's model, with entries from U[0, 1], fixed over all trials."""
    return np.random.default_rng([1, dim]).random((dim, LATENT))


def perturbed(delta: float, dim: int) -> PPCA:
    """The model with delta added to the (1, 1) entry of A."""
    changed = weight(dim).copy()
    changed[0, 0] += delta
    return PPCA(changed, as_float64(NOISE))


def draws(matrix: np.ndarray, n: int, task: Task, stream: int) -> np.ndarray:
    """n points of PPCA(matrix, 1); fewer are a prefix of more."""
    z, noise = (
        task.rng(stream, part).normal(size=(n, size))
        for part, size in enumerate(matrix.shape[::-1])
    )
    return z @ matrix.T + NOISE * noise


@cache
def holdout(dim: int) -> np.ndarray:
    rng = np.random.default_rng([2, dim])
    return rng.normal(size=(HOLDOUT, LATENT)) @ weight(dim).T + NOISE * rng.normal(
        size=(HOLDOUT, dim)
    )


@cache
def kernel(name: str, dim: int) -> Kernel:
    """eq, imq and cov as the paper took them; eq@s and imq@s with the squared scale s."""
    kind, _, scale = name.partition("@")
    if kind == "cov":
        return IMQ.covariance(holdout(dim), shrinkage=0.0)
    radial: Any = {"eq": Gaussian, "imq": IMQ}[kind]
    return radial(float(scale)) if scale else radial.median(holdout(dim))


def scores(kind: str, model: PPCA, x: np.ndarray, seed: int) -> Scored:
    """ksd: exact; lksd: as the paper; ours: HMC with control variates; of additive kinds losses."""
    if kind in ADDITIVE:
        criterion = Fisher(holdout(x.shape[1]).var(0)) if kind == "fisher" else kind
        found = estimate_scores(
            model, x, criteria=criterion, seed=seed, progress=False, **KINDS[kind]
        )
        return Scored((found.losses[:, 0],))  # type: ignore[index]
    return Scored((estimate_scores(model, x, seed=seed, progress=False, **KINDS[kind]).score,))


@dataclass(frozen=True)
class Perturbed:
    """Tests of models that are perturbed by the deltas of each case."""

    deltas: Mapping[str, tuple[float, float]]
    dim: int = 100
    scaled: bool = False  # whether the case is the squared scale of the kernel
    chains: str = ""  # the kind of scores that all methods share; none: each has its own
    judged: Callable[[str], tuple[str, str]] = usual_test

    def __call__(self, task: Task) -> Iterator[Outcome]:
        x = draws(weight(self.dim), task.largest, task, DATA)

        @timed
        def score(kind: str, delta: float, role: int) -> Scored:
            return scores(
                "ours" if kind == "calibrated" else kind,
                perturbed(delta, self.dim),
                x,
                task.seed + role,
            )

        return run_tests(
            task,
            x,
            pairs=self.deltas.__getitem__,
            score=lambda kind, delta, role, pair: score(self.chains or kind, delta, role),
            sample=lambda delta, role, count: draws(
                perturbed(delta, self.dim).weight, count, task, role
            ),
            count=lambda kind, n: n + EXTRA,
            kernel=lambda name: kernel(name, self.dim),
            judged=self.judged,
            scaled=self.scaled,
        )


def crossed(kinds: tuple[str, ...], kernels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{kind}-{name}" for name in kernels for kind in kinds)


GRID = tuple(f"{delta:.4g}" for delta in 1 + np.logspace(-2, 0.5, 10))
PAIRS = {f"{p}/{q}": (float(p), float(q)) for p in GRID for q in GRID}
PROBLEM_1, PROBLEM_2 = (1.0, 1.0 + 1e-5), (2.0, 1.0)
SIZES = (100, 200, 300, 400, 500)

NULL = Experiment(
    name="ppca-problem1",
    aliases=("table1", "table5"),
    title="PPCA Problem 1, the null: EQ and IMQ with median scales (Table 1), IMQ with the "
    "covariance (Appendix C.1)",
    sizes=SIZES,
    methods=crossed(("mmd", "lksd", "ksd"), ("eq", "imq", "cov")),
    ours=("calibrated-imq", "ours", "fisher", "log"),
    alphas=(0.01, 0.05),
    trials=TABLE,
    null=lambda case: True,
    run=Perturbed({"": PROBLEM_1}),
)
POWER = replace(
    NULL,
    name="ppca-problem2",
    aliases=("figure1", "figure3", "figure8"),
    title="PPCA Problem 2, power against n at (2, 1): median scales, IMQ with the covariance, "
    "levels 0.05 and 0.01",
    trials=TABLE,
    null=lambda case: False,
    run=Perturbed({"": PROBLEM_2}),
)
WIDE = replace(
    POWER,
    name="ppca-problem2-wide",
    aliases=("figure9",),
    title="PPCA Problem 2 with the perturbations (3, 1)",
    alphas=(0.05,),
    trials=100,
    run=Perturbed({"": (3.0, 1.0)}),
)
SCALE = Experiment(
    name="ppca-scale",
    aliases=("figure2",),
    title="PPCA Problem 2, power against the kernel's squared scale",
    sizes=(100, 300),
    methods=crossed(("mmd", "lksd"), ("eq", "imq")),
    ours=("calibrated-imq",),
    cases=tuple(f"{scale:g}" for scale in SCALES),
    axis="squared scale",
    run=Perturbed({f"{scale:g}": PROBLEM_2 for scale in SCALES}, scaled=True),
)
HEAT = Experiment(
    name="ppca-heatmap",
    aliases=("figure10",),
    title="PPCA, power over the perturbations of P and Q (the offset 1 of the public program is "
    "added to the grid)",
    sizes=(100, 200, 300),
    methods=("mmd-imq", "lksd-imq"),
    ours=("ours",),
    trials=HEAT_MAP,
    cases=tuple(PAIRS),
    axis="perturbations of P and Q",
    null=lambda case: PAIRS[case][0] <= PAIRS[case][1],
    run=Perturbed(PAIRS),
)
EXPERIMENTS = (NULL, POWER, WIDE, SCALE, HEAT)

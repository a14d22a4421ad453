"""The quality of the chains: warm-up by draws, with NUTS and with a slow MALA (Section 4.1, Figures
4 and 5).

One chain serves the whole grid: its first t + m draws, of which the first t are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ... import compare_scores
from ..._jax import compiled, float64
from ..._keys import as_keys, observation_keys, tuning_key
from ...models import PPCA
from ...models.base import float64_leaves
from ...samplers import MALA, NUTS, BoxStart, NormalStart, Sampler, Start
from ..experiment import Experiment, Outcome, Task, timed
from ..testing import OF_P, OF_Q, outcomes
from .ppca import DATA, LATENT, PROBLEM_1, PROBLEM_2, draws, kernel, perturbed, weight

WARMUPS, DRAWS = tuple(range(50, 601, 50)), (1, 10, 100, 1_000)
LENGTH = WARMUPS[-1] + DRAWS[-1]
BATCH = 16  # observations of a program
DIM = 100
SLOW = MALA(step_size=1e-4 * LATENT ** (-1 / 3))
GRID = {f"{t}/{m}": (t, m) for t in WARMUPS for m in DRAWS}


@float64
def chain_sums(model: PPCA, x: np.ndarray, sampler: Sampler, start: Start, seed: int) -> np.ndarray:
    """Sums of the latents of the first 0, 1, ..., LENGTH draws at each observation: (n, 1 + LENGTH,
    Dz).
    """
    sampler = float64_leaves(sampler.tuned(float64_leaves(model), tuning_key(seed), x.shape[1]))
    model, start, keys = (
        float64_leaves(model),
        float64_leaves(start),
        as_keys(observation_keys(seed, np.arange(len(x)))),
    )
    parts = []
    for i in range(0, len(x), BATCH):
        rows = jnp.minimum(i + jnp.arange(BATCH), len(x) - 1)
        given = (model, sampler, start, jnp.asarray(x)[rows], keys[rows])
        parts.append(np.asarray(compiled(positions, *given)(*given))[: len(x) - i])
    latents = np.concatenate(parts)
    return np.concatenate([np.zeros_like(latents[:, :1]), np.cumsum(latents, 1)], 1)


def positions(model: PPCA, sampler: Sampler, start: Start, x, keys):
    """All draws of one chain for each observation."""

    def chain(x, key):
        key_start, key_steps = jax.random.split(key)
        z = start(key_start, jnp.zeros(LATENT), model)

        def step(state, key):
            state, _ = sampler.step(key, state, model, x)
            return state, sampler.position(state)

        return jax.lax.scan(step, sampler.init(model, x, z), jax.random.split(key_steps, LENGTH))[1]

    return jax.vmap(chain)(x, keys)


def score(model: PPCA, x: np.ndarray, sums: np.ndarray, t: int, m: int) -> np.ndarray:
    """-(x - A z) / psi^2 at the mean z of draws t + 1, ..., t + m."""
    mean = (sums[:, t + m] - sums[:, t]) / m
    return -(x - mean @ model.weight.T) / model.noise_scale**2


@dataclass(frozen=True)
class Chains:
    """The test at every (t, m); cases are "t/m", after the problem's number where there are two
    problems.
    """

    problems: dict[str, tuple[float, float]]
    sampler_p: Sampler
    start_p: Start

    def __call__(self, task: Task) -> Iterator[Outcome]:
        x = draws(weight(DIM), task.largest, task, DATA)
        chains: dict[int, tuple[Sampler, Start]] = {
            OF_P: (self.sampler_p, self.start_p),
            OF_Q: (NUTS(), BoxStart()),
        }

        @timed
        def sums(delta: float, role: int) -> np.ndarray:
            return chain_sums(perturbed(delta, DIM), x, *chains[role], task.seed + role)

        for case in task.cases:
            problem, _, grid = case.rpartition(":")
            t, m = GRID[grid]
            deltas = self.problems[problem]
            made = [
                (perturbed(delta, DIM), *sums(delta, role))
                for delta, role in zip(deltas, (OF_P, OF_Q), strict=True)
            ]
            p, q = (score(model, x, one, t, m) for model, one, _ in made)
            share = sum(seconds for *_, seconds in made) * (t + m) / LENGTH
            for n in task.sizes:
                test: Callable[[float], Any] = partial(normal_test, x[:n], p[:n], q[:n])
                yield from outcomes(
                    case, "lksd-imq", n, task.alphas, test, share * n / task.largest
                )


def normal_test(x: np.ndarray, p: np.ndarray, q: np.ndarray, alpha: float):
    return compare_scores(x, p, q, kernel("imq", DIM), alpha=alpha, calibration="normal")


def _cases(problems) -> tuple[str, ...]:
    return tuple(f"{problem}:{grid}" if problem else grid for problem in problems for grid in GRID)


BOTH = {"problem 1": PROBLEM_1, "problem 2": PROBLEM_2}
QUALITY = Experiment(
    name="ppca-sampler",
    aliases=("figure4",),
    title="PPCA Problems 1 and 2 with NUTS: rejections by the warm-up t and the draws m",
    sizes=(300,),
    methods=("lksd-imq",),
    cases=_cases(BOTH),
    axis="warm-up t by draws m",
    null=lambda case: case.startswith("problem 1"),
    run=Chains(BOTH, NUTS(), BoxStart()),
)
SLOW_CHAINS = Experiment(
    name="ppca-slow-sampler",
    aliases=("figure5",),
    title="PPCA Problem 1 with a slow MALA for P and NUTS for Q: type-I errors by the warm-up t "
    "and the draws m",
    sizes=(100, 300),
    methods=("lksd-imq",),
    cases=_cases([""]),
    axis="warm-up t by draws m",
    null=lambda case: True,
    run=Chains({"": PROBLEM_1}, SLOW, NormalStart(np.ones(LATENT))),
)
EXPERIMENTS = (QUALITY, SLOW_CHAINS)

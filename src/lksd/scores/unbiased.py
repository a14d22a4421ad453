"""Scores without the bias of the chains' beginnings, by pairs of coupled chains (Jacob, O'Leary and
Atchade 2020).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..models import LatentVariableModel
from ..models.base import float64_leaves
from ..samplers import Start
from ..samplers.coupling import Coupling, coupled, equal
from ..stein import SteinOperator
from .averages import Averages, Targets, average, operator_averages, score_fields
from .batches import Groups, Setup, Work, in_batches
from .chains import Plan, Point, begin, conditional_score, model_at
from .lengths import Group, join_groups
from .result import ScoreEstimate

LIMIT = 10_000  # steps after which chains that have not met are given up, at least


class PairPlan(NamedTuple):
    """Pairs of chains whose steps ``first`` to ``last`` are averaged (k to m); Y runs ``last``
    steps behind X. All static.
    """

    chains: int
    first: int
    last: int
    limit: int
    averaged: bool

    def __str__(self) -> str:
        pairs = f"{self.chains} pair{'s' if self.chains > 1 else ''}"
        return (
            f"{pairs} of coupled chains, {self.last - self.first + 1} draws each after "
            f"{self.first - 1}"
        )


class Pairs(NamedTuple):
    """What is kept of n observations."""

    averages: Averages
    waits: Int[np.ndarray, "n C"]  # steps of Y until it met X


class Reduced(NamedTuple):
    """One observation: an unbiased score from each of C pairs of chains."""

    scores: Float[Array, "C q"]
    meetings: Int[Array, " C"]
    met: Bool[Array, " C"]


def run_pairs(
    model: LatentVariableModel,
    coupling: Coupling,
    initial: Start | None,
    points: Point,
    keys,
    plan: PairPlan,
) -> Reduced:
    """All pairs of all observations of a batch."""

    def observation(point, key):
        here = model_at(model, point)

        def pair(key, number):
            key_x, key_y, key_steps = jax.random.split(key, 3)
            starts = [begin(model, initial, one, point.x, number) for one in (key_x, key_y)]
            return run_pair(here, coupling, point, starts, key_steps, plan)

        return jax.vmap(pair)(jax.random.split(key, plan.chains), jnp.arange(plan.chains))

    return jax.vmap(observation)(points, keys)


def run_pair(model: Any, coupling: Coupling, point: Point, starts, key, plan: PairPlan) -> Reduced:
    """H = (m - k + 1)^-1 [sum_{t=k..m} h(X_t) + sum_{t=k+L..tau-1} c_t (h(X_t) - h(Y_{t-L}))] with
    the lag L = m, where

    c_t = floor((t - k) / L) - ceil(max(L, t - m) / L) + 1 and tau is the first t with X_t =
    Y_{t-L}.
    """
    k, m, lag = plan.first, plan.last, plan.last

    def h(state):
        return conditional_score(
            model, point, model.constrain(coupling.position(state)), plan.averaged
        )[1]

    def add(total, t, x, y, met):
        c = (t - k) // lag + (-jnp.maximum(lag, t - m)) // lag + 1  # ceil(a) = -floor(-a)
        h_x = h(x)
        corrected = jnp.where((t >= k + lag) & ~met, c * (h_x - h(y)), 0.0)
        return total + jnp.where((t >= k) & (t <= m), h_x, 0.0) + corrected

    def move(carry):
        t, x, y, met, meeting, total = carry
        total = add(total, t, x, y, met)
        moved_x, moved_y = coupling.step(jax.random.fold_in(key, t), x, y, (model, model), point.x)
        # Y begins when X has made L steps; once together, the chains stay so.
        y = jax.tree.map(
            lambda a, b, old: jnp.where(met, a, jnp.where(t >= lag, b, old)), moved_x, moved_y, y
        )
        together = met | ((t + 1 >= lag) & equal(coupling.position(moved_x), coupling.position(y)))
        return t + 1, moved_x, y, together, jnp.where(met, meeting, t + 1), total

    def unfinished(carry):
        t, _, _, met, _, total = carry
        return (t <= m) | (~met & (t < plan.limit) & jnp.all(jnp.isfinite(total)))

    x, y = (coupling.init(model, point.x, start) for start in starts)
    zero, none = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    start = (zero, x, y, none, zero, jnp.zeros_like(h(x)))
    _, _, _, met, meeting, total = jax.lax.while_loop(unfinished, move, start)
    return Reduced(total / (m - k + 1), meeting, met)


def pair_plan(plan: Plan, limit: int | None) -> PairPlan:
    """Pairs of the length of plain chains."""
    last = plan.warmup + plan.batches * plan.batch_draws
    return PairPlan(
        plan.chains,
        plan.warmup + 1,
        last,
        max(LIMIT, 10 * last) if limit is None else limit,
        plan.averaged,
    )


def unbiased_pairs(
    model, sampler, initial, batches: Groups, plan: PairPlan, setup: Setup, ids: list[np.ndarray]
) -> list[Pairs]:
    """The scores of every pair of chains, by groups; chains that leave the finite numbers or never
    meet are an error.
    """
    fixed = (model, coupled(float64_leaves(sampler)), float64_leaves(initial))
    leaf: Any = 0
    every = in_batches(
        Work(run_pairs, fixed, plan, all_of, Reduced(leaf, leaf, leaf)), batches, setup
    )
    return [check_pairs(found, plan, own) for found, own in zip(every, ids, strict=True)]


def check_pairs(found: Any, plan: PairPlan, ids: np.ndarray) -> Pairs:
    finite = np.isfinite(found.scores).all((1, 2))
    if not finite.all():
        raise ValueError(
            "model: a coupled chain left the finite numbers for observation "
            f"{ids[np.argmin(finite)]} ({int((~finite).sum())} of {len(finite)} observations). "
            "Check the densities, or give a smaller step_size."
        )
    met = found.met.all(1)
    if not met.all():
        raise ValueError(
            f"unbiased: coupled chains had not met after {plan.limit} steps for observation "
            f"{ids[np.argmin(met)]} ({int((~met).sum())} of {len(met)} observations). Use a "
            "sampler that mixes faster, or raise meeting_limit."
        )
    return Pairs(average(found.scores[:, :, None]), found.meetings - plan.last)


def all_of(reduced: Reduced) -> Reduced:
    return reduced


def check_linear(operators: tuple[SteinOperator, ...]) -> None:
    """Only scores that are posterior means can be had without bias."""
    for one in operators:
        if not one.linear:
            raise ValueError(
                f"unbiased: scores of {one} are not posterior means, so averages of chains cannot "
                "be made unbiased for them. Use operator='difference'."
            )


def unbiased_estimate(
    found: list[Pairs],
    groups: list[Group],
    method: str,
    operators: tuple[Any, ...],
    wanted: Targets | None,
    several: bool,
    **rest,
) -> ScoreEstimate:
    """The mean over pairs, whose spread is its error; R-hat and ESS say nothing about
    such means.
    """
    parts = [[pairs.averages] for pairs in found]
    if wanted is not None:
        parts = [
            operator_averages(pairs.averages, operators, wanted.of(group))
            for pairs, group in zip(found, groups, strict=True)
        ]
    waits = join_groups(groups, [pairs.waits for pairs in found])
    unknown = np.full(len(waits), np.nan)
    return ScoreEstimate(
        **score_fields(groups, parts, several),
        method=f"{method}, which met after {np.median(waits):.0f} steps at the median and "
        f"{waits.max()} at most, unbiased",
        rhat=unknown,
        ess=unknown,
        acceptance=unknown,
        divergences=np.zeros(len(waits), dtype=np.int64),
        meeting_times=waits,
        **rest,
    )

"""Observations whose chains have not converged, or settled, are run again by themselves; all others
keep every digit.

Each gets at most the attempts of ``ATTEMPTS``, the budget of the library, and leaves with the first
that settles:

1. twice the draws in four chains or more, by ``AdaptiveHMC``, which tunes step size and metric at
   this observation alone;
2. four times the draws in eight chains or more, by HMC that keeps the metric of the simulated data
   and tunes its step size.

Where the latent has integers, or the likelihood an unknown normaliser, the sampler stays; its step
size, where it has one, is divided by ``SHORTER`` in the first attempt. Half of the chains begin
where those of the attempt before ended: chains that sat in different basins meet again, so that no
run in which all happen to begin in one basin is taken for convergence. Documents of different
lengths always begin afresh. Where a simulated latent is far better than the chains, it takes the
place of the first end (``elsewhere``). The randomness depends on the seed, the id and the number of
the attempt alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from .._keys import rerun_keys, tuning_key
from ..models.base import Simulates, float64_leaves
from ..samplers import HMC, AdaptiveHMC, Sampler, Start, WithinGibbs
from .averages import Averages, average
from .batches import AVERAGES, Groups, Run, Setup, chain_work, form_of_run, in_batches, keep
from .chains import Plan, Point
from .convergence import Judgement, judge
from .watch import NOTHING, Watch


class Attempt(NamedTuple):
    """At least so many chains, so many times the draws and steps of warm-up of the first run, at
    least so many of the latter.
    """

    chains: int
    longer: int
    warmup: int


ATTEMPTS = (Attempt(4, 2, 500), Attempt(8, 4, 1_000))
SHORTER = 4


class First(NamedTuple):
    """The run of all observations."""

    model: Any
    sampler: Sampler
    initial: Start | None
    groups: Groups
    ids: list[np.ndarray]  # of the observations of every group
    plan: Plan
    anywhere: bool  # whether chains may begin where the density is zero
    real: bool  # whether the latent is real and the likelihood normalised
    watch: Watch = NOTHING  # what criteria look at
    # (n, Dz) for every group: latents that are far better than the chains, else NaN
    better: tuple[np.ndarray, ...] = ()


class Again(NamedTuple):
    """What an attempt leaves."""

    run: Run
    ends: np.ndarray  # (n, C, Dz)


def run_again(
    every: list[Run], judged: list[Judgement], first: First, seed: int, setup: Setup
) -> tuple[list[Run], list[Judgement]]:
    """The runs with the observations that have not settled replaced by their last attempt, and
    how these are judged.
    """
    groups = zip(every, judged, first.groups, first.ids, first.better, strict=True)
    pairs = [run_group_again(*group, first, seed, setup) for group in groups]
    return [found for found, _ in pairs], [verdict for _, verdict in pairs]


def run_group_again(
    found: Run,
    judged: Judgement,
    group: tuple[Point, Any],
    ids: np.ndarray,
    better: np.ndarray,
    first: First,
    seed: int,
    setup: Setup,
) -> tuple[Run, Judgement]:
    """The observations of one group."""
    left, (own, keys) = np.flatnonzero(~judged.settled), group
    if not len(left):
        return found, judged
    found, judged = jax.tree.map(np.copy, (found, judged))
    ends = first_ends(first, at_rows(own, left), keys[left], setup)
    if ends is not None and better.shape[1]:
        ends[:, 0] = np.where(np.isnan(better[left]), ends[:, 0], better[left])
    for number, attempt in enumerate(ATTEMPTS):
        plan = longer(first.plan, attempt)
        points = at_rows(own, left)._replace(starts=ends)  # type: ignore[arg-type]
        sampler = float64_leaves(sampler_of(number, first, own.x.shape[1], plan.warmup, seed))
        initial = first.initial if number == 0 else None
        form = Again(form_of_run(plan, first.watch), 0)  # type: ignore[arg-type]
        fixed = (first.model, sampler, initial)
        work = chain_work(fixed, first.watch, plan, keep_all, form)
        (again,) = in_batches(work, [(points, rerun_keys(seed, ids[left], number))], setup)
        verdict = judge(again.run, plan, first.anywhere, first.real)
        for whole, part in zip(
            jax.tree.leaves((found, judged)),
            jax.tree.leaves((coarse(again.run, first.plan), verdict)),
            strict=True,
        ):
            whole[left] = part
        still = ~verdict.settled
        left, ends = left[still], None if ends is None else again.ends[still]
        if not len(left):
            break
    return found, judged


def longer(plan: Plan, attempt: Attempt) -> Plan:
    """Chains and batches are multiples of those of the first run, so that their means can be
    averaged to as many.
    """
    return plan._replace(
        chains=plan.chains * -(-attempt.chains // plan.chains),
        warmup=max(attempt.longer * plan.warmup, attempt.warmup),
        batches=attempt.longer * plan.batches,
    )


def sampler_of(number: int, first: First, dim: int, warmup: int, seed: int) -> Sampler:
    """The sampler of an attempt."""
    model, sampler = first.model, first.sampler
    if not first.real:
        return shorten(sampler) if number == 0 else sampler
    if number == 0 or not (model.tunable and isinstance(model, Simulates)):
        return AdaptiveHMC(adapting=warmup)
    tuned = HMC().tuned(model, tuning_key(seed), dim)
    return AdaptiveHMC(adapting=warmup, factor=tuned.factor)


def shorten(sampler: Sampler) -> Sampler:
    """With a smaller step, where it has steps."""
    if isinstance(sampler, WithinGibbs):
        return WithinGibbs(shorten(sampler.reals))
    if getattr(sampler, "step_size", None) is None:
        return sampler
    return eqx.tree_at(lambda one: one.step_size, sampler, replace_fn=lambda step: step / SHORTER)


def first_ends(first: First, points: Point, keys, setup: Setup) -> np.ndarray | None:
    """Where the chains of the first run ended at these observations, by running them once more with
    the same program.
    """
    if first.model.any_length:
        return None
    fixed = (first.model, first.sampler, first.initial)
    work = chain_work(fixed, first.watch, first.plan, keep_ends, 0)
    return in_batches(work, [(points, keys)], setup)[0]


def ends_of(reduced: Any) -> np.ndarray:
    """The latents after the last step, flattened."""
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(reduced.last)]
    return np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=-1)


def keep_all(reduced: Any, plan: Plan, quadratic: int = 0) -> Again:
    return Again(keep(reduced, plan, quadratic), ends_of(reduced))


def keep_ends(reduced: Any, plan: Plan, quadratic: int = 0) -> np.ndarray:
    return ends_of(reduced)


def at_rows(points: Point, rows: np.ndarray) -> Point:
    return jax.tree.map(lambda leaf: leaf[rows], points)


def coarse(run: Run, plan: Plan) -> Run:
    """With as many chains and batches as ``plan`` has, each the mean of several; chains of one kind
    of start stay together.
    """
    given: dict[str, Any] = {name: getattr(run, name) for name in AVERAGES}
    given = {name: part and coarse_averages(part, plan) for name, part in given.items()}
    return run._replace(
        **given,
        divergences=run.divergences.reshape(len(run.divergences), -1, plan.chains).sum(1),
        start=run.start[:, : plan.chains],
    )


def coarse_averages(found: Averages, plan: Plan) -> Averages:
    means = found.batch_means
    n, dim = len(means), means.shape[-1]
    return average(
        means.reshape(n, -1, plan.chains, plan.batches, means.shape[2] // plan.batches, dim).mean(
            (1, 4)
        )
    )


def rerun_note(failed: np.ndarray, converged: np.ndarray) -> str:
    """How many observations were run again, and with what success."""
    count, left = int(failed.sum()), int((~converged).sum())
    if count == 1:
        outcome = "they still have not" if left else "now they have"
        return (
            f"1 observation was run again by itself, since its chains had not converged; {outcome}."
        )
    outcome = f"{left} still {'has' if left == 1 else 'have'} not" if left else "now all have"
    return (
        f"{count} observations were run again by themselves, since their chains had not converged; "
        f"{outcome}."
    )

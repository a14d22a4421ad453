"""Chains of one batch of observations, reduced while they run: the draws of one batch exist at a
time.

What leaves the scan for each observation and chain is the means of the score and of the control
variate over consecutive batches of draws, their cross moments, and two scalars a draw for R-hat and
ESS.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num

from ..models import LatentVariableModel
from ..models.base import Around, AveragesRatios, DiscreteLatent, ModifiesPosterior, Starts
from ..models.simulation import start_of
from ..samplers import Info, Sampler, Start, UniformStart
from ..samplers.base import log_posterior, split_latent
from .tails import largest
from .watch import NOTHING, Watch, Watched, polynomial_controls


class Plan(NamedTuple):
    """The length of a run: ``batches`` of ``batch_draws`` draws a chain after ``warmup`` steps. All
    static.
    """

    chains: int
    warmup: int
    batches: int
    batch_draws: int
    control: int  # reals of the latent that the control variate has; 0 where there is none
    # whether ratios are averaged over part of the latent, where the model can do that
    averaged: bool = False
    degree: int = 1  # of the polynomials behind control variates, of which the first are linear

    def __str__(self) -> str:
        chains = f"{self.chains} chain{'s' if self.chains > 1 else ''}"
        return f"{chains} of {self.batches * self.batch_draws} draws after {self.warmup}"


class Reduced(NamedTuple):
    """One observation: C chains, B batches each, control variates of length q."""

    scores: Float[Array, "C B D"]  # batch means of the conditional score
    controls: Float[Array, "C B q"]  # batch means of g: grad_z log p(x, z), and of higher degree
    control_moments: Float[Array, "C q q"]  # sums of g g'
    cross_moments: Float[Array, "C q D"]  # sums of g (s - s_0)', s_0 the chain's first score
    origins: Float[Array, "C D"]  # s_0
    traces: Float[Array, "C M 2"]  # log p(x, z) and the norm of the score, for each draw
    acceptance: Float[Array, " C"]
    divergences: Int[Array, " C"]
    # log prior, log likelihood and the sum of the score at the initial point
    start: Float[Array, "C 3"]
    finite: Bool[Array, " C"]
    last: Any  # the unconstrained latents after the last step, with C in front
    watched: Watched | None = None  # of criteria, where there are any
    tops: Float[Array, "C B D k"] | None = None  # the largest sums of ratios


def run_batch(
    model: LatentVariableModel,
    sampler: Sampler,
    initial: Start | None,
    points: Point,
    keys,
    plan: Plan,
) -> Reduced:
    """All chains of all observations of a batch."""
    return run_watched(model, sampler, initial, NOTHING, points, keys, plan)


def run_watched(
    model: LatentVariableModel,
    sampler: Sampler,
    initial: Start | None,
    watch: Watch,
    points: Point,
    keys,
    plan: Plan,
) -> Reduced:
    """The same with what criteria look at."""

    def observation(point, key):
        here = model_at(model, point)

        def chain(key, number):
            key_start, key_steps = jax.random.split(key)
            start = begin(model, initial, key_start, point.x, number)
            if point.starts is not None:
                start = begin_again(model, point, start, number)
            return run_chain(here, sampler, point, start, key_steps, plan, watch)

        return jax.vmap(chain)(jax.random.split(key, plan.chains), jnp.arange(plan.chains))

    return jax.vmap(observation)(points, keys)


def begin(model: LatentVariableModel, initial: Start | None, key, x, number):
    """The unconstrained point where a chain begins.

    From draws of the prior every second chain begins elsewhere: at one draw plus half the absolute
    value of another, or uniformly where the latent is discrete, so that a difference between the
    two kinds of chains shows what is left of their beginnings.
    """
    key_initial, key_own = jax.random.split(key)
    pair = jax.vmap(lambda k: own_start(model, k, x))(jax.random.split(key_own))
    one, other = jax.tree.map(lambda leaf: leaf[0], pair), jax.tree.map(lambda leaf: leaf[1], pair)
    if initial is not None:
        return initial(key_initial, one, model)
    if not begins_twice(model, one):
        return one
    if isinstance(model, DiscreteLatent):
        uniform = UniformStart()(key_initial, one, model)
        return jax.tree.map(lambda a, b: jnp.where(number % 2 == 0, a, b), one, uniform)
    reals, integers = split_latent(one)
    moved = jax.tree.map(
        lambda a, b: a + (number % 2) * jnp.abs(b) / 2, reals, split_latent(other)[0]
    )
    inside = jnp.isfinite(log_posterior(model, x)(eqx.combine(moved, integers)))
    return eqx.combine(jax.tree.map(lambda a, b: jnp.where(inside, a, b), moved, reals), integers)


def begin_again(model: LatentVariableModel, point: Point, fresh, number):
    """Of four chains two begin where earlier ones ended, which may be in different basins, and two
    at ``fresh`` points.
    """
    starts: Any = point.starts
    row = (number // 4 * 2 + number % 2) % starts.shape[0]
    earlier = unflatten(starts[row], fresh)
    usable = (
        (number % 4 < 2)
        & jnp.all(jnp.isfinite(starts[row]))
        & jnp.isfinite(log_posterior(model, point.x)(earlier))
    )
    return jax.tree.map(lambda a, b: jnp.where(usable, a, b), earlier, fresh)


def unflatten(flat, like):
    """The inverse of flattening latents leaf by leaf."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = jnp.split(flat, ends)
    shaped = [
        part.reshape(leaf.shape).astype(leaf.dtype)
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, shaped)


def begins_twice(model: Any, u) -> bool:
    """Whether chains begin at two kinds of points: uniformly too for a discrete latent, or where
    the model does not say.
    """
    return isinstance(model, DiscreteLatent) or (
        not isinstance(model, Starts) and bool(jax.tree.leaves(split_latent(u)[0]))
    )


def own_start(model: Any, key, x):
    """Where the model says, or a draw from its prior, unconstrained."""
    return model.unconstrain(start_of(model, key, x))


def run_chain(
    model: LatentVariableModel,
    sampler: Sampler,
    point: Point,
    start,
    key,
    plan: Plan,
    watch: Watch = NOTHING,
) -> Reduced:
    """Warm-up and draws are batches of one loop, so that a step is compiled once."""
    x, z = point.x, model.constrain(start)
    prepared = watch.prepare(model, x, z)
    warm_batches = -(-plan.warmup // plan.batch_draws)
    # steps of the first batch that are not taken
    skipped = warm_batches * plan.batch_draws - plan.warmup

    def draw(state, inputs):
        step_key, number = inputs
        idle = Info(jnp.zeros(()), jnp.zeros((), bool))
        state, info = (
            jax.lax.cond(
                number >= skipped,
                lambda: sampler.step(step_key, state, model, x),
                lambda: (state, idle),
            )
            if skipped
            else sampler.step(step_key, state, model, x)
        )
        seen = when(
            number >= warm_batches * plan.batch_draws,
            lambda: observe(sampler.position(state), jax.random.fold_in(step_key, 1)),
        )
        return state, (*seen, info)

    def observe(u, key):
        z = model.constrain(u)
        log_likelihood, score = conditional_score(model, point, z, plan.averaged)
        g = polynomial_controls(model, x, u, plan.degree if plan.control else 0)
        looked = watch.observe(model, x, z, key, prepared)
        return (
            ((score, g), (looked, watch.controls(model, x, u) if looked.size else jnp.zeros(0))),
            jnp.stack([log_likelihood + model.log_prior(z), norm_of(point, score)]),
        )

    def batch(carry, inputs):
        state, sums = carry
        keys, number = inputs
        steps = number * plan.batch_draws + jnp.arange(plan.batch_draws)
        state, (averaged, traces, info) = jax.lax.scan(draw, state, (keys, steps))
        first = number == warm_batches
        both = [
            add_moments(own, part, first, number >= warm_batches)
            for own, part in zip(sums, averaged, strict=True)
        ]
        means = jax.tree.map(lambda part: part.mean(0), averaged)
        tops = None
        if watch.columns:
            ratios = averaged[0][0].reshape(-1, *point.values.shape)  # type: ignore[union-attr]
            tops = largest(ratios, watch.columns)
        return (state, both), (means, tops, traces, info.acceptance.mean(), info.divergent.sum())

    (score, g), (looked, more) = jax.tree.map(
        lambda part: jnp.zeros(part.shape), jax.eval_shape(lambda: observe(start, key)[0])
    )
    log_likelihood, at_start = conditional_score(model, point, z, plan.averaged)
    nothing = (
        sampler.init(model, x, start),
        [
            (part, jnp.zeros(2 * part_g.shape), jnp.zeros((part_g.size, part.size)))
            for part, part_g in ((score, g), (looked, more))
        ],
    )
    count = warm_batches + plan.batches
    keys = jax.random.split(key, (count, plan.batch_draws))
    (state, sums), reduced = jax.lax.scan(batch, nothing, (keys, jnp.arange(count)))
    means, tops, traces, acceptance, divergences = jax.tree.map(
        lambda part: part[warm_batches:], reduced
    )
    (origin, moments, cross), own = sums
    (scores, controls), (observed, own_controls) = means
    return Reduced(
        scores=scores,
        controls=controls,
        control_moments=moments,
        cross_moments=cross,
        origins=origin,
        watched=Watched(observed, own_controls, own[1], own[2], own[0]) if watch.criteria else None,
        tops=tops,
        traces=traces.reshape(-1, 2),
        acceptance=acceptance.mean(),
        divergences=divergences.sum(),
        start=jnp.stack([model.log_prior(z), log_likelihood, at_start.sum()]),
        finite=jnp.all(jnp.isfinite(scores)) & jnp.all(jnp.isfinite(traces)),
        last=sampler.position(state),
    )


def add_moments(sums, averaged, first, counts):
    """The first value, and the moments of the controls and with the values, with those of a batch
    that ``counts``.
    """
    (origin, moments, cross), (values, controls) = sums, averaged
    origin = jnp.where(first, values[0], origin)
    new = when(counts, lambda: (controls.T @ controls, controls.T @ (values - origin)))
    return origin, *jax.tree.map(jnp.add, (moments, cross), new)


def when(condition, compute):
    """The value of ``compute()`` where ``condition`` holds, else zeros; not computed otherwise."""
    shapes = jax.eval_shape(compute)
    return jax.lax.cond(
        condition,
        compute,
        lambda: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes),
    )


# ------------------------------------------------------------- what is averaged: the score of x
# given z (Section 2.2)


class Point(NamedTuple):
    """One observation, or n of them, and what is asked about it."""

    x: Num[Array, "*n D"]
    # of a discrete observation: the replacements whose probability is wanted
    values: Int[Array, "*n D M"] | None = None
    # one coordinate and replacement alone, from the modified posterior
    site: Int[Array, "*n 2"] | None = None
    # where earlier chains ended, flattened, for chains that are run again
    starts: Float[Array, "*n K Dz"] | None = None


def model_at(model: Any, point: Point) -> Any:
    """The model whose posterior is sampled: itself, all it needs of the observation looked up; or
    the modified one.
    """
    if point.values is None:
        return model
    here = model.at(point.x, point.values)
    if point.site is None:
        return here
    if isinstance(here, ModifiesPosterior):
        return here.between(point.x, point.values, *point.site)
    return Between(here, point.site[0], point.values[point.site[0], point.site[1]])


def conditional_score(
    model: Any, point: Point, z, averaged: bool
) -> tuple[Array, Float[Array, " q"]]:
    """log p(x | z), and what is averaged: grad_x log p(x | z), or the ratios p(x with x_d -> v | z)
    / p(x | z).
    """
    x, values = point.x, point.values
    if values is None:
        return jax.value_and_grad(model.log_likelihood)(x, z)
    log_likelihood = model.log_likelihood(x, z)
    if point.site is not None:
        return log_likelihood, model.share(x, values, *point.site, z)[None]
    ratios = (
        model.averaged_ratios
        if averaged and isinstance(model, AveragesRatios)
        else model.likelihood_ratios
    )
    return log_likelihood, jnp.where(x[:, None] >= 0, ratios(x, values, z), 1.0).ravel()


def norm_of(point: Point, score) -> Array:
    """The length of what is averaged, without the positions that do not exist."""
    if point.values is None or point.site is not None:
        return jnp.linalg.norm(score)
    return jnp.linalg.norm(jnp.where(point.x[:, None] >= 0, score.reshape(point.values.shape), 0.0))


class Between(Around):
    """The model with p(x | z) + p(x with x_d -> v | z) as its likelihood: the modified posterior of
    Appendix B.2.
    """

    d: Array
    value: Array

    def log_likelihood(self, x, z):
        return jnp.logaddexp(
            self.model.log_likelihood(x, z),
            self.model.log_likelihood(x.at[self.d].set(self.value), z),
        )

    def share(self, x, values, d, m, z):
        """p(x with x_d -> v | z) / (p(x | z) + p(x with x_d -> v | z))."""
        moved = self.model.log_likelihood(x.at[d].set(self.value), z)
        return jax.nn.sigmoid(moved - self.model.log_likelihood(x, z))

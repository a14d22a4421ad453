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
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Num

from ..models import LatentVariableModel
from ..models.base import Around, AveragesRatios, DiscreteLatent, ModifiesPosterior, Starts
from ..models.simulation import start_of
from ..samplers import Info, Sampler, Start, UniformStart
from ..samplers.base import given_integers, log_posterior, split_latent


class Plan(NamedTuple):
    """The length of a run: ``batches`` of ``batch_draws`` draws a chain after ``warmup`` steps. All
    static.
    """

    chains: int
    warmup: int
    batches: int
    batch_draws: int
    control: bool  # whether to accumulate the moments of the control variate
    # whether ratios are averaged over part of the latent, where the model can do that
    averaged: bool = False

    def __str__(self) -> str:
        chains = f"{self.chains} chain{'s' if self.chains > 1 else ''}"
        return f"{chains} of {self.batches * self.batch_draws} draws after {self.warmup}"


class Reduced(NamedTuple):
    """One observation: C chains, B batches each, control variates of length q."""

    scores: Float[Array, "C B D"]  # batch means of the conditional score
    controls: Float[Array, "C B q"]  # batch means of grad_z log p(x, z)
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


def run_batch(
    model: LatentVariableModel,
    sampler: Sampler,
    initial: Start | None,
    points: Point,
    keys,
    plan: Plan,
) -> Reduced:
    """All chains of all observations of a batch."""

    def observation(point, key):
        here = model_at(model, point)

        def chain(key, number):
            key_start, key_steps = jax.random.split(key)
            start = begin(model, initial, key_start, point.x, number)
            if point.starts is not None:
                start = begin_again(model, point, start, number)
            return run_chain(here, sampler, point, start, key_steps, plan)

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
    model: LatentVariableModel, sampler: Sampler, point: Point, start, key, plan: Plan
) -> Reduced:
    """Warm-up and draws are batches of one loop, so that a step is compiled once."""
    x = point.x
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
            number >= warm_batches * plan.batch_draws, lambda: observe(sampler.position(state))
        )
        return state, (*seen, info)

    def observe(u):
        z = model.constrain(u)
        log_likelihood, score = conditional_score(model, point, z, plan.averaged)
        g = control_variate(model, x, u) if plan.control else jnp.zeros(0)
        return score, g, jnp.stack([log_likelihood + model.log_prior(z), norm_of(point, score)])

    def batch(carry, inputs):
        state, origin, moments, cross = carry
        keys, number = inputs
        steps = number * plan.batch_draws + jnp.arange(plan.batch_draws)
        state, (scores, controls, traces, info) = jax.lax.scan(draw, state, (keys, steps))
        origin = jnp.where(number == warm_batches, scores[0], origin)
        new = when(
            number >= warm_batches, lambda: (controls.T @ controls, controls.T @ (scores - origin))
        )
        moments, cross = jax.tree.map(jnp.add, (moments, cross), new)
        reduced = (
            scores.mean(0),
            controls.mean(0),
            traces,
            info.acceptance.mean(),
            info.divergent.sum(),
        )
        return (state, origin, moments, cross), reduced

    z = model.constrain(start)
    log_likelihood, score = conditional_score(model, point, z, plan.averaged)
    width = control_variate(model, x, start).size if plan.control else 0
    nothing = (
        sampler.init(model, x, start),
        jnp.zeros_like(score),
        jnp.zeros((width, width)),
        jnp.zeros((width, score.size)),
    )
    count = warm_batches + plan.batches
    keys = jax.random.split(key, (count, plan.batch_draws))
    (state, origin, moments, cross), reduced = jax.lax.scan(
        batch, nothing, (keys, jnp.arange(count))
    )
    scores, controls, traces, acceptance, divergences = (part[warm_batches:] for part in reduced)
    return Reduced(
        scores=scores,
        controls=controls,
        control_moments=moments,
        cross_moments=cross,
        origins=origin,
        traces=traces.reshape(-1, 2),
        acceptance=acceptance.mean(),
        divergences=divergences.sum(),
        start=jnp.stack([model.log_prior(z), log_likelihood, score.sum()]),
        finite=jnp.all(jnp.isfinite(scores)) & jnp.all(jnp.isfinite(traces)),
        last=sampler.position(state),
    )


def when(condition, compute):
    """The value of ``compute()`` where ``condition`` holds, else zeros; not computed otherwise."""
    shapes = jax.eval_shape(compute)
    return jax.lax.cond(
        condition,
        compute,
        lambda: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes),
    )


def control_variate(model: LatentVariableModel, x, u):
    """The gradient of log p(x, z) in the unconstrained reals, whose posterior mean is zero."""
    conditional, reals = given_integers(model, u)
    return ravel_pytree(jax.grad(log_posterior(conditional, x))(reals))[0]


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

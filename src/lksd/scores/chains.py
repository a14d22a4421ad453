"""Chains of one batch of observations, reduced while they run: no array of draws is ever held.

What leaves the scan for each observation and chain is the means of the score and of the control variate
over consecutive batches of draws, their cross moments, and two scalars a draw for R-hat and ESS.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from jax.flatten_util import ravel_pytree

from ..models import LatentVariableModel
from ..samplers import Sampler
from ..samplers.base import log_posterior


class Plan(NamedTuple):
    """The length of a run: ``batches`` of ``batch_draws`` draws a chain after ``warmup`` steps. All static."""

    chains: int
    warmup: int
    batches: int
    batch_draws: int
    control: bool  # whether to accumulate the moments of the control variate


class Reduced(NamedTuple):
    """One observation: C chains, B batches each, control variates of length q."""

    scores: Float[Array, "C B D"]  # batch means of the conditional score
    controls: Float[Array, "C B q"]  # batch means of grad_z log p(x, z)
    control_moments: Float[Array, "C q q"]  # sums of g g'
    cross_moments: Float[Array, "C q D"]  # sums of g (s - s_0)', s_0 the chain's first score
    origins: Float[Array, "C D"]  # s_0
    traces: Float[Array, "C M 2"]  # log p(x, z) and the norm of the score, for each draw
    acceptance: Float[Array, " C"]
    divergences: Float[Array, " C"]
    finite: Bool[Array, ""]


@eqx.filter_jit
def run_batch(model: LatentVariableModel, sampler: Sampler, x: Float[Array, "n D"], keys, plan: Plan) -> Reduced:
    """All chains of all observations of a batch."""
    return jax.vmap(lambda one, key: run_observation(model, sampler, one, key, plan))(x, keys)


def run_observation(model: LatentVariableModel, sampler: Sampler, x: Float[Array, " D"], key, plan: Plan) -> Reduced:
    return combine(jax.vmap(lambda chain_key: run_chain(model, sampler, x, chain_key, plan))(jax.random.split(key, plan.chains)))


def combine(chains: Reduced) -> Reduced:
    return chains._replace(finite=jnp.all(chains.finite))


def run_chain(model: LatentVariableModel, sampler: Sampler, x, key, plan: Plan) -> Reduced:
    key_start, key_warmup, key_draws = jax.random.split(key, 3)
    start = initial(model, key_start, x)
    state = sampler.init(model, x, start)

    def warm(state, step_key):
        return sampler.step(step_key, state, model, x)[0], None

    state = jax.lax.scan(warm, state, jax.random.split(key_warmup, plan.warmup))[0] if plan.warmup else state
    conditional_score = jax.grad(model.log_likelihood)
    origin = conditional_score(x, sampler.position(state))
    width = control_variate(model, x, start).size if plan.control else 0
    dim = x.shape[0]

    def draw(carry, step_key):
        state, score_sum, control_sum, moments, cross, acceptance, divergences = carry
        state, info = sampler.step(step_key, state, model, x)
        z = sampler.position(state)
        score = conditional_score(x, z)
        if plan.control:
            g = control_variate(model, x, z)
            control_sum = control_sum + g
            moments = moments + jnp.outer(g, g)
            cross = cross + jnp.outer(g, score - origin)
        trace = jnp.stack([log_posterior(model, x)(z), jnp.linalg.norm(score)])
        carry = (state, score_sum + score, control_sum, moments, cross, acceptance + info.acceptance, divergences + info.divergent)
        return carry, trace

    def batch(carry, batch_keys):
        state, moments, cross, acceptance, divergences = carry
        begin = (state, jnp.zeros(dim), jnp.zeros(width), moments, cross, acceptance, divergences)
        (state, score_sum, control_sum, *rest), traces = jax.lax.scan(draw, begin, batch_keys)
        return (state, *rest), (score_sum / plan.batch_draws, control_sum / plan.batch_draws, traces)

    batch_keys = jax.random.split(key_draws, (plan.batches, plan.batch_draws))
    begin = (state, jnp.zeros((width, width)), jnp.zeros((width, dim)), jnp.zeros(()), jnp.zeros(()))
    (_, moments, cross, acceptance, divergences), (scores, controls, traces) = jax.lax.scan(batch, begin, batch_keys)
    draws = plan.batches * plan.batch_draws
    finite = jnp.all(jnp.isfinite(scores)) & jnp.all(jnp.isfinite(traces))
    return Reduced(
        scores, controls, moments, cross, origin, traces.reshape(draws, 2), acceptance / draws, divergences, finite
    )


def initial(model: LatentVariableModel, key, x):
    """Where a chain begins: as the model says, or a draw from its prior."""
    return model.initial(key, x) if hasattr(model, "initial") else model.sample(key)[0]


def control_variate(model: LatentVariableModel, x, z):
    """grad_z log p(x, z), whose posterior mean is zero."""
    return ravel_pytree(jax.grad(log_posterior(model, x))(z))[0]

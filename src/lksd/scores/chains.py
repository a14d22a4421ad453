"""Chains of one batch of observations, reduced while they run: the draws of one batch exist at a time.

What leaves the scan for each observation and chain is the means of the score and of the control variate
over consecutive batches of draws, their cross moments, and two scalars a draw for R-hat and ESS.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

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
    divergences: Int[Array, " C"]
    start: Float[Array, "C 3"]  # log prior, log likelihood and the sum of the score at the initial point
    finite: Bool[Array, " C"]


def run_batch(model: LatentVariableModel, sampler: Sampler, x: Float[Array, "n D"], keys, plan: Plan) -> Reduced:
    """All chains of all observations of a batch."""

    def observation(one, key):
        return jax.vmap(lambda chain_key: run_chain(model, sampler, one, chain_key, plan))(jax.random.split(key, plan.chains))

    return jax.vmap(observation)(x, keys)


def run_chain(model: LatentVariableModel, sampler: Sampler, x, key, plan: Plan) -> Reduced:
    key_start, key_warmup, key_draws = jax.random.split(key, 3)
    start = initial(model, key_start, x)
    state = sampler.init(model, x, start)

    def warm(state, step_key):
        return sampler.step(step_key, state, model, x)[0], None

    state = jax.lax.scan(warm, state, jax.random.split(key_warmup, plan.warmup))[0] if plan.warmup else state
    conditional_score = jax.grad(model.log_likelihood)
    origin = conditional_score(x, sampler.position(state))

    def draw(state, step_key):
        state, info = sampler.step(step_key, state, model, x)
        z = sampler.position(state)
        score = conditional_score(x, z)
        g = control_variate(model, x, z) if plan.control else jnp.zeros(0)
        trace = jnp.stack([log_posterior(model, x)(z), jnp.linalg.norm(score)])
        return state, (score, g, trace, info)

    def batch(carry, batch_keys):
        state, moments, cross = carry
        state, (scores, controls, traces, info) = jax.lax.scan(draw, state, batch_keys)
        carry = (state, moments + controls.T @ controls, cross + controls.T @ (scores - origin))
        return carry, (scores.mean(0), controls.mean(0), traces, info.acceptance.mean(), info.divergent.sum())

    width = control_variate(model, x, start).size if plan.control else 0
    begin = (state, jnp.zeros((width, width)), jnp.zeros((width, x.shape[0])))
    batch_keys = jax.random.split(key_draws, (plan.batches, plan.batch_draws))
    (_, moments, cross), (scores, controls, traces, acceptance, divergences) = jax.lax.scan(batch, begin, batch_keys)
    return Reduced(
        scores=scores,
        controls=controls,
        control_moments=moments,
        cross_moments=cross,
        origins=origin,
        traces=traces.reshape(-1, 2),
        acceptance=acceptance.mean(),
        divergences=divergences.sum(),
        start=jnp.stack([model.log_prior(start), model.log_likelihood(x, start), conditional_score(x, start).sum()]),
        finite=jnp.all(jnp.isfinite(scores)) & jnp.all(jnp.isfinite(traces)),
    )


def initial(model: Any, key, x):
    """Where a chain begins: as the model says, or a draw from its prior."""
    return model.initial(key, x) if hasattr(model, "initial") else model.sample(key)[0]


def control_variate(model: LatentVariableModel, x, z):
    """grad_z log p(x, z), whose posterior mean is zero."""
    return ravel_pytree(jax.grad(log_posterior(model, x))(z))[0]

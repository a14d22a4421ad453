"""From the reduced chains to a score and its standard error, with or without control variates."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .chains import Plan, Reduced

RIDGE = 1e-13


class Averages(NamedTuple):
    """One observation: the estimate, and the batch means that it averages."""

    score: Float[Array, " D"]
    batch_means: Float[Array, "C B D"]
    mcse: Float[Array, " D"]


@eqx.filter_jit
def average(reduced: Reduced, plan: Plan) -> Averages:
    """The mean over all draws, its residual after regression on the control variate where there is one."""
    return jax.vmap(lambda one: average_one(one, plan))(reduced)


def average_one(reduced: Reduced, plan: Plan) -> Averages:
    means = reduced.scores - fitted(reduced, plan) if plan.control else reduced.scores
    batches = means.reshape(-1, means.shape[-1])
    score = batches.mean(0)
    spread = jnp.sum((batches - score) ** 2, 0) / (len(batches) - 1)
    return Averages(score, means, jnp.sqrt(spread / len(batches)))


def fitted(reduced: Reduced, plan: Plan) -> Float[Array, "C B D"]:
    """The control variate's part of each batch mean: B' g with the coefficients B of the *other* chains.

    Coefficients fitted on the same draws would bias the estimate by O(1/m) with one sign; those of other
    chains are independent of the draws they are applied to.
    """
    draws = plan.batches * plan.batch_draws
    g_sums = reduced.controls.sum(1) * plan.batch_draws  # (C, q)
    s_sums = reduced.scores.sum(1) * plan.batch_draws - draws * reduced.origins  # of s - s_0
    centred = reduced.cross_moments - g_sums[:, :, None] * s_sums[:, None, :] / draws
    moments = reduced.control_moments - g_sums[:, :, None] * g_sums[:, None, :] / draws
    others_cross, others_moments = centred.sum(0) - centred, moments.sum(0) - moments
    width = moments.shape[-1]
    ridge = RIDGE * jnp.trace(others_moments, axis1=1, axis2=2)[:, None, None] / width * jnp.eye(width)
    coefficients = jnp.linalg.solve(others_moments + ridge, others_cross)  # (C, q, D)
    return jnp.einsum("cbq,cqd->cbd", reduced.controls, coefficients)

"""What is averaged over the draws: the score of x given z (Section 2.2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

from ..models.base import Around, AveragesRatios, ModifiesPosterior


class Point(NamedTuple):
    """One observation, or n of them, and what is asked about it."""

    x: Num[Array, "*n D"]
    values: Int[Array, "*n D M"] | None = None  # of a discrete observation: the replacements whose probability is wanted
    site: Int[Array, "*n 2"] | None = None  # one coordinate and replacement alone, from the modified posterior
    starts: Float[Array, "*n K Dz"] | None = None  # where earlier chains ended, flattened, for chains that are run again


def model_at(model: Any, point: Point) -> Any:
    """The model whose posterior is sampled: itself, all it needs of the observation looked up; or the modified one."""
    if point.values is None:
        return model
    here = model.at(point.x, point.values)
    if point.site is None:
        return here
    if isinstance(here, ModifiesPosterior):
        return here.between(point.x, point.values, *point.site)
    return Between(here, point.site[0], point.values[point.site[0], point.site[1]])


def conditional_score(model: Any, point: Point, z, averaged: bool) -> tuple[Array, Float[Array, " q"]]:
    """log p(x | z), and what is averaged: grad_x log p(x | z), or the ratios p(x with x_d -> v | z) / p(x | z)."""
    x, values = point.x, point.values
    if values is None:
        return jax.value_and_grad(model.log_likelihood)(x, z)
    log_likelihood = model.log_likelihood(x, z)
    if point.site is not None:
        return log_likelihood, model.share(x, values, *point.site, z)[None]
    ratios = model.averaged_ratios if averaged and isinstance(model, AveragesRatios) else model.likelihood_ratios
    return log_likelihood, jnp.where(x[:, None] >= 0, ratios(x, values, z), 1.0).ravel()


def norm_of(point: Point, score) -> Array:
    """The length of what is averaged, without the positions that do not exist."""
    if point.values is None or point.site is not None:
        return jnp.linalg.norm(score)
    return jnp.linalg.norm(jnp.where(point.x[:, None] >= 0, score.reshape(point.values.shape), 0.0))


class Between(Around):
    """The model with p(x | z) + p(x with x_d -> v | z) as its likelihood: the modified posterior of Appendix B.2."""

    d: Array
    value: Array

    def log_likelihood(self, x, z):
        return jnp.logaddexp(self.model.log_likelihood(x, z), self.model.log_likelihood(x.at[self.d].set(self.value), z))

    def share(self, x, values, d, m, z):
        """p(x with x_d -> v | z) / (p(x | z) + p(x with x_d -> v | z))."""
        moved = self.model.log_likelihood(x.at[d].set(self.value), z)
        return jax.nn.sigmoid(moved - self.model.log_likelihood(x, z))

"""What criteria look at in every draw beside the score, and the control variates for it."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..samplers.base import given_integers, log_posterior

# degrees of the polynomials in few unconstrained reals, whose posteriors may be far from normal
HIGHEST = {1: 4, 2: 4, 3: 3}


def control_variate(model: Any, x, u):
    """The gradient of log p(x, z) in the unconstrained reals, whose posterior mean is zero."""
    conditional, reals = given_integers(model, u)
    return ravel_pytree(jax.grad(log_posterior(conditional, x))(reals))[0]


class Watch(eqx.Module):
    """What criteria average beside the score, with control variates of a degree of their own; of
    degree two all products, or squares alone where they are not ``full``; of a higher degree the
    first ``quadratic`` of them are those of degree two.
    """

    criteria: tuple[Any, ...]
    degree: int = eqx.field(static=True, default=0)
    full: bool = eqx.field(static=True, default=True)
    quadratic: int = eqx.field(static=True, default=0)
    sizes: tuple[int, ...] = eqx.field(static=True, default=())  # of what each looks at
    # the replacements whose ratios are summed, the largest sums being kept
    columns: tuple[int, ...] = eqx.field(static=True, default=())

    def prepare(self, model, x, z) -> tuple[Any, ...]:
        return tuple(one.prepare(model, x, z) for one in self.criteria)

    def observe(self, model, x, z, key, prepared) -> Float[Array, " k"]:
        """What all criteria look at, one after another."""
        found = [
            one.observe(model, x, z, key, known)
            for one, known in zip(self.criteria, prepared, strict=True)
        ]
        return jnp.concatenate([jnp.zeros(0), *found])

    def controls(self, model, x, u) -> Float[Array, " q"]:
        """grad P . grad log p(x, z) + Laplacian of P, whose posterior mean is zero, for the
        polynomials P of the unconstrained reals.
        """
        return polynomial_controls(model, x, u, self.degree, self.full)


def polynomial_controls(model: Any, x, u, degree: int, full: bool = True) -> Float[Array, " q"]:
    """Control variates of all polynomials up to a degree, those of degree one first; of degree two
    squares alone where they are not ``full``.
    """
    if not degree:
        return jnp.zeros(0)
    g = control_variate(model, x, u)
    if degree == 1:
        return g
    flat = ravel_pytree(given_integers(model, u)[1])[0]
    rows, columns = np.triu_indices(g.size) if full else 2 * (np.arange(g.size),)
    second = flat[rows] * g[columns] + flat[columns] * g[rows] + 2.0 * (rows == columns)
    more = [monomial_control(powers, flat, g) for powers in exponents(g.size, 3, degree)]
    return jnp.concatenate([g, second, jnp.array(more).reshape(-1)])


def exponents(size: int, lowest: int, highest: int) -> list[tuple[int, ...]]:
    """Of all monomials in ``size`` variables whose total degree lies between these."""
    found = product(range(highest + 1), repeat=size) if highest >= lowest else ()
    return [powers for powers in found if lowest <= sum(powers) <= highest]


def monomial_control(powers: tuple[int, ...], u, g):
    """grad P . g + Laplacian of P for the monomial P of u with these powers."""
    total = 0.0
    for j, power in enumerate(powers):
        if power:
            rest = math.prod(u[k] ** own for k, own in enumerate(powers) if k != j)
            slope = power * u[j] ** (power - 1) * g[j]
            bend = power * (power - 1) * u[j] ** (power - 2) if power > 1 else 0.0
            total += rest * (slope + bend)
    return total


NOTHING = Watch(())


class Watched(NamedTuple):
    """What criteria average of one observation, in the form of ``Reduced``."""

    scores: Float[Array, "C B k"]
    controls: Float[Array, "C B q"]
    control_moments: Float[Array, "C q q"]
    cross_moments: Float[Array, "C q k"]
    origins: Float[Array, "C k"]

"""What a model's own code does, looked at without running it: cheaper than tracing the programs
that it is part of.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .._jax import fixed, once
from .._steps import content, steps
from .base import (
    AveragesRatios,
    Discrete,
    HasGibbs,
    HasMarginal,
    HasMarginalRatios,
    HasMarginalScore,
    HasPosterior,
    IsMixture,
    LatentVariableModel,
    ModifiesPosterior,
    Simulates,
    SimulatesLikelihood,
    Starts,
)
from .simulation import of_length, start_of

FACTS = (
    "n_values",
    "n_latent_values",
    "normalised",
    "any_length",
    "directional",
    "exchangeable",
    "graphs",
    "support",
    "tunable",
)


def seen(model: Any, length: int, *others: Any) -> Callable[[], Hashable] | None:
    """How to look at a model of observations of ``length`` numbers; None where code in ``others``
    may change too.
    """
    return (lambda: behaviour(model, length)) if fixed(others) else None


def behaviour(model: Any, length: int) -> Hashable:
    """The steps of everything that is asked of a model at an observation of ``length`` numbers, as
    it is now.

    Two programs made of models that behave alike are the same. What fails is left out: no program
    can have been made of it.
    """
    return once(("behaviour", length), (model,), lambda: look_at(model, length))


def look_at(model: Any, length: int) -> Hashable:
    key = jax.eval_shape(lambda: jax.random.key(0))
    x = jax.ShapeDtypeStruct((length,), jnp.int32 if isinstance(model, Discrete) else jnp.float64)

    def found(function: Callable, *arguments) -> Hashable:
        try:
            return steps(function, model, *arguments)
        # of any kind: it is the user's code, and is told where it is used
        except Exception as error:
            return type(error).__name__

    parts = {
        "first": found(start_of, key, x),
        "facts": frozen([getattr(model, name, None) for name in FACTS]),
    }
    if isinstance(model, Starts) and isinstance(model, Simulates):
        parts["sample"] = found(lambda one, key: of_length(one, length).sample(key), key)
    try:
        z = eqx.filter_eval_shape(start_of, model, key, x)
        u = eqx.filter_eval_shape(lambda one, z: one.unconstrain(z), model, z)
    except Exception:
        z = u = None  # which only exact scores do without
    for name, function, *given in asked(model, key, x, z, u):
        parts[name] = found(function, *given)
    return tuple(parts.items())


def frozen(value: Any) -> Hashable:
    """A fact by its content: bounds that are fields of a model are arrays here."""
    if isinstance(value, (list, tuple)):
        return tuple(map(frozen, value))
    return content(value) if eqx.is_array_like(value) else value


def asked(model: Any, key, x, z, u) -> Iterator[tuple]:
    """The name, the function and the arguments of each thing that is asked."""
    discrete = jnp.issubdtype(x.dtype, jnp.integer)
    values = jax.ShapeDtypeStruct((*x.shape, 2), x.dtype)
    if isinstance(model, HasMarginalScore):
        yield "marginal_score", lambda one, x: one.marginal_score(x), x
    if isinstance(model, HasMarginal):
        yield (
            "log_marginal",
            lambda one, x: (
                one.log_marginal(x) if discrete else jax.grad(lambda y: one.log_marginal(y))(x)
            ),
            x,
        )
    if isinstance(model, HasMarginalRatios):
        yield "marginal_ratios", lambda one, x, values: one.marginal_ratios(x, values), x, values
    if isinstance(model, IsMixture):
        yield "responsibilities", lambda one, x: one.responsibilities(x), x
    if z is None:
        return
    yield "unconstrain", lambda one, z: one.unconstrain(z), z
    yield "density", lambda one, x, u: differentiated(one, x, u, at=False), x, u
    if replaces(model, "log_likelihood_at"):
        yield "log_likelihood_at", lambda one, x, u: differentiated(one, x, u, at=True), x, u
    if isinstance(model, SimulatesLikelihood):
        yield "sample_likelihood", lambda one, key, z: one.sample_likelihood(key, z), key, z
    at = replaces(model, "at")
    for name, offered, *given in (
        ("averaged_ratios", isinstance(model, AveragesRatios), x, values, z),
        ("likelihood_ratios", replaces(model, "likelihood_ratios"), x, values, z),
        ("gibbs", isinstance(model, HasGibbs), key, x, z),
        ("coupled_gibbs", replaces(model, "coupled_gibbs"), key, x, z, z),
        ("sample_posterior", isinstance(model, HasPosterior), key, x),
    ):
        if offered or at:
            yield (
                name,
                lambda one, x, values, *given, name=name: getattr(one.at(x, values), name)(*given),
                x,
                values,
                *given,
            )
    if at or isinstance(model, ModifiesPosterior):
        yield (
            "between",
            lambda one, key, x, values, z: between(one.at(x, values), key, x, values, z),
            key,
            x,
            values,
            z,
        )


def replaces(model: Any, name: str) -> bool:
    """Whether a model has a method of its own instead of the default."""
    return getattr(type(model), name) is not getattr(LatentVariableModel, name)


def between(model: Any, key, x, values, z):
    """All of the modified posterior of a discrete model."""
    there = model.between(x, values, 0, 0)
    return (
        there.share(x, values, 0, 0, z),
        there.log_likelihood(x, z),
        there.gibbs(key, x, z) if isinstance(there, HasGibbs) else None,
    )


def differentiated(model: Any, observation, u, at: bool):
    """The densities and their gradients in all that is real."""
    reals, integers = eqx.partition(u, lambda leaf: jnp.issubdtype(leaf.dtype, jnp.floating))
    flat, restore = ravel_pytree(reals)
    real = jnp.issubdtype(observation.dtype, jnp.floating)

    def densities(flat, y):
        x = y if real else observation
        inside = eqx.combine(restore(flat), integers)
        z = model.constrain(inside)
        log_likelihood = model.log_likelihood_at(x)(z) if at else model.log_likelihood(x, z)
        return jnp.stack([model.log_prior(z), log_likelihood, model.log_jacobian(inside)]), z

    found, slopes, z = jax.vjp(
        densities, flat, observation if real else jnp.zeros(()), has_aux=True
    )
    return found, slopes(jnp.ones_like(found)), z

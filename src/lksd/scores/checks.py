"""A model is checked on the data before any chain runs; every message names the observation."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..models import LatentVariableModel

from .chains import initial


def check_model(model) -> None:
    if isinstance(model, type) or not isinstance(model, LatentVariableModel):
        raise TypeError(f"model: expected an instance of a lksd.models.LatentVariableModel; got {model!r}. Subclass it, and create one.")
    if not hasattr(model, "sample") and not hasattr(model, "initial"):
        raise TypeError(f"model: {model} has neither sample(key) nor initial(key, x), so the shape of z is unknown. Add one of them.")
    if not model.normalised:
        hint = "" if hasattr(model, "sample_likelihood") else ", and sample_likelihood(key, z) is missing"
        raise ValueError(
            f"model: {model} declares a likelihood whose normaliser depends on z{hint}. "
            "These samplers would draw from a wrong posterior; normalise the likelihood."
        )


def has_continuous_latent(model: LatentVariableModel, x) -> bool:
    """Whether all of z is real, so that gradients in z exist."""
    z = jax.eval_shape(lambda key, one: initial(model, key, one), jax.random.key(0), jnp.asarray(x[0]))
    return all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(z))


def check_start(model: LatentVariableModel, x, keys, index: np.ndarray) -> None:
    """The densities at the initial points: numbers, finite, with finite scores."""
    values = {"log_prior": lambda one, z: model.log_prior(z), "log_likelihood": model.log_likelihood}
    start = jax.eval_shape(lambda key, one: initial(model, key, one), keys[0], x[0])
    for name, function in values.items():
        try:
            shape = jax.eval_shape(function, x[0], start)
        except Exception as error:
            raise ValueError(
                f"model: {name} of {model} fails on observations of {x.shape[1]} columns ({str(error).splitlines()[0]}). "
                "Check its shapes against the data."
            ) from error
        if shape.shape != ():
            raise ValueError(f"model: expected {name} of {model} to return one number; got shape {shape.shape}. Sum over its terms.")
    prior, likelihood, score = _start_values(model, x, keys)
    problems = {
        "log_prior is not finite at the initial point": ~np.isfinite(prior),
        "log_likelihood is not finite at the initial point": ~np.isfinite(likelihood),
        "the gradient of log_likelihood in x is not finite at the initial point": ~np.isfinite(score).all(-1),
    }
    for problem, found in problems.items():
        if found.any():
            raise ValueError(
                f"model: {problem} for observation {index[np.argmax(found)]} ({int(found.sum())} of {len(found)}). "
                "Check that the density is positive at the data, or give initial(key, x)."
            )


@eqx.filter_jit
def _start_values(model, x, keys):
    def one(point, key):
        z = initial(model, key, point)
        return model.log_prior(z), model.log_likelihood(point, z), jax.grad(model.log_likelihood)(point, z)

    return jax.vmap(one)(x, keys)



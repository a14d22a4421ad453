"""Models written as programs elsewhere: traced once, then functions of parameters, latents and one
observation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.flatten_util import ravel_pytree
from jax.interpreters.partial_eval import dce_jaxpr

from .._jax import float64
from ..models import LatentVariableModel, PosteriorPredictive
from ..models.base import simulation
from ..supports import Support

LOG_2PI = np.log(2 * np.pi)


class Text:
    """The steps of a traced function; two with the same steps are equal, so that models of one form
    share one compilation.
    """

    def __init__(self, jaxpr, takes, gives):
        self.jaxpr, self.takes, self.gives, self.written = jaxpr, takes, gives, str(jaxpr)

    def __eq__(self, other) -> bool:
        if self is other or not isinstance(other, Text):
            return self is other
        written_out = "0x" not in self.written  # an address stands for something that is not
        return written_out and (self.takes, self.gives, self.written) == (
            other.takes,
            other.gives,
            other.written,
        )

    def __hash__(self) -> int:
        return hash(self.written)


class Traced(eqx.Module):
    """A function as it was when it was traced: what changes later in the variables that it uses
    does not reach it.
    """

    text: Text = eqx.field(static=True)
    constants: tuple

    def __call__(self, *arguments):
        leaves, takes = jax.tree.flatten(arguments)
        if takes != self.text.takes:
            raise TypeError(f"expected arguments of the structure {self.text.takes}; got {takes}.")
        return jax.tree.unflatten(self.text.gives, evaluate(self.text, self.constants, leaves))


@partial(jax.jit, static_argnums=0, inline=True)
def evaluate(text: Text, constants, leaves):
    constants, leaves = (
        as_types(constants, text.jaxpr.constvars),
        as_types(leaves, text.jaxpr.invars),
    )
    return jaxpr_as_fun(ClosedJaxpr(text.jaxpr, constants))(*leaves)


def as_types(values, variables) -> list:
    """Values in the types for which a program was traced: it does not look at those it gets."""
    types = [variable.aval.dtype for variable in variables]
    return [
        value if jnp.issubdtype(kind, jax.dtypes.extended) else jnp.asarray(value, kind)
        for value, kind in zip(values, types, strict=True)
    ]


def traced(function: Callable, *arguments) -> Traced:
    """``function``, which takes arguments of these shapes and types."""
    closed, out = jax.make_jaxpr(function, return_shape=True)(*arguments)
    text = Text(closed.jaxpr, jax.tree.structure(arguments), jax.tree.structure(out))
    return Traced(text, tuple(np.asarray(value) for value in closed.consts))


class Quadratic(NamedTuple):
    """What is quadratic in z, as can be read off the programs."""

    likelihood: bool
    joint: bool  # and z has no constraints, or there is no z
    alike: bool  # the joint density, with the same second derivatives for every x
    free: bool  # not a matter of powers: z has no constraints


def find_quadratic(parts: dict[str, Traced], params, x, z, free: bool) -> Quadratic:
    """``free`` says that z has no constraints."""
    if not jax.tree.leaves(z):
        return Quadratic(likelihood=False, joint=True, alike=False, free=True)
    flat, restore = ravel_pytree(z)

    def curvature(log_density):
        """Whether the second derivatives in z depend on x and on z: whether a program for them uses
        these.
        """
        jaxpr = jax.make_jaxpr(jax.hessian(lambda v, x: log_density(x, restore(v))))(flat, x).jaxpr
        return dce_jaxpr(jaxpr, [True])[1]

    def likelihood(x, z):
        return parts["log_likelihood"](params, x, z)

    def prior(x, z):
        return parts["log_prior"](params, z)

    on_z, on_x = curvature(likelihood)
    prior_on_z, _ = curvature(prior)
    # second derivatives of |z| are zero wherever they are taken, so values must agree too
    on_z = on_z or not is_quadratic(partial(likelihood, x), z)
    prior_on_z = prior_on_z or not is_quadratic(partial(prior, x), z)
    joint = free and not on_z and not prior_on_z
    return Quadratic(likelihood=not on_z, joint=joint, alike=joint and not on_x, free=free)


@float64
def is_quadratic(function: Callable, z) -> bool:
    """Whether the values of ``function`` at some points are those of its expansion at zero."""
    flat, restore = ravel_pytree(z)
    value, slope, curvature = expansion(function, z)
    directions = np.random.default_rng(0).normal(size=(6, flat.size))
    points = directions * np.geomspace(0.3, 10, 6)[:, None]
    for point in (*points, *-points):
        found = float(function(restore(jnp.asarray(point, flat.dtype))))
        wanted = float(value + slope @ point + point @ curvature @ point / 2)
        size = 1 + abs(found) + abs(wanted)
        if np.isfinite(found) and abs(found - wanted) > 1e-4 * size:
            return False
    return True


def expansion(function: Callable, z):
    """Value, gradient and second derivatives of ``function`` at zero, in the flat coordinates of
    ``z``.
    """
    flat, restore = ravel_pytree(z)

    def along(v):
        return function(restore(v))

    origin = jnp.zeros_like(flat)
    return along(origin), jax.grad(along)(origin), jax.hessian(along)(origin)


class ProgramModel(LatentVariableModel):
    """A model that another package describes.

    Where log p(x, z) is quadratic in an unconstrained z, as in linear Gaussian models, marginal
    scores are exact; where log p(x | z) is, chains use its coefficients.
    """

    complete: ClassVar[bool] = True  # factors and potentials are refused
    name: str = eqx.field(static=True)
    # log_prior(params, z), log_likelihood(params, x, z), sample(params, key), and the transforms
    parts: dict[str, Traced]
    params: dict[str, Any]
    quadratic: Quadratic = eqx.field(static=True)
    dim: int = eqx.field(static=True)  # numbers in x
    values: int | None = eqx.field(default=None, static=True)
    support: Support | None = eqx.field(default=None, static=True, kw_only=True)  # type: ignore[misc]
    columns: tuple[str, ...] | None = eqx.field(default=None, static=True, kw_only=True)  # type: ignore[misc]

    def log_prior(self, z):
        return self.parts["log_prior"](self.params, z)

    def log_likelihood(self, x, z):
        if x.shape != (self.dim,):
            raise ValueError(
                f"expected {self.dim} numbers in x, as the observed site has; got {x.size}"
            )
        return self.parts["log_likelihood"](self.params, x, z)

    def log_likelihood_at(self, x):
        """b'z + z'H z / 2 for a likelihood that is quadratic in z."""
        log_likelihood = partial(self.log_likelihood, x)
        if not self.quadratic.likelihood:
            return log_likelihood
        _, slope, curvature = expansion(log_likelihood, self.latent())

        def quadratic(z):
            flat = ravel_pytree(z)[0]
            return slope @ flat + flat @ curvature @ flat / 2

        return quadratic

    def constrain(self, u):
        return self.parts["constrain"](self.params, u)[0]

    def log_jacobian(self, u):
        return self.parts["constrain"](self.params, u)[1]

    def unconstrain(self, z):
        return self.parts["unconstrain"](self.params, z)

    @simulation
    def sample(self, key):
        return self.parts["sample"](self.params, key)

    @property
    def n_values(self) -> int:
        if self.values is None:
            raise AttributeError("n_values")  # as a model of real numbers, which has none
        return self.values

    @property
    def tunable(self) -> bool:  # type: ignore[override]
        """Whether one step size may suit all observations; with constraints their posteriors differ
        too much in scale.
        """
        return self.quadratic.free

    @property
    def log_marginal(self):
        """The exact log density where the joint density is quadratic in z, or has no z;
        else None.
        """
        return self.integrated if self.quadratic.joint else None

    @property
    def marginal_score(self):
        """Its gradient, where the posterior precision of z is the same for all x; else None."""
        return self.score_at_mean if self.quadratic.alike else None

    def joint(self, x):
        """Value, slope g and curvature -A of log p(x, z) at z = 0; the posterior of z is N(A^-1 g,
        A^-1).
        """
        return expansion(lambda z: self.log_prior(z) + self.log_likelihood(x, z), self.latent())

    def integrated(self, x):
        """log p(x) = log p(x, 0) + g' A^-1 g / 2 - log det(A / 2 pi) / 2, Laplace's formula."""
        value, slope, curvature = self.joint(x)
        if not slope.size:
            return value
        _, log_determinant = jnp.linalg.slogdet(-curvature)
        return (
            value
            + (slope @ jnp.linalg.solve(-curvature, slope) - log_determinant + slope.size * LOG_2PI)
            / 2
        )

    def score_at_mean(self, x):
        """grad_x log p(x, z) at the posterior mean of z, where its slope in z is zero."""
        _, slope, curvature = self.joint(x)
        mean = ravel_pytree(self.latent())[1](jnp.linalg.solve(-curvature, slope))
        return jax.grad(self.log_likelihood)(x, mean)

    def latent(self):
        """A latent of zeros."""
        z = jax.eval_shape(self.parts["sample"], self.params, jax.random.key(0))[0]
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), z)

    def __str__(self) -> str:
        return self.name


class Params(NamedTuple):
    """Values of the global parameters, and draws of others."""

    values: dict[str, Any]
    draws: dict[str, np.ndarray]  # along the first axis
    start: dict[str, Any]  # the values, and the first draws
    every: list[dict[str, Any]]  # the values with each of the draws

    def given_to(self, model: ProgramModel) -> ProgramModel | PosteriorPredictive:
        """The model, which has the first draws, averaged over all."""
        if not self.draws:
            return model
        return PosteriorPredictive(
            lambda **given: replace(model, params=self.values | given), self.draws
        )


def sorted_params(
    params: dict[str, Any], wanted: dict[str, Any], known: Iterable[str], model: str
) -> Params:
    """Of the global parameters ``wanted``; what is ``known`` but not wanted is passed over."""
    known = list(known)
    values: dict[str, Any] = {}
    draws: dict[str, np.ndarray] = {}
    for name, given in params.items():
        if name not in known:
            raise ValueError(
                f"params: expected names of sites of {model}; got {name!r}. Its sites: "
                f"{', '.join(known)}."
            )
        if name not in wanted:
            continue
        structure: Any = jax.tree.structure(given)
        if structure != jax.tree.structure(wanted[name]):
            raise ValueError(
                f"params: expected {name!r} in the form that {model} gives it; got another. Give "
                "the fitted value."
            )
        arrays = jax.tree.map(np.asarray, given)
        arrays = jax.tree.map(lambda a: a.astype(np.float64) if a.dtype.kind == "f" else a, arrays)
        shape, came = (jax.tree.map(np.shape, tree) for tree in (wanted[name], arrays))
        if came == shape:
            values[name] = arrays
        elif (
            isinstance(arrays, np.ndarray)
            and arrays.shape[arrays.ndim - len(shape) :] == shape
            and arrays.ndim > len(shape)
        ):
            draws[name] = arrays.reshape(-1, *shape)
        else:
            raise ValueError(
                f"params: expected shape {shape} for {name!r}, or draws of that along leading "
                f"axes; got {came}. Check the parameter."
            )
    counts = {name: len(array) for name, array in draws.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"params: expected the same number of draws for all parameters; got {counts}. Take "
            "them from one fit."
        )
    first = {name: np.asarray(array[0]) for name, array in draws.items()}
    every = [
        values | {name: array[i] for name, array in draws.items()}
        for i in range(max(counts.values(), default=0))
    ]
    return Params(values, draws, first | values, every)

"""Models made of other models: averaged over draws of their parameters, or with Gaussian noise
added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from .._jax import as_float64
from .base import (
    Discrete,
    HasGibbs,
    HasMarginal,
    HasPosterior,
    LatentVariableModel,
    Simulates,
    Smooths,
    simulation,
)
from .simulation import start_of

# as fields; integers, booleans and strings are static
ARRAYS = (float, np.ndarray, np.floating, jax.Array)
CANDIDATES = 16  # draws among which the index moves in one step


class PosteriorPredictive(LatentVariableModel):
    """The mixture of one model over M draws of its parameters, each with weight 1/M.

    The hypothesis tested concerns this mixture of M draws, not the limit of infinitely many: the
    error of the draws is common to all observations. The model's densities must contain every term
    that depends on the parameters drawn.

    Parameters
    ----------
    model : LatentVariableModel, or a function (or class) that makes one
        The fields named in ``draws`` are replaced, or given to the function by name.
    draws : dict of arrays
        For each parameter an array with the draws along its first axis.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> weights = np.random.default_rng(0).normal(size=(50, 3, 1))  # 50 draws
    >>> draws = {"weight": weights, "noise_scale": np.ones(50)}
    >>> lksd.models.PosteriorPredictive(lksd.models.PPCA, draws).size
    50
    """

    models: LatentVariableModel  # every array has a leading axis of M draws
    size: int

    def __init__(
        self,
        model: LatentVariableModel | Callable[..., LatentVariableModel],
        draws: Mapping[str, Any],
    ):
        arrays = (
            {name: as_float64(values) for name, values in draws.items()}
            if isinstance(draws, Mapping)
            else {}
        )
        sizes = {name: values.shape[0] if values.ndim else 0 for name, values in arrays.items()}
        if len(set(sizes.values())) != 1 or 0 in sizes.values():
            raise ValueError(
                "draws: expected a dict of arrays with the same number of draws along their first "
                f"axis; got {sizes or draws!r}. Name the parameters, for example {{'weight': "
                "draws_of_weight}."
            )
        self.size = next(iter(sizes.values()))

        def build(index: int):
            given = {name: values[index] for name, values in arrays.items()}
            try:
                return (
                    replace(model, **given)
                    if isinstance(model, LatentVariableModel)
                    else model(**given)
                )
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"draws: number {index} makes no model ({error}). Check the names and shapes."
                ) from error

        one = [build(index) for index in range(self.size)]
        if not isinstance(one[0], LatentVariableModel) or not (
            one[0].normalised and one[0].complete is not False
        ):
            raise TypeError(
                "model: expected a LatentVariableModel whose densities have every term that "
                f"depends on its parameters, or a function that makes one; got {model!r}. Draws "
                "can be averaged only where their densities can be compared."
            )
        if isinstance(one[0], Discrete):
            raise TypeError(
                f"model: expected a model of real observations; {one[0]} describes integers, whose "
                "draws cannot be averaged yet. Compare it at one value of the parameters, such as "
                "their mean."
            )
        self.models = jax.tree.map(stacked, *one)

    @property
    def directional(self) -> bool:  # type: ignore[override]
        return self.models.directional

    @property
    def support(self) -> Any:
        return self.models.support

    @property
    def columns(self) -> Any:  # type: ignore[override]
        return self.models.columns

    def chosen(self, index) -> Any:
        """The model with the parameters of one draw."""
        return jax.tree.map(
            lambda leaf: jnp.asarray(leaf)[index] if isinstance(leaf, ARRAYS) else leaf, self.models
        )

    def log_prior(self, z):
        index, latent = z
        return self.chosen(index).log_prior(latent) - jnp.log(self.size)

    def log_likelihood(self, x, z):
        index, latent = z
        return self.chosen(index).log_likelihood(x, latent)

    def constrain(self, u):
        index, latent = u
        return index, self.chosen(index).constrain(latent)

    def unconstrain(self, z):
        index, latent = z
        return index, self.chosen(index).unconstrain(latent)

    def log_jacobian(self, u):
        index, latent = u
        return self.chosen(index).log_jacobian(latent)

    @property
    def sample(self):
        """A draw (z, x), where the model simulates, else None."""
        return self.simulate if isinstance(self.models, Simulates) else None

    @simulation
    def simulate(self, key):
        key_index, key_pair = jax.random.split(key)
        index = jax.random.randint(key_index, (), 0, self.size)
        latent, x = self.chosen(index).sample(key_pair)
        return (index, latent), x

    def gibbs(self, key, x, z):
        """The latent as the model offers; then the index given the latent, among the present draw
        and a few others.
        """
        index, latent = z
        key_latent, key_others, key_choice = jax.random.split(key, 3)
        if isinstance(self.models, HasGibbs):
            latent = self.chosen(index).gibbs(key_latent, x, latent)
        elif isinstance(self.models, HasPosterior):
            latent = self.chosen(index).sample_posterior(key_latent, x)
        others = jax.random.randint(key_others, (CANDIDATES - 1,), 0, self.size)
        candidates = jnp.concatenate([index[None], others.astype(index.dtype)])

        def log_joint(candidate):
            model = self.chosen(candidate)
            return model.log_prior(latent) + model.log_likelihood(x, latent)

        return candidates[
            jax.random.categorical(key_choice, jax.vmap(log_joint)(candidates))
        ], latent

    @property
    def complete(self) -> bool | None:  # type: ignore[override]
        """As the model whose parameters are averaged."""
        return self.models.complete

    @property
    def log_marginal(self):
        """The exact log density where the model has one, else None."""
        return self.mixture if isinstance(self.chosen(0), HasMarginal) else None

    def mixture(self, x):
        arrays, static = eqx.partition(self.models, lambda leaf: isinstance(leaf, ARRAYS))
        each = jax.vmap(lambda leaves: eqx.combine(leaves, static).log_marginal(x))(arrays)
        return logsumexp(each) - jnp.log(self.size)

    @property
    def note(self) -> str:
        return (
            f"the hypothesis concerns the mixture of the {self.size} draws given; their own error "
            "is not in the p-value."
        )

    def __str__(self) -> str:
        return f"PosteriorPredictive({self.models}, {self.size} draws)"


def stacked(*leaves):
    """One field of all draws' models: arrays and numbers along a new axis; anything else must be
    the same for all.
    """
    if isinstance(leaves[0], ARRAYS):
        return np.stack(leaves)
    if any(leaf != leaves[0] for leaf in leaves):
        raise TypeError(
            "draws: expected parameters that are numbers or arrays; got a field that differs "
            f"between draws, {leaves[0]!r} in the first. Make it an array."
        )
    return leaves[0]


class Smoothed(LatentVariableModel):
    """x = y + scale * noise with y from ``model``: the latent is that of the model, and y.

    Fisher's identity then reads grad log p(x) = E[(y - x) / scale^2 | x].
    """

    model: Any
    scale: np.ndarray = eqx.field(converter=as_float64)

    support: ClassVar[Any] = "real"

    def log_prior(self, z):
        inner, y = z
        return self.model.log_prior(inner) + self.model.log_likelihood(y, inner)

    def log_likelihood(self, x, z):
        return -jnp.sum(((x - z[1]) / self.scale) ** 2) / 2

    def constrain(self, u):
        return self.model.constrain(u[0]), u[1]

    def unconstrain(self, z):
        return self.model.unconstrain(z[0]), z[1]

    def log_jacobian(self, u):
        return self.model.log_jacobian(u[0])

    @property
    def sample(self):
        """Exists where the model simulates, else None."""
        return self.simulate if isinstance(self.model, Simulates) else None

    def simulate(self, key):
        key_y, key_noise = jax.random.split(key)
        inner, y = self.model.sample(key_y)
        return (inner, y), y + self.scale * jax.random.normal(key_noise, y.shape, y.dtype)

    def initial(self, key, x):
        """At y = x: a y from elsewhere might be in a mode that it never leaves."""
        return start_of(self.model, key, x), x

    @property
    def gibbs(self):
        """Exists where the model sweeps over its latent or draws it, else None."""
        return self.sweep if isinstance(self.model, (HasGibbs, HasPosterior)) else None

    def sweep(self, key, x, z):
        inner, y = z
        return (
            self.model.gibbs(key, y, inner)
            if isinstance(self.model, HasGibbs)
            else self.model.sample_posterior(key, y)
        ), y

    def __str__(self) -> str:
        return f"smoothed {self.model}"


def smoothed(model: Any, scale) -> Any:
    """The law of x + scale * noise for x from ``model``: the model's own ``smoothed(scale)``, or
    noise as one more latent.
    """
    return model.smoothed(scale) if isinstance(model, Smooths) else Smoothed(model, scale)

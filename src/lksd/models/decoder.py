"""Decoders of deep generative models: the generative side of a variational autoencoder."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._jax import as_float64
from .._text import reason_of
from .base import LatentVariableModel, simulation

LOG_2PI = np.log(2 * np.pi)


class Decoder(LatentVariableModel):
    """x | z ~ N(network(z), noise^2 I), z ~ N(0, I), with a trained network.

    Parameters
    ----------
    network : callable
        Takes z of shape (Dz,) and returns the mean of x, of any shape with D numbers. An Equinox
        module, a Flax ``nnx`` module, a Flax ``linen`` module bound to its variables
        (``module.bind(variables)``), or any function in ``jax.numpy``. Weights are computed with in
        double precision. Networks with dropout must be in inference mode. Weights of an ``nnx``
        module are those that it has at each call, also after further training; all others are
        those given.
    noise : float or (D,) array
        The standard deviation of x given z.
    latent_dim : int, optional
        Dz; found from the shapes of the weights where only one size fits.

    Examples
    --------
    >>> import equinox as eqx, jax, numpy as np, lksd
    >>> network = eqx.nn.MLP(in_size=2, out_size=5, width_size=8, depth=1, key=jax.random.key(0))
    >>> model = lksd.models.Decoder(network, noise=0.5)
    >>> model.latent_dim
    2
    """

    network: Any
    noise: np.ndarray = eqx.field(converter=as_float64)
    latent_dim: int = eqx.field(static=True)

    support: ClassVar[Any] = "real"

    def __init__(self, network: Any, noise: Any, latent_dim: int | None = None):
        if not callable(network):
            raise TypeError(
                f"network: expected a function of z; got {type(network).__name__}. Give the "
                "decoder itself."
            )
        self.network = as_pytree(network)
        self.noise = noise
        self.latent_dim = found_dim(self.network) if latent_dim is None else latent_dim

    def __check_init__(self):
        try:
            shape = jax.eval_shape(
                self.network, jax.ShapeDtypeStruct((self.latent_dim,), jnp.float32)
            ).shape
        except Exception as error:
            raise ValueError(
                f"network: it fails at z of shape ({self.latent_dim},) ({reason_of(error)}). Give "
                "a network that takes one z without a batch axis, and its latent_dim."
            ) from error
        dim = int(np.prod(shape))
        if (
            self.noise.shape not in ((), (dim,))
            or not (self.noise > 0).all()
            or not np.isfinite(self.noise).all()
        ):
            raise ValueError(
                f"noise: expected a positive number, or {dim} of them; got shape "
                f"{self.noise.shape}, the smallest {self.noise.min():g}. Give the standard "
                "deviation of x given z."
            )

    def mean(self, z):
        """The mean of x given z."""
        return jnp.ravel(self.network(z))

    def log_prior(self, z):
        return -(jnp.sum(z**2) + z.size * LOG_2PI) / 2

    def log_likelihood(self, x, z):
        return (
            -jnp.sum(((x - self.mean(z)) / self.noise) ** 2 + 2 * jnp.log(self.noise) + LOG_2PI) / 2
        )

    @simulation
    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.normal(key_z, (self.latent_dim,))
        mean = self.mean(z)
        return z, mean + self.noise * jax.random.normal(key_x, mean.shape, mean.dtype)


@jax.tree_util.register_pytree_node_class
class Live:
    """A Flax nnx module, which changes as it is trained: its weights are read whenever it is taken
    apart, and put together it is a ``Split`` of them.
    """

    def __init__(self, module: Any):
        self.module = module

    def split(self) -> Split:
        from flax import nnx

        structure, weights = nnx.split(self.module)
        return Split(structure, nnx.to_pure_dict(weights))

    def tree_flatten(self) -> tuple[tuple[Any], Any]:
        split = self.split()
        return (split.weights,), split.structure

    @classmethod
    def tree_unflatten(cls, structure: Any, children: tuple[Any]) -> Split:
        return Split(structure, *children)

    def __call__(self, z):
        return self.split()(z)


class Split(eqx.Module):
    """A Flax nnx module as its structure and its weights."""

    structure: Any = eqx.field(static=True)
    weights: Any

    def __call__(self, z):
        from flax import nnx

        return nnx.merge(self.structure, self.weights)(z)


class Bound(eqx.Module):
    """A Flax linen module and its variables."""

    module: Any = eqx.field(static=True)
    variables: Any

    def __call__(self, z):
        return self.module.apply(self.variables, z)


def as_pytree(network: Any) -> Any:
    """The network with its weights as leaves, so that two of one form share one compilation."""
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(network).__mro__}
    if any(kind.startswith("flax.nnx.") for kind in kinds):
        return Live(network)
    if any(kind.startswith("flax.linen.") for kind in kinds):
        if network.scope is None:
            raise TypeError(
                "network: expected a Flax linen module with its variables; this one has none. Give "
                "module.bind({'params': params})."
            )
        return Bound(*network.unbind())
    return network


def found_dim(network: Any) -> int:
    """The one size among those of the weights that the network takes."""
    sizes = sorted(
        {size for leaf in jax.tree.leaves(network) if hasattr(leaf, "shape") for size in leaf.shape}
    )
    fitting = [size for size in sizes if takes(network, size)]
    if len(fitting) != 1:
        which = f"{len(fitting)} sizes fit" if fitting else "none fits"
        raise ValueError(
            f"latent_dim: expected the weights to show the size of z; {which}. Give latent_dim=, "
            "the length of z."
        )
    return fitting[0]


def takes(network: Any, size: int) -> bool:
    try:
        jax.eval_shape(network, jax.ShapeDtypeStruct((size,), jnp.float32))
    except Exception:  # whatever a network raises at a wrong shape
        return False
    return True

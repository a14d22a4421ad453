"""Probabilistic PCA on a ball (Appendix C.2): the likelihood's normaliser depends on z, by the length of weight z alone."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._jax import as_float64
from ..kernels.weights import log_ball_bump
from .ball import ball_mass
from .base import LatentVariableModel, simulation
from .gaussian import LOG_2PI, check_shapes

PROPOSALS = 300  # of the rejection sampler, before it settles for a point well inside the ball, as the paper does
INSIDE = 0.99


class TruncatedPPCA(LatentVariableModel):
    """p(x | z) proportional to bump(x) N(x; weight z, noise_scale^2 I), z ~ N(0, I).

    The bump is 1 for |x| up to ``flat_radius`` and falls smoothly to 0 at ``radius``. Since it is radial, the likelihood's
    normaliser is a function of |weight z|, tabulated when the model is made.

    Parameters
    ----------
    weight : (D, Dz) array
    noise_scale, radius, flat_radius : float
    """

    weight: np.ndarray = eqx.field(converter=as_float64)
    noise_scale: np.ndarray = eqx.field(converter=as_float64)
    radius: np.ndarray = eqx.field(converter=as_float64)
    flat_radius: np.ndarray = eqx.field(converter=as_float64)
    log_mass: Any = eqx.field(init=False, default=None)

    support: ClassVar[Any] = "real"

    def __check_init__(self):
        check_shapes("weight", self.weight, "noise_scale", self.noise_scale, (), np.zeros(()))
        if self.radius.ndim or self.flat_radius.ndim or not 0 <= self.flat_radius < self.radius < np.inf:
            raise ValueError(
                f"TruncatedPPCA: expected 0 <= flat_radius < radius; got flat_radius {self.flat_radius} and radius {self.radius}. "
                "The density falls to zero between the two."
            )
        radii = (float(radius / self.noise_scale) for radius in (self.flat_radius, self.radius))
        object.__setattr__(self, "log_mass", ball_mass(len(self.weight), *radii))  # here, where the parameters are known to be good

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        """log bump(x) + log N(x; weight z, noise_scale^2 I) - log E bump(weight z + noise)."""
        mean, variance = self.weight @ z, self.noise_scale**2
        log_normal = -(jnp.sum((x - mean) ** 2) / variance + x.size * (jnp.log(variance) + LOG_2PI)) / 2
        return self.log_bump(x) + log_normal - self.log_mass(jnp.sum(mean**2) / variance)

    def log_likelihood_at(self, x):
        """The same as a function of z: D is in weight'x and weight'weight alone, and chains take many z for one x."""
        variance = self.noise_scale**2
        b, gram = x @ self.weight / variance, self.weight.T @ self.weight / variance
        constant = self.log_bump(x) - (x @ x / variance + x.size * (jnp.log(variance) + LOG_2PI)) / 2

        def log_likelihood(z):
            squared = z @ gram @ z
            return constant + b @ z - squared / 2 - self.log_mass(squared)

        return log_likelihood

    def log_bump(self, x):
        return log_ball_bump(x, 0.0, self.flat_radius, self.radius)

    def initial(self, key, x):
        """A draw from the prior, brought so near that rejection sampling works there."""
        z = jax.random.normal(key, self.weight.shape[1:])
        return z * jnp.minimum(1.0, self.flat_radius / (2 * jnp.linalg.norm(self.weight @ z)))

    @simulation
    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.normal(key_z, self.weight.shape[1:])
        return z, self.sample_likelihood(key_x, z)

    @simulation
    def sample_likelihood(self, key, z):
        """Rejection sampling, from a Gaussian that is drawn towards the ball where weight z lies outside.

        N(c mean, noise_scale^2 I) with c <= 1 is kept with probability bump(x) exp(tilt (x'direction - radius)),
        tilt = (1 - c) |mean| / noise_scale^2, which is at most 1 on the ball; c = 1 is the paper's proposal.
        """
        mean = self.weight @ z
        length = jnp.maximum(jnp.linalg.norm(mean), 1e-300)
        across = (mean.size - 1) * self.noise_scale**2  # the noise's squared length across the direction
        reach = jnp.sqrt(jnp.maximum(self.radius**2 - across, self.radius**2 / 4))
        c = jnp.minimum(1.0, reach / length)
        tilt = (1 - c) * length / self.noise_scale**2

        def propose(state):
            _, _, count, key = state
            key, key_noise, key_keep = jax.random.split(key, 3)
            x = c * mean + self.noise_scale * jax.random.normal(key_noise, mean.shape, mean.dtype)
            log_keep = self.log_bump(x) + tilt * (x @ mean / length - self.radius)
            return x, jnp.log(jax.random.uniform(key_keep, (), mean.dtype)) < log_keep, count + 1, key

        def unfinished(state):
            _, kept, count, _ = state
            return ~kept & (count < PROPOSALS)

        hopeless = tilt * (self.radius - reach) > np.log(PROPOSALS)
        start = (mean, jnp.asarray(False), jnp.where(hopeless, PROPOSALS - 1, 0), key)
        x, kept, _, _ = jax.lax.while_loop(unfinished, propose, start)
        return jnp.where(kept, x, x * INSIDE * self.flat_radius / jnp.linalg.norm(x))

"""Probabilistic PCA on a ball (Appendix C.2): the likelihood's normaliser depends on z, by the
length of weight z alone.

It is how much of a Gaussian a smooth ball keeps: E bump(|mean + noise|), a function of |mean|
alone. In units of the noise the length rho = |mean + noise| is noncentral chi, with a = |mean|, D
degrees of freedom and nu = D/2 - 1: rho^(D-1) 2^-nu exp(-(rho - a)^2 / 2) B(a rho), B(w) = exp(-w)
(w/2)^-nu I_nu(w).
"""

from __future__ import annotations

from functools import lru_cache
from math import factorial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.polynomial import Polynomial
from scipy.special import gammaln, ive, log_expit

from .._jax import as_float64
from ..kernels.compose import log_ball_bump
from .base import LatentVariableModel, simulation
from .gaussian import LOG_2PI, check_shapes

# of the rejection sampler, before it settles for a point well inside the ball, as the paper does
PROPOSALS = 300
INSIDE = 0.99
LARGE_ORDER = 20.0  # from which ten terms of Debye's expansion are exact to rounding
DROP = 42.0  # the logarithm of what is left out of an integral, relative to the integrand's peak
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
KNOTS = 1536
FARTHEST = 100.0  # means up to this many radii, beyond which the leading term is exact enough
GOLDEN = (np.sqrt(5) - 1) / 2


class TruncatedPPCA(LatentVariableModel):
    """p(x | z) proportional to bump(x) N(x; weight z, noise_scale^2 I), z ~ N(0, I).

    The bump is 1 for |x| up to ``flat_radius`` and falls smoothly to 0 at ``radius``. Since it is
    radial, the likelihood's normaliser is a function of |weight z|, tabulated when the model is
    made.

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
        if (
            self.radius.ndim
            or self.flat_radius.ndim
            or not 0 <= self.flat_radius < self.radius < np.inf
        ):
            raise ValueError(
                "TruncatedPPCA: expected 0 <= flat_radius < radius; got flat_radius "
                f"{self.flat_radius} and radius {self.radius}. The density falls to zero between "
                "the two."
            )
        radii = (float(radius / self.noise_scale) for radius in (self.flat_radius, self.radius))
        # here, where the parameters are known to be good
        object.__setattr__(self, "log_mass", ball_mass(len(self.weight), *radii))

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        """log bump(x) + log N(x; weight z, noise_scale^2 I) - log E bump(weight z + noise)."""
        mean, variance = self.weight @ z, self.noise_scale**2
        log_normal = (
            -(jnp.sum((x - mean) ** 2) / variance + x.size * (jnp.log(variance) + LOG_2PI)) / 2
        )
        return self.log_bump(x) + log_normal - self.log_mass(jnp.sum(mean**2) / variance)

    def log_likelihood_at(self, x):
        """The same as a function of z: D is in weight'x and weight'weight alone, and chains take
        many z for one x.
        """
        variance = self.noise_scale**2
        b, gram = x @ self.weight / variance, self.weight.T @ self.weight / variance
        constant = (
            self.log_bump(x) - (x @ x / variance + x.size * (jnp.log(variance) + LOG_2PI)) / 2
        )

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
        """Rejection sampling, from a Gaussian that is drawn towards the ball where weight z lies
        outside.

        N(c mean, noise_scale^2 I) with c <= 1 is kept with probability bump(x) exp(tilt
        (x'direction - radius)), tilt = (1 - c) |mean| / noise_scale^2, which is at most 1 on the
        ball; c = 1 is the paper's proposal.
        """
        mean = self.weight @ z
        length = jnp.maximum(jnp.linalg.norm(mean), 1e-300)
        # the noise's squared length across the direction
        across = (mean.size - 1) * self.noise_scale**2
        reach = jnp.sqrt(jnp.maximum(self.radius**2 - across, self.radius**2 / 4))
        c = jnp.minimum(1.0, reach / length)
        tilt = (1 - c) * length / self.noise_scale**2

        def propose(state):
            _, _, count, key = state
            key, key_noise, key_keep = jax.random.split(key, 3)
            x = c * mean + self.noise_scale * jax.random.normal(key_noise, mean.shape, mean.dtype)
            log_keep = self.log_bump(x) + tilt * (x @ mean / length - self.radius)
            return (
                x,
                jnp.log(jax.random.uniform(key_keep, (), mean.dtype)) < log_keep,
                count + 1,
                key,
            )

        def unfinished(state):
            _, kept, count, _ = state
            return ~kept & (count < PROPOSALS)

        hopeless = tilt * (self.radius - reach) > np.log(PROPOSALS)
        start = (mean, jnp.asarray(False), jnp.where(hopeless, PROPOSALS - 1, 0), key)
        x, kept, _, _ = jax.lax.while_loop(unfinished, propose, start)
        return jnp.where(kept, x, x * INSIDE * self.flat_radius / jnp.linalg.norm(x))


class BallMass(eqx.Module):
    """log E bump(|mean + noise|) as a function of |mean|^2, in units of the noise.

    What -s^2 / 2 leaves is a quintic spline, where s is a smooth version of max(|mean| - radius,
    0). Its variable v is chosen so that it is smooth in the mean at 0, and its knots lie densely
    where the Gaussian leaves the ball.
    """

    radius: np.ndarray
    centre: np.ndarray
    width: np.ndarray
    start: np.ndarray
    step: np.ndarray
    coefficients: np.ndarray  # (pieces, 6), the highest power first

    def __call__(self, squared):
        q = jnp.sqrt(1 + squared)
        v = jnp.arcsinh((q - self.centre) / self.width)
        place = jnp.minimum((v - self.start) / self.step, len(self.coefficients))
        piece = jnp.clip(place.astype(jnp.int32), 0, len(self.coefficients) - 1)
        fraction = place - piece
        rest = jnp.zeros(())
        for coefficient in jnp.asarray(self.coefficients)[piece]:
            rest = rest * fraction + coefficient
        return rest - smooth_excess(q - self.radius, self.width) ** 2 / 2


def smooth_excess(difference, width):
    """Smooth, near max(difference, 0) where the difference is large against the width."""
    return (difference + (difference**2 + width**2) ** 0.5) / 2


@lru_cache(maxsize=64)
def ball_mass(dim: int, flat_radius: float, radius: float) -> BallMass:
    """The table for noise of unit scale in ``dim`` dimensions."""
    from scipy.interpolate import make_interp_spline

    centre, width = np.sqrt(1 + max(radius**2 - dim, 0)), 1 + (radius - flat_radius) / 4
    farthest = FARTHEST * (radius + np.sqrt(dim) + 10)
    v = np.linspace(
        np.arcsinh((1 - centre) / width), np.arcsinh((farthest - centre) / width), KNOTS
    )
    q = np.maximum(centre + width * np.sinh(v), 1)
    values = (
        log_mass(np.sqrt(q**2 - 1), dim, flat_radius, radius)
        + smooth_excess(q - radius, width) ** 2 / 2
    )
    spline = make_interp_spline(np.arange(KNOTS), values, k=5)
    pieces = np.stack(
        [spline(np.arange(KNOTS - 1), power) / factorial(power) for power in range(5, -1, -1)], 1
    )
    return BallMass(
        *(
            np.asarray(value, np.float64)
            for value in (radius, centre, width, v[0], v[1] - v[0], pieces)
        )
    )


def log_mass(
    lengths: Float[np.ndarray, " K"], dim: int, flat_radius: float, radius: float
) -> Float[np.ndarray, " K"]:
    """log E bump(|mean + noise|) for means of these lengths, by Gauss-Legendre quadrature over rho
    where the integrand matters.
    """

    def log_integrand(rho):
        return (
            (dim - 1) * np.log(rho)
            - (dim / 2 - 1) * np.log(2)
            - (rho - lengths) ** 2 / 2
            + log_scaled_bessel(dim / 2 - 1, lengths * rho)
            + log_bump((rho - flat_radius) / (radius - flat_radius))
        )

    peak = golden_section(
        log_integrand, np.full_like(lengths, 1e-12 * radius), np.full_like(lengths, radius)
    )
    top = log_integrand(peak)
    low, high = (
        bisection(lambda rho: log_integrand(rho) > top - DROP, peak, end)
        for end in (1e-300, radius)
    )
    seam = np.clip(flat_radius, low, high)  # the bump is not analytic there
    total = np.zeros_like(lengths)
    for start, stop in ((low, seam), (seam, high)):
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            rho = (start + stop) / 2 + (stop - start) / 2 * node
            total += weight * (stop - start) / 2 * np.exp(log_integrand(rho) - top)
    return top + np.log(total)


def log_bump(t):
    """``log_smooth_step`` in NumPy, very small instead of -inf from t = 1 on."""
    inside = np.clip(t, 1e-300, 1 - 1e-16)
    return np.where(t <= 0, 0.0, log_expit(1 / inside - 1 / (1 - inside)))


def log_scaled_bessel(order: float, w):
    """log(exp(-w) (w/2)^-order I_order(w)), also where I itself is out of range."""
    if order < LARGE_ORDER:
        safe = np.maximum(w, 1e-5)
        return np.where(
            w > 1e-5, np.log(ive(order, safe)) - order * np.log(safe / 2), -w - gammaln(order + 1)
        )
    root = np.hypot(1, w / order)
    series = sum(term(1 / root) / order**k for k, term in enumerate(DEBYE))
    exponent = order / (root + w / order) - order * np.log((1 + root) * order / 2)
    return exponent - np.log(2 * np.pi * order * root) / 2 + np.log(series)


def debye_terms(count: int) -> list[Polynomial]:
    """u_k(t) of the expansion of I_nu(nu x) for large orders (DLMF 10.41.9)."""
    t, terms = Polynomial([0, 1]), [Polynomial([1.0])]
    for _ in range(count):
        terms.append(
            t**2 * (1 - t**2) * terms[-1].deriv() / 2 + ((1 - 5 * t**2) * terms[-1]).integ() / 8
        )
    return terms


DEBYE = debye_terms(10)


def golden_section(function, low, high):
    """Where a function with one peak has it, in every column."""
    for _ in range(45):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        rises = function(left) < function(right)
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    return (low + high) / 2


def bisection(holds, inside, end):
    """How far towards ``end`` from ``inside`` a condition holds."""
    outside = np.full_like(inside, end)
    for _ in range(30):
        middle = (inside + outside) / 2
        here = holds(middle)
        inside, outside = np.where(here, middle, inside), np.where(here, outside, middle)
    return outside

"""How much of a Gaussian a smooth ball keeps: E bump(|mean + noise|), a function of |mean| alone.

In units of the noise the length rho = |mean + noise| is noncentral chi, with a = |mean|, D degrees of freedom and nu = D/2 - 1:
rho^(D-1) 2^-nu exp(-(rho - a)^2 / 2) B(a rho), B(w) = exp(-w) (w/2)^-nu I_nu(w).
"""

from __future__ import annotations

from functools import lru_cache
from math import factorial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.polynomial import Polynomial
from scipy.special import gammaln, ive, log_expit

LARGE_ORDER = 20.0  # from which ten terms of Debye's expansion are exact to rounding
DROP = 42.0  # the logarithm of what is left out of an integral, relative to the integrand's peak
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
KNOTS = 1536
FARTHEST = 100.0  # means up to this many radii, beyond which the leading term is exact enough
GOLDEN = (np.sqrt(5) - 1) / 2


class BallMass(eqx.Module):
    """log E bump(|mean + noise|) as a function of |mean|^2, in units of the noise.

    What -s^2 / 2 leaves is a quintic spline, where s is a smooth version of max(|mean| - radius, 0). Its variable v is chosen so
    that it is smooth in the mean at 0, and its knots lie densely where the Gaussian leaves the ball.
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
    v = np.linspace(np.arcsinh((1 - centre) / width), np.arcsinh((farthest - centre) / width), KNOTS)
    q = np.maximum(centre + width * np.sinh(v), 1)
    values = log_mass(np.sqrt(q**2 - 1), dim, flat_radius, radius) + smooth_excess(q - radius, width) ** 2 / 2
    spline = make_interp_spline(np.arange(KNOTS), values, k=5)
    pieces = np.stack([spline(np.arange(KNOTS - 1), power) / factorial(power) for power in range(5, -1, -1)], 1)
    return BallMass(*(np.asarray(value, np.float64) for value in (radius, centre, width, v[0], v[1] - v[0], pieces)))


def log_mass(lengths: Float[np.ndarray, " K"], dim: int, flat_radius: float, radius: float) -> Float[np.ndarray, " K"]:
    """log E bump(|mean + noise|) for means of these lengths, by Gauss-Legendre quadrature over rho where the integrand matters."""

    def log_integrand(rho):
        return (
            (dim - 1) * np.log(rho)
            - (dim / 2 - 1) * np.log(2)
            - (rho - lengths) ** 2 / 2
            + log_scaled_bessel(dim / 2 - 1, lengths * rho)
            + log_bump((rho - flat_radius) / (radius - flat_radius))
        )

    peak = golden_section(log_integrand, np.full_like(lengths, 1e-12 * radius), np.full_like(lengths, radius))
    top = log_integrand(peak)
    low, high = (bisection(lambda rho: log_integrand(rho) > top - DROP, peak, end) for end in (1e-300, radius))
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
        return np.where(w > 1e-5, np.log(ive(order, safe)) - order * np.log(safe / 2), -w - gammaln(order + 1))
    root = np.hypot(1, w / order)
    series = sum(term(1 / root) / order**k for k, term in enumerate(DEBYE))
    exponent = order / (root + w / order) - order * np.log((1 + root) * order / 2)
    return exponent - np.log(2 * np.pi * order * root) / 2 + np.log(series)


def debye_terms(count: int) -> list[Polynomial]:
    """u_k(t) of the expansion of I_nu(nu x) for large orders (DLMF 10.41.9)."""
    t, terms = Polynomial([0, 1]), [Polynomial([1.0])]
    for _ in range(count):
        terms.append(t**2 * (1 - t**2) * terms[-1].deriv() / 2 + ((1 - 5 * t**2) * terms[-1]).integ() / 8)
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

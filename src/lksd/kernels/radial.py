"""Kernels of the preconditioned squared distance r = (x - y)' Lambda^-1 (x - y)."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from .._float64 import float64_values
from .._validation import check_number
from .bandwidth import covariance_preconditioner, median_preconditioner
from .base import Domain, Kernel


class Profile(NamedTuple):
    """A function of r with its first two derivatives."""

    value: jnp.ndarray
    first: jnp.ndarray
    second: jnp.ndarray


def positive_definite(preconditioner) -> np.ndarray:
    """Lambda as a float64 scalar, (D,) or (D, D) array; anything not positive definite is refused."""
    try:
        matrix = np.asarray(preconditioner, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"preconditioner: expected numbers; got {preconditioner!r}. For a median scale use .median(x).") from error
    if matrix.ndim > 2 or matrix.size == 0 or (matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1]):
        raise ValueError(
            f"preconditioner: expected a scalar, a (D,) or a (D, D) array; got shape {matrix.shape}. "
            "Give the matrix Lambda, not the data."
        )
    if not np.isfinite(matrix).all():
        raise ValueError("preconditioner: expected finite values; got NaN or infinity. Remove them from the data first.")
    if matrix.ndim < 2:
        if not (matrix > 0).all():
            raise ValueError(
                f"preconditioner: expected positive values; the smallest is {matrix.min():g}. "
                "It is a squared scale, so it must be above zero."
            )
        return matrix
    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=1e-12 * np.abs(matrix).max()):
        raise ValueError("preconditioner: expected a symmetric matrix; got one that is not. Use (A + A.T) / 2.")
    smallest, *_, largest = np.linalg.eigvalsh(matrix) if len(matrix) > 1 else [matrix[0, 0]] * 2
    if smallest <= len(matrix) * np.finfo(float).eps * abs(largest):
        raise ValueError(
            f"preconditioner: expected a positive definite matrix; its smallest eigenvalue is {smallest:g}. "
            "Add a multiple of the identity, or use covariance(x, shrinkage=...)."
        )
    return matrix


class Radial(Kernel):
    """A kernel phi(r); the profile phi and its derivatives unlock the matrix-product path."""

    preconditioner: eqx.AbstractVar[np.ndarray]
    source: eqx.AbstractVar[str]

    @property
    def domain(self) -> Domain:
        return "real"

    @abstractmethod
    def profile(self, r) -> Profile:
        """phi(r), phi'(r), phi''(r)."""

    @float64_values
    def __call__(self, x, y):
        whitened = whiten(self.preconditioner, jnp.asarray(x) - jnp.asarray(y))
        return self.profile(jnp.sum(whitened**2)).value

    @classmethod
    def median(cls, x, **parameters) -> Radial:
        """The kernel with Lambda = median^2 I, the median over all pairwise distances of ``x``."""
        preconditioner, source = median_preconditioner(x)
        return cls(preconditioner, source=source, **parameters)

    @classmethod
    def covariance(cls, x, shrinkage: float = 0.01, **parameters) -> Radial:
        """The kernel with Lambda = (1 - shrinkage) S + shrinkage tr(S)/D I, S the covariance of ``x``."""
        preconditioner, source = covariance_preconditioner(x, shrinkage)
        return cls(preconditioner, source=source, **parameters)

    def __str__(self) -> str:
        matrix = np.asarray(self.preconditioner)
        scale = f"Lambda = {float(matrix):.4g}" if matrix.ndim == 0 else f"Lambda of shape {matrix.shape}"
        return f"{type(self).__name__}({scale}{', ' + self.source if self.source else ''}{self._parameters()})"

    def _parameters(self) -> str:
        return ""


class IMQ(Radial):
    """Inverse multiquadric (c^2 + r)^-beta, the paper's recommendation.

    Parameters
    ----------
    preconditioner : float, (D,) or (D, D) array
        Lambda, in squared units of the data.
    c : float
        Any positive number.
    beta : float
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> kernel = lksd.kernels.IMQ(preconditioner=4.0)
    >>> round(float(kernel(np.zeros(2), np.array([2.0, 0.0]))), 6)
    0.707107
    """

    preconditioner: np.ndarray = eqx.field(default=1.0, converter=positive_definite)
    c: np.ndarray = eqx.field(default=1.0, converter=lambda c: np.asarray(check_number("c", c)))
    beta: float = eqx.field(default=0.5, static=True, converter=lambda beta: check_number("beta", beta))
    source: str = eqx.field(default="", static=True)

    def __check_init__(self):
        if self.c <= 0:
            raise ValueError(f"c: expected one positive number; got {self.c}. The paper's choice is 1.")
        if not 0 < self.beta < 1:
            raise ValueError(f"beta: expected a number between 0 and 1; got {self.beta}. The paper's choice is 0.5.")

    def profile(self, r) -> Profile:
        if self.beta == 0.5:  # the fastest on accelerators
            value = jax.lax.rsqrt(self.c**2 + r)
            inverse = value**2
        else:
            inverse = 1 / (self.c**2 + r)
            value = inverse**self.beta
        first = -self.beta * value * inverse
        return Profile(value, first, -(self.beta + 1) * first * inverse)

    def _parameters(self) -> str:
        c = "" if self.c == 1 else f", c = {float(self.c):g}"
        return c + ("" if self.beta == 0.5 else f", beta = {self.beta:g}")


class Gaussian(Radial):
    """Exponentiated quadratic exp(-r / 2)."""

    preconditioner: np.ndarray = eqx.field(default=1.0, converter=positive_definite)
    source: str = eqx.field(default="", static=True)

    def profile(self, r) -> Profile:
        value = jnp.exp(-r / 2)
        return Profile(value, -value / 2, value / 4)


def whiten(preconditioner, x):
    """Lambda^-1/2 x along the last axis (a Cholesky factor for a full Lambda)."""
    if preconditioner.ndim < 2:
        return x / jnp.sqrt(preconditioner)
    return solve_triangular(jnp.linalg.cholesky(preconditioner), x.T, lower=True).T


def precondition(preconditioner, x):
    """Lambda^-1 x along the last axis."""
    if preconditioner.ndim < 2:
        return x / preconditioner
    return jnp.linalg.solve(preconditioner, x.T).T

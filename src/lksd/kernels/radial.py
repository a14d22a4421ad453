"""Kernels of the preconditioned squared distance r = (x - y)' Lambda^-1 (x - y), and scales taken
from data.

The hypothesis tested is the one at the scale reported.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Bool, Float

from .._jax import float64_values
from .._validation import check_count, check_number, check_reals
from .base import Domain, Kernel

SUBSET = 2_000  # rows from which median distances are taken
FAR = 50  # robust standard deviations
ROBUST = 1.4826  # from the median absolute deviation of normal numbers to their standard deviation
SAMPLE = 10_000  # rows from which a column's median and deviation are taken


class Profile(NamedTuple):
    """A function of r with its first two derivatives."""

    value: jnp.ndarray
    first: jnp.ndarray
    second: jnp.ndarray


def positive_definite(preconditioner) -> np.ndarray:
    """Lambda as a float64 scalar, (D,) or (D, D) array; anything not positive definite
    is refused.
    """
    try:
        matrix = np.asarray(preconditioner, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"preconditioner: expected numbers; got {preconditioner!r}. For a median scale use "
            ".median(x)."
        ) from error
    if (
        matrix.ndim > 2
        or matrix.size == 0
        or (matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1])
    ):
        raise ValueError(
            "preconditioner: expected a scalar, a (D,) or a (D, D) array; got shape "
            f"{matrix.shape}. Give the matrix Lambda, not the data."
        )
    if not np.isfinite(matrix).all():
        raise ValueError(
            "preconditioner: expected finite values; got NaN or infinity. Remove them from the "
            "data first."
        )
    if matrix.ndim < 2:
        if not (matrix > 0).all():
            raise ValueError(
                f"preconditioner: expected positive values; the smallest is {matrix.min():g}. It "
                "is a squared scale, so it must be above zero."
            )
        return matrix
    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=1e-12 * np.abs(matrix).max()):
        raise ValueError(
            "preconditioner: expected a symmetric matrix; got one that is not. Use (A + A.T) / 2."
        )
    smallest, *_, largest = np.linalg.eigvalsh(matrix) if len(matrix) > 1 else [matrix[0, 0]] * 2
    if smallest <= len(matrix) * np.finfo(float).eps * abs(largest):
        raise ValueError(
            "preconditioner: expected a positive definite matrix; its smallest eigenvalue is "
            f"{smallest:g}. Add a multiple of the identity, or use covariance(x, shrinkage=...)."
        )
    return matrix


class Radial(Kernel):
    """A kernel phi(r); the profile phi and its derivatives unlock the matrix-product path."""

    preconditioner: eqx.AbstractVar[np.ndarray]
    source: eqx.AbstractVar[str]

    domain: ClassVar[Domain] = "real"

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
        return cls.at_median(check_sample(x), **parameters)

    @classmethod
    def at_median(cls, rows: np.ndarray, **parameters) -> Radial:
        """The same for observations that are checked."""
        preconditioner, source = median_preconditioner(rows)
        return cls(preconditioner, source=source, **parameters)

    @classmethod
    def covariance(cls, x, shrinkage: float = 0.01, **parameters) -> Radial:
        """The kernel with Lambda = (1 - shrinkage) S + shrinkage tr(S)/D I, S the covariance of
        ``x``.
        """
        preconditioner, source = covariance_preconditioner(x, shrinkage)
        return cls(preconditioner, source=source, **parameters)

    def __str__(self) -> str:
        matrix = np.asarray(self.preconditioner)
        scale = (
            f"Lambda = {float(matrix):.4g}"
            if matrix.ndim == 0
            else f"Lambda of shape {matrix.shape}"
        )
        source = f", {self.source}" if self.source else ""
        return f"{type(self).__name__}({scale}{source}{self._parameters()})"

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
    beta: float = eqx.field(default=0.5, static=True, converter=partial(check_number, "beta"))
    source: str = eqx.field(default="", static=True)

    def __check_init__(self):
        if self.c <= 0:
            raise ValueError(
                f"c: expected one positive number; got {self.c}. The paper's choice is 1."
            )
        if not 0 < self.beta < 1:
            raise ValueError(
                f"beta: expected a number between 0 and 1; got {self.beta}. The paper's choice is "
                "0.5."
            )

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


class PerCoordinate(Kernel):
    """One kernel for each coordinate: k_d(x, y) = base(x, y) own(x_d, y_d).

    In high dimension a radial kernel is nearly constant and sees little but linear features; a
    factor that lives on the coordinate itself keeps the test sensitive to its shape.

    Parameters
    ----------
    base : Radial
        The kernel on whole observations.
    own : Radial
        The one-dimensional factor; its preconditioner is one squared scale for all coordinates or
        a (D,) array of them.
    """

    base: Radial
    own: Radial

    domain: ClassVar[Domain] = "real"

    def __check_init__(self):
        if not isinstance(self.base, Radial) or not isinstance(self.own, Radial):
            raise TypeError(
                f"PerCoordinate: expected two radial kernels; got {self.base} and {self.own}. Use "
                "IMQ or Gaussian."
            )
        if self.own.preconditioner.ndim > 1:
            raise ValueError(
                "PerCoordinate: expected own scales as a scalar or (D,); got shape "
                f"{self.own.preconditioner.shape}. They are one-dimensional kernels."
            )

    @classmethod
    def median(cls, x, base: type[Radial] = IMQ, own: type[Radial] = IMQ) -> PerCoordinate:
        """Each coordinate's own median distance for ``own``, half the median distance of whole
        observations for ``base``.

        At half the median the factor on whole observations still tells near from far in high
        dimension; docs/kernels.md has the study behind it.
        """
        return cls.at_median(check_sample(x), base, own)

    @classmethod
    def at_median(
        cls, rows: np.ndarray, base: type[Radial] = IMQ, own: type[Radial] = IMQ
    ) -> PerCoordinate:
        """The same for observations that are checked."""
        scales, own_source = coordinate_medians(rows)
        squared, source = median_preconditioner(rows)
        return cls(base(squared / 4, source=f"half the {source}"), own(scales, source=own_source))

    @float64_values
    def __call__(self, x, y):
        r = (jnp.asarray(x) - jnp.asarray(y)) ** 2 / self.own.preconditioner
        return self.base(x, y) * self.own.profile(r).value

    def __str__(self) -> str:
        return f"PerCoordinate({self.base}, {self.own})"


def check_sample(x) -> np.ndarray:
    rows = check_reals("x", x)
    check_count("x", len(rows), minimum=2)
    return rows


def subset(x: np.ndarray) -> tuple[np.ndarray, str]:
    """All rows up to ``SUBSET``, beyond that a fixed random subset; and how to say so."""
    if len(x) <= SUBSET:
        return x, "all pairs"
    rows = np.random.default_rng(0).choice(len(x), SUBSET, replace=False)
    return x[np.sort(rows)], f"a fixed subset of {SUBSET} rows"


def median_preconditioner(x: np.ndarray) -> tuple[np.ndarray, str]:
    """The squared median of the pairwise Euclidean distances."""
    from scipy.spatial.distance import pdist

    rows, pairs = subset(x)
    scale = float(np.median(pdist(rows)))
    if scale == 0:
        raise ValueError(
            "x: the median distance between observations is zero, so at least half of the pairs "
            "are identical. Give the scale yourself, for example IMQ(preconditioner=1.0)."
        )
    return np.asarray(scale**2), f"median of {pairs}"


def coordinate_medians(x: np.ndarray) -> tuple[np.ndarray, str]:
    """The squared median of |x_id - x_jd| for every coordinate d; the mean where that is zero."""
    scales, source = column_distances(x)
    if not scales.all():
        column = int(np.flatnonzero(scales == 0)[0])
        raise ValueError(
            f"x: column {column} is constant and has no scale. Drop the column, or give the scales "
            "yourself."
        )
    return scales**2, source


def column_distances(x: np.ndarray) -> tuple[np.ndarray, str]:
    """The typical |x_id - x_jd| of every column d, zero for a constant one."""
    rows, pairs = subset(x)
    scales, by_mean = zip(*map(median_or_mean, rows.T[:, :, None]), strict=True)
    instead = f", mean in {sum(by_mean)} of them where it is zero" if any(by_mean) else ""
    return np.array(scales), f"median of each coordinate over {pairs}{instead}"


def typical_distance(x: np.ndarray) -> tuple[float, str]:
    """The median distance of two observations, or their mean distance where that is zero."""
    rows, pairs = subset(x)
    scale, by_mean = median_or_mean(rows)
    if scale == 0:
        raise ValueError(
            "x: expected observations that differ; all distances between them are zero. Give the "
            "kernel yourself, for example kernel=lksd.kernels.IMQ(preconditioner=1.0)."
        )
    return scale, f"{'mean' if by_mean else 'median'} of {pairs}"


def median_or_mean(rows: np.ndarray) -> tuple[float, bool]:
    """The median distance of two rows; where more than half of them are equal the mean distance,
    and that this is so.
    """
    from scipy.spatial.distance import pdist

    distances = pdist(rows)
    scale = float(np.median(distances))
    return (scale, False) if scale > 0 else (float(distances.mean()), True)


def covariance_preconditioner(x, shrinkage: float) -> tuple[np.ndarray, str]:
    """(1 - shrinkage) S + shrinkage tr(S)/D I with S the sample covariance."""
    rows = check_sample(x)
    n, dim = rows.shape
    if not 0 <= check_number("shrinkage", shrinkage) <= 1:
        raise ValueError(
            f"shrinkage: expected a number between 0 and 1; got {shrinkage}. 0 is the paper's "
            "choice."
        )
    if shrinkage == 0 and n <= dim + 1:
        raise ValueError(
            f"x: {n} observations in {dim} dimensions make all Mahalanobis distances equal without "
            f"shrinkage. Set shrinkage > 0, or estimate the covariance on at least {dim + 2} other "
            "observations."
        )
    covariance = np.atleast_2d(np.cov(rows, rowvar=False))
    average = np.trace(covariance) / dim
    if average == 0:
        raise ValueError(
            "x: all observations are equal, so their covariance is zero. Give the preconditioner "
            "yourself."
        )
    matrix = (1 - shrinkage) * covariance + shrinkage * average * np.eye(dim)
    return matrix, f"covariance with shrinkage {shrinkage:g}"


def is_far(x: Float[np.ndarray, "n D"], deviations: float = FAR) -> Bool[np.ndarray, " n"]:
    """Rows with a number that is of another order of magnitude than the others of its column."""
    part = (
        x if len(x) <= SAMPLE else x[np.random.default_rng(0).choice(len(x), SAMPLE, replace=False)]
    )
    centre = np.median(part, axis=0)
    spread = ROBUST * np.median(np.abs(part - centre), axis=0)
    spread[spread == 0] = np.inf  # a column that is mostly constant has no scale
    return (np.abs(x - centre) > deviations * spread).any(1)


def column_spreads(x: Float[np.ndarray, "n D"]) -> Float[np.ndarray, " D"]:
    """The standard deviation of each column, without rows far from all others."""
    far = is_far(x)
    return x[~far].std(0) if far.any() else x.std(0)

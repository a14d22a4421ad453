"""The default kernel for real data: local, tilted, and on columns in units of their own."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._jax import as_float64, float64_values
from .._validation import check_number
from .base import Domain, Kernel, as_kernel
from .radial import Gaussian, Radial, check_sample, column_distances, typical_distance

# The squared scale, in squared median distances of whole observations, is COLUMNS / D and at least
# LEAST: about twice a column's standard deviation up to D = 8, then half the median distance.
COLUMNS, LEAST = 2.0, 0.25


class Tilted(Kernel):
    """base(x, y) (1 + slope psi(x - centre)'psi(y - centre)), psi(u) = u / sqrt(1 + (u / bound)^2).

    Radial kernels see a wrong mean far better than a wrong spread, whose witness is linear; the
    second term gives such witnesses more weight. Since psi is bounded, so is what it adds for an
    observation far from all others.

    Parameters
    ----------
    base : Radial
        The kernel that is tilted.
    centre : float or (D,) array
        The middle of the data.
    slope : float
        The weight of linear witnesses.
    bound : float
        The distance from the centre, in each column, at which psi is no longer linear.
    """

    base: Radial
    centre: np.ndarray = eqx.field(converter=as_float64)
    slope: float = eqx.field(default=0.25, converter=partial(check_number, "slope"))
    bound: float = eqx.field(default=3.0, converter=partial(check_number, "bound"))

    domain: ClassVar[Domain] = "real"

    def __check_init__(self):
        if not isinstance(self.base, Radial):
            raise TypeError(
                f"Tilted: expected a radial kernel; got {self.base}. Use Gaussian or IMQ."
            )
        if self.slope < 0 or self.bound <= 0:
            raise ValueError(
                "Tilted: expected a slope of at least 0 and a positive bound; got "
                f"{self.slope:g} and {self.bound:g}."
            )

    def psi(self, x):
        """psi(x - centre) and its derivative."""
        from_centre = x - self.centre
        shrunk = 1 / jnp.sqrt(1 + (from_centre / self.bound) ** 2)
        return from_centre * shrunk, shrunk**3

    @float64_values
    def __call__(self, x, y):
        return self.base(x, y) * (1 + self.slope * jnp.sum(self.psi(x)[0] * self.psi(y)[0]))

    def __str__(self) -> str:
        return f"Tilted({self.base}, slope = {self.slope:g}, bound = {self.bound:g})"


class Standardised(Kernel):
    """A kernel on columns in units of their own: k_d(x, y) = scale_d^2 base(x / scale, y / scale).

    Its Stein kernel is that of ``base`` for x / scale, whose scores are scale times those of x: the
    units in which columns are measured do not matter. ``median``, the default of ``compare`` for
    real data, is a tilted Gaussian kernel that is local enough to see more than means in high
    dimension (docs/kernels.md).

    Parameters
    ----------
    base : Kernel
        The kernel on the columns in these units.
    scales : float or (D,) array
        The unit of each column.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(100, 3)) * [1.0, 10.0, 100.0]
    >>> print(lksd.kernels.Standardised.median(x).base)
    Tilted(Gaussian(Lambda = 3.514, 0.82 times the median of all pairs), slope = 0.25, bound = 3)
    """

    base: Kernel = eqx.field(converter=as_kernel)
    scales: np.ndarray = eqx.field(converter=as_float64)
    source: str = eqx.field(default="", static=True)

    domain: ClassVar[Domain] = "real"

    def __check_init__(self):
        if self.scales.ndim > 1 or not ((self.scales > 0) & np.isfinite(self.scales)).all():
            raise ValueError(
                "scales: expected one positive number, or one for each column; got "
                f"{self.scales!r}. They are the units of the columns."
            )

    @classmethod
    def median(cls, x, base: type[Radial] = Gaussian) -> Standardised:
        """Each column's median distance as its unit; in these units ``base``, tilted, at max(2 / D,
        1 / 4) times the squared median distance of whole observations.

        Where more than half of the distances are zero, their mean takes the place of the median; a
        column that is constant gets the median unit of the others.
        """
        return cls.at_median(check_sample(x), base)

    @classmethod
    def at_median(cls, rows: np.ndarray, base: type[Radial] = Gaussian) -> Standardised:
        """The same for observations that are checked."""
        scales, source = column_distances(rows)
        varying = scales > 0
        scales = np.where(varying, scales, np.median(scales[varying]) if varying.any() else 1.0)
        rows = rows / scales
        distance, of_rows = typical_distance(rows)
        factor = max(COLUMNS / rows.shape[1], LEAST)
        told = f"{np.sqrt(factor):.2g} times the {of_rows}"
        local = Tilted(base(factor * distance**2, source=told), np.median(rows, axis=0))
        return cls(local, scales, source)

    @float64_values
    def __call__(self, x, y):
        return self.scales**2 * self.base(x / self.scales, y / self.scales)

    def __str__(self) -> str:
        source = f": {self.source}" if self.source else ""
        return f"Standardised({self.base}, units of columns{source})"

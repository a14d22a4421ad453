"""Several kernels to be tested together."""

from __future__ import annotations

from .bandwidth import median_preconditioner
from .base import Kernel
from .compose import PerCoordinate
from .radial import IMQ

SCALES = {"half the": 0.25, "": 1.0, "twice the": 4.0}  # factors of the squared median distance


def family(x) -> list[Kernel]:
    """Kernels that see different things, for ``kernel=`` of ``compare`` and ``rank``, which correct for their number.

    IMQ at half the median distance, at the median and at twice the median; one kernel for each coordinate; and IMQ with the
    covariance of ``x``.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> result = lksd.compare_scores(x, -(x - 1), -x, lksd.kernels.family(x))
    >>> len(result.tests), len(result.rejected)
    (5, 5)
    """
    squared, source = median_preconditioner(x)
    scales = [IMQ(factor * squared, source=f"{name} {source}".strip()) for name, factor in SCALES.items()]
    return [*scales, PerCoordinate.median(x), IMQ.covariance(x)]

"""Whether a kernel that somebody else wrote is positive definite, as far as its values on the data can tell."""

from __future__ import annotations

import math
from dataclasses import fields

import jax.numpy as jnp
import numpy as np

from .base import Kernel, Pointwise
from .gram import kernel_block

ROWS, ENTRIES = 200, 4_000_000  # of the data, and of the values at them
ROUNDING = {8: 1e-8, 4: 1e-3}  # of the largest eigenvalue, by the bytes of a number
OURS = __name__.partition(".")[0]


def is_known(kernel: Kernel) -> bool:
    """Whether it is positive definite by construction: one of this library, made of such."""
    if isinstance(kernel, Pointwise) or type(kernel).__module__.partition(".")[0] != OURS:
        return False
    return all(is_known(part) for field in fields(kernel) if isinstance(part := getattr(kernel, field.name), Kernel))


def check_definite(kernel: Kernel, x: np.ndarray, size: int) -> None:
    """Refuse a kernel whose matrix on some of the observations is not symmetric or has a negative eigenvalue.

    ``size`` is that of a number of the kernel, in bytes.
    """
    if is_known(kernel):
        return
    count = min(len(x), ROWS, max(20, math.isqrt(ENTRIES // x.shape[1])))
    chosen = (np.arange(count) * len(x)) // count
    points = jnp.asarray(x[chosen])
    values = np.asarray(kernel_block(kernel, points, points)).reshape(count, count, -1)
    if not np.isfinite(values).all():
        return  # which is said of all observations, with the first of them
    rounding = ROUNDING.get(size, 1e-1)
    for matrix in np.moveaxis(values, -1, 0):
        largest = np.abs(matrix).max()
        i, j = np.unravel_index(np.argmax(np.abs(matrix - matrix.T)), matrix.shape)
        if abs(matrix[i, j] - matrix[j, i]) > rounding * largest:
            raise ValueError(
                f"kernel: expected a symmetric one; {kernel} gives {matrix[i, j]:.4g} for rows {chosen[i]} and {chosen[j]} of x, "
                f"{matrix[j, i]:.4g} for them the other way round. Use k(x, y) + k(y, x)."
            )
        eigenvalues = np.linalg.eigvalsh((matrix + matrix.T) / 2)
        if eigenvalues[0] < -rounding * np.abs(eigenvalues).max():
            raise ValueError(
                f"kernel: expected a positive definite one; the matrix of {kernel} on {count} observations has eigenvalues from "
                f"{eigenvalues[0]:.4g} to {eigenvalues[-1]:.4g}, and none may be negative. Check its signs and parameters."
            )

"""What a kernel is, and whether one that somebody else wrote is positive definite on the data, as
far as its values tell.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._jax import fixed, float64, once
from .._text import reason_of

Domain = Literal["real", "discrete", "any"]
ROWS, ENTRIES = 200, 4_000_000  # of the data, and of the values at them
ROUNDING = {8: 1e-8, 4: 1e-3}  # of the largest eigenvalue, by the bytes of a number
OURS = __name__.partition(".")[0]


class Kernel(eqx.Module):
    """A positive definite function of two observations.

    A subclass needs only ``__call__``, written with jax.numpy; derivatives and differences follow
    from it. Values that it reads from outside are those of each call; fields are parameters of one
    compiled program. Returning a vector of length D instead of a scalar gives every coordinate a
    kernel of its own (a diagonal matrix-valued kernel, see
    [`PerCoordinate`][lksd.kernels.PerCoordinate]).
    """

    # the space of the observations, where the kernel fits only one
    domain: ClassVar[Domain] = "any"

    @abstractmethod
    def __call__(self, x, y):
        """k(x, y) for one pair of observations, each of shape (D,)."""

    def __str__(self) -> str:
        return type(self).__name__


class Pointwise(Kernel):
    """A plain function k(x, y), or any object that can be called so, as a kernel."""

    function: Callable

    def __call__(self, x, y):
        return self.function(x, y)

    def __str__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


def as_kernel(kernel) -> Kernel:
    """``kernel`` itself, or a callable k(x, y) wrapped as a kernel."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) or not callable(kernel):
        raise TypeError(
            "kernel: expected a kernel object such as lksd.kernels.IMQ.median(x), or a function "
            f"k(x, y); got {kernel!r}. Give an instance."
        )
    # as part of a compiled function's signature
    usable = isinstance(kernel, (eqx.Module, Hashable))
    return Pointwise(kernel) if usable else Pointwise(lambda x, y: kernel(x, y))


@float64
def check_on(kernel: Kernel, x: np.ndarray, scalar: bool) -> None:
    """Refuse a kernel that fails on the observations, is seen not to be positive definite there, or
    gives one value for each coordinate where ``scalar`` is wanted.
    """
    with named_errors(kernel, x.shape[1]):
        given = kernel, x[0], x[-1]
        compute = partial(form_of, *given)
        form = once(form_of, given, compute, tuple) if fixed(kernel) else compute()
    shape = form.shape
    if shape != () and (scalar or shape != x.shape[1:]):
        raise ValueError(
            f"kernel: expected one number for a pair of observations; {kernel} gives an array of "
            f"shape {shape}. Kernels with one value for each coordinate fit the Langevin operator "
            "only."
        )
    if not is_known(kernel):
        check_definite(kernel, x, form.dtype.itemsize)


def form_of(kernel: Kernel, a, b) -> Any:
    """The shape and type of k(a, b)."""
    return jax.eval_shape(lambda a, b: jnp.asarray(kernel(a, b)), a, b)


def is_known(kernel: Kernel) -> bool:
    """Whether it is positive definite by construction: one of this library, made of such."""
    if isinstance(kernel, Pointwise) or type(kernel).__module__.partition(".")[0] != OURS:
        return False
    return all(
        is_known(part)
        for field in fields(kernel)
        if isinstance(part := getattr(kernel, field.name), Kernel)
    )


def check_definite(kernel: Kernel, x: np.ndarray, size: int) -> None:
    """Refuse a kernel whose matrix on some of the observations is not symmetric or has a negative
    eigenvalue.

    ``size`` is that of a number of the kernel, in bytes.
    """
    from .gram import kernel_block  # which knows all kernels

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
                f"kernel: expected a symmetric one; {kernel} gives {matrix[i, j]:.4g} for rows "
                f"{chosen[i]} and {chosen[j]} of x, {matrix[j, i]:.4g} for them the other way "
                "round. Use k(x, y) + k(y, x)."
            )
        eigenvalues = np.linalg.eigvalsh((matrix + matrix.T) / 2)
        if eigenvalues[0] < -rounding * np.abs(eigenvalues).max():
            raise ValueError(
                f"kernel: expected a positive definite one; the matrix of {kernel} on {count} "
                f"observations has eigenvalues from {eigenvalues[0]:.4g} to {eigenvalues[-1]:.4g}, "
                "and none may be negative. Check its signs and parameters."
            )


@contextmanager
def named_errors(kernel: Kernel, dim: int, operator: Any = None) -> Iterator[None]:
    """What goes wrong while a kernel, or an operator that somebody else wrote, is traced, as one
    sentence about it.
    """
    try:
        yield
    except Exception as error:
        if operator is not None:
            raise ValueError(
                f"operator: expected one for observations of {dim} columns and {kernel}; "
                f"{operator} fails ({reason_of(error)}). Write block with jax.numpy, without if on "
                "values, for scores of shape (models, n, ...)."
            ) from error
        raise ValueError(
            f"kernel: expected one for observations of {dim} columns; {kernel} fails on them "
            f"({reason_of(error)}). Check its parameters against the data, and write it with "
            "jax.numpy, without if on values."
        ) from error

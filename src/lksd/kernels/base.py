"""What a kernel is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Literal

import equinox as eqx
import jax
import numpy as np

from .._errors import reason_of
from .._float64 import float64

Domain = Literal["real", "discrete", "any"]


class Kernel(eqx.Module):
    """A positive definite function of two observations.

    A subclass needs only ``__call__``, written with jax.numpy; derivatives and differences follow from it. Values
    that it reads from outside are those of each call; fields are parameters of one compiled program. Returning a
    vector of length D instead of a scalar gives every coordinate a kernel of its own (a diagonal
    matrix-valued kernel, see [`PerCoordinate`][lksd.kernels.PerCoordinate]).
    """

    @property
    def domain(self) -> Domain:
        """The space of the observations, where the kernel fits only one."""
        return "any"

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
            f"kernel: expected a kernel object such as lksd.kernels.IMQ.median(x), or a function k(x, y); "
            f"got {kernel!r}. Give an instance."
        )
    usable = isinstance(kernel, (eqx.Module, Hashable))  # as part of a compiled function's signature
    return Pointwise(kernel) if usable else Pointwise(lambda x, y: kernel(x, y))


@float64
def check_on(kernel: Kernel, x: np.ndarray, scalar: bool) -> None:
    """Refuse a kernel that fails on the observations, is seen not to be positive definite there, or gives one value for each
    coordinate where ``scalar`` is wanted."""
    from .definite import check_definite

    with named_errors(kernel, x.shape[1]):
        form = jax.eval_shape(lambda a, b: jax.numpy.asarray(kernel(a, b)), x[0], x[-1])
    shape = form.shape
    if shape != () and (scalar or shape != x.shape[1:]):
        raise ValueError(
            f"kernel: expected one number for a pair of observations; {kernel} gives an array of shape {shape}. "
            "Kernels with one value for each coordinate fit the Langevin operator only."
        )
    check_definite(kernel, x, form.dtype.itemsize)


@contextmanager
def named_errors(kernel: Kernel, dim: int) -> Iterator[None]:
    """What goes wrong while a kernel is traced, as one sentence about the kernel."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"kernel: expected one for observations of {dim} columns; {kernel} fails on them ({reason_of(error)}). "
            "Check its parameters against the data, and write it with jax.numpy, without if on values."
        ) from error

"""What a kernel is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal

import equinox as eqx

Domain = Literal["real", "discrete", "any"]


class Kernel(eqx.Module):
    """A positive definite function of two observations.

    A subclass needs only ``__call__``; derivatives and differences follow from it. Returning a
    vector of length D instead of a scalar gives every coordinate a kernel of its own (a diagonal
    matrix-valued kernel, see [`PerCoordinate`][lksd.kernels.PerCoordinate]).
    """

    domain: ClassVar[Domain] = "any"

    @abstractmethod
    def __call__(self, x, y):
        """k(x, y) for one pair of observations, each of shape (D,)."""

    def __str__(self) -> str:
        return type(self).__name__


class Pointwise(Kernel):
    """A plain function k(x, y) as a kernel."""

    function: Callable = eqx.field(static=True)

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
    return Pointwise(kernel)


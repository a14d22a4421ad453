"""Double precision without touching the process's JAX configuration."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax
import numpy as np

Params = ParamSpec("Params")
Result = TypeVar("Result")


def float64(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """Run ``function`` with 64-bit JAX types in the calling thread, and restore the setting after.

    Differences of discrepancies cancel heavily, so everything from the scores to the decision is
    computed in double precision whatever the user's JAX flags are.
    """

    @functools.wraps(function)
    def wrapper(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapper


def float64_values(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """The same for a function of arrays that may also be traced: inside a transformation the caller's precision holds."""
    inner = float64(function)

    @functools.wraps(function)
    def wrapper(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        traced = any(isinstance(arg, jax.core.Tracer) for arg in args)
        return (function if traced else inner)(*args, **kwargs)

    return wrapper


def as_float64(value) -> np.ndarray:
    """The converter of parameters that are numbers or arrays."""
    return np.asarray(value, dtype=np.float64)

"""Double precision, and the rest of JAX's settings on which results rest, without touching the process's configuration."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import ParamSpec, TypeVar

import jax
import numpy as np

Params = ParamSpec("Params")
Result = TypeVar("Result")


def settings() -> ExitStack:
    """JAX as this library is tested with, in the calling thread: whatever the user's settings are, the results are the same."""
    stack = ExitStack()
    for one in (
        jax.enable_x64(True),
        jax.default_prng_impl("threefry2x32"),
        jax.threefry_partitionable(True),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        jax.default_matmul_precision(None),
        jax.debug_nans(False),  # a search for a step size may leave the finite numbers, and is told so
        jax.debug_infs(False),
        jax.disable_jit(False),
    ):
        stack.enter_context(one)
    return stack


def float64(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """Run ``function`` with 64-bit JAX types and the other ``settings`` in the calling thread, and restore them after.

    Differences of discrepancies cancel heavily, so everything from the scores to the decision is
    computed in double precision whatever the user's JAX flags are.
    """

    @functools.wraps(function)
    def wrapper(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        with settings():
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

"""Programs compiled once for all arguments of the same shapes, and found again only where they would still be the same."""

from __future__ import annotations

import builtins
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from functools import wraps
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from ._device import chosen_device, on_device, on_processor
from ._steps import steps_of

KEPT = 128  # programs; one takes a few megabytes
FIXED = ("lksd", "jax", "jaxlib", "equinox", "numpy", "builtins")  # packages whose code does not change in a process
PLAIN = (bool, int, float, complex, str, bytes, type(None), np.ndarray, np.generic, np.dtype, jax.Array)


class Kept:
    """What was built last, at most ``size`` of it."""

    def __init__(self, size: int):
        self.size, self.found, self.lock = size, OrderedDict(), threading.Lock()  # type: ignore[var-annotated]

    def __len__(self) -> int:
        return len(self.found)

    def get(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """What is known under the key, else ``build()``."""
        with self.lock:
            if key in self.found:
                self.found.move_to_end(key)
                return self.found[key]
        made = build()
        with self.lock:
            self.found[key] = made
            while len(self.found) > self.size:
                self.found.popitem(last=False)
        return made

    def clear(self) -> None:
        with self.lock:
            self.found.clear()


_programs = Kept(KEPT)
_call: ContextVar[dict | None] = ContextVar("call", default=None)


def clear_caches() -> None:
    """Forget all compiled programs of this library, and free their memory. The next call compiles what it needs.

    At most the 128 programs that were used last are kept anyway, a few megabytes each. What JAX itself keeps is left alone; see
    ``jax.clear_caches``.

    Examples
    --------
    >>> import lksd
    >>> lksd.clear_caches()
    """
    _programs.clear()


def one_call(function):
    """The decorator of a function in whose course nothing that models read from outside changes: it is looked at once."""

    @wraps(function)
    def wrapper(*args, **kwargs):
        if _call.get() is not None:
            return function(*args, **kwargs)
        token = _call.set({})
        try:
            return function(*args, **kwargs)
        finally:
            _call.reset(token)

    return wrapper


class Program(NamedTuple):
    """An executable that takes what the function takes."""

    executable: Any
    runs_alone: bool  # since it calls LAPACK: two such programs at the same time can wait for each other for ever

    def __call__(self, *given):
        return self.executable(eqx.filter(given, eqx.is_array))


def compiled(function, *arguments, seen: Callable[[], Hashable] | None = None, optimised: bool = False) -> Program:
    """``function`` compiled for these arguments; arrays may differ at the next call, everything else is part of the program.

    Code from outside, such as the model of a user, may read variables that have changed since. Where there is some, the program is
    traced again at every call and found by its steps and constants; or by what ``seen()`` returns, where that tells as much sooner.

    On a processor XLA's full optimisation (``optimised``) takes two to three times as long to compile most of these programs and
    makes them no faster.
    """
    arrays, static = eqx.partition(arguments, eqx.is_array)

    def trace():
        options: dict[str, Any] = {} if optimised or not on_processor() else {"xla_backend_optimization_level": 1}
        # A function of its own, since JAX remembers the traces of those that it has seen.
        return jax.jit(lambda given: function(*eqx.combine(given, static)), compiler_options=options).trace(arrays)

    def build(traced):
        executable = traced.lower().compile()
        return Program(executable, "lapack" in str(executable.as_text()))

    def find(key):
        if fixed(arguments):
            return _programs.get(key, lambda: build(trace()))
        if seen is not None:
            return _programs.get((key, seen()), lambda: build(trace()))
        traced = trace()
        return _programs.get((key, steps_of(traced.jaxpr)), lambda: build(traced))

    return once((function, chosen_device(), optimised), arguments, find)  # an executable belongs to a device


def remembered(function, *arguments, seen: Callable[[], Hashable]):
    """``function(*arguments)``, which depends on the shapes of arrays alone, computed once for all arguments of the same shapes."""

    def find(key):
        return _programs.get(key if fixed(arguments) else (key, seen()), lambda: function(*arguments))

    return once(function, arguments, find)


def program(function):
    """The decorator of a function of arrays, models and kernels that is compiled; inside another program it is part of that."""

    @wraps(function)
    def wrapper(*given):
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(given)):
            return function(*given)
        arguments = on_device(given)
        return compiled(function, *arguments, optimised=True)(*arguments)

    return wrapper


def once(name: Hashable, arguments: tuple, find: Callable[[Hashable], Any]) -> Any:
    """``find(key)`` with the key of this name and of arguments of these shapes; within one call it is asked once."""
    known, key = _call.get(), (name, *shapes_of(arguments))
    try:
        hash(key)
    except TypeError as error:
        raise TypeError(
            "model or sampler: expected fields that are numbers, arrays, strings, tuples or functions; "
            f"one is of another kind ({error}). Make it one of these."
        ) from error
    if known is None:
        return find(key)
    if key not in known:
        known[key] = find(key)
    return known[key]


def shapes_of(arguments: Any) -> tuple:
    """Shapes and types of the arrays, and everything else as it is."""
    arrays, static = eqx.partition(arguments, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    rest, rest_structure = jax.tree.flatten(static)
    return structure, rest_structure, tuple(rest), tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


def fixed(value: Any) -> bool:
    """Whether all code in it is of this library or of those that it rests on, which reads nothing that changes."""
    if isinstance(value, PLAIN):
        return True
    if isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        return is_ours(value) and getattr(value, "__closure__", None) is None
    if not (is_ours(type(value)) and is_ours(value)):
        return False
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(fixed, value))
    if isinstance(value, dict):
        return all(map(fixed, value.values()))
    if hasattr(value, "__wrapped__"):
        return fixed(value.__wrapped__)
    return all(map(fixed, vars(value).values())) if isinstance(value, eqx.Module) else type(value).__module__.startswith("lksd.")


def is_ours(value: Any) -> bool:
    package = (getattr(value, "__module__", type(value).__module__) or "").partition(".")[0]
    if package == "builtins" and isinstance(value, type):
        return getattr(builtins, value.__name__, None) is value  # a class that exec made says the same of itself
    return package in FIXED

"""How this library runs on JAX: its settings, devices, and compiled programs with their one bounded
cache.
"""

from __future__ import annotations

import builtins
import ctypes
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import ExitStack
from contextvars import ContextVar
from functools import cache, wraps
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np

from ._steps import steps_of

KEPT = 128  # programs; one takes a few megabytes
# packages whose code does not change in a process
FIXED = ("lksd", "jax", "jaxlib", "equinox", "numpy", "builtins")
PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    np.ndarray,
    np.generic,
    np.dtype,
    jax.Array,
)

CONFIG: Any = jax.config
Params = ParamSpec("Params")
Result = TypeVar("Result")


# Settings ------------------------------------------------------------------------------------


def settings() -> ExitStack:
    """JAX as this library is tested with, in the calling thread: whatever the user's settings are,
    the results are the same.
    """
    stack = ExitStack()
    for one in (
        jax.enable_x64(True),
        jax.default_prng_impl("threefry2x32"),
        jax.threefry_partitionable(True),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        jax.default_matmul_precision(None),
        # a search for a step size may leave the finite numbers, and is told so
        jax.debug_nans(False),
        jax.debug_infs(False),
        jax.disable_jit(False),
        # numbers go to a device and back all the time; some draws share a key on purpose
        jax.transfer_guard("allow"),
        jax.debug_key_reuse(False),
    ):
        stack.enter_context(one)
    return stack


def float64(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """Run ``function`` with 64-bit JAX types and the other ``settings`` in the calling thread, and
    restore them after.

    Differences of discrepancies cancel heavily, so everything from the scores to the decision is
    computed in double precision whatever the user's JAX flags are.
    """

    @wraps(function)
    def wrapper(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        with settings():
            return function(*args, **kwargs)

    return wrapper


def float64_values(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """The same for a function of arrays that may also be traced: inside a transformation the
    caller's precision holds.
    """

    @wraps(function)
    def wrapper(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        if is_traced(args):
            return function(*args, **kwargs)
        with settings():
            return function(*args, **kwargs)

    return wrapper


def is_traced(values: Any) -> bool:
    """Whether some of the values stand for arrays while a transformation is being traced."""
    for value in values:  # noqa: SIM110  (a loop spares a generator at every call)
        if isinstance(value, jax.core.Tracer):
            return True
    return False


def as_float64(value) -> np.ndarray:
    """The converter of parameters that are numbers or arrays."""
    return np.asarray(value, dtype=np.float64)


# Devices -------------------------------------------------------------------------------------


def devices() -> list[Any]:
    """Where work may run: the device, or the first of the backend, that ``jax.default_device``
    names in this thread; or all.
    """
    chosen = CONFIG.jax_default_device
    return (
        jax.local_devices()
        if chosen is None
        else [jax.local_devices(backend=chosen)[0] if isinstance(chosen, str) else chosen]
    )


def on_processor() -> bool:
    """Whether programs run on a processor, not on an accelerator: what is fast on one is often slow
    on the other.
    """
    return devices()[0].platform == "cpu"


def device_memory() -> int | None:
    """The bytes of an accelerator that JAX may use; None for a processor, or where the device does
    not say.
    """
    stats = None if on_processor() else devices()[0].memory_stats()
    return stats.get("bytes_limit") if stats else None


def cores() -> list[int]:
    """The processors that this process may use. Containers and ``taskset`` leave it fewer than the
    machine has.
    """
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def keep_to(allowed: list[int]) -> None:
    """Let this process use these processors only, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, allowed)


def on_device(tree: Any) -> Any:
    """NumPy arrays as JAX arrays, so that they are sent once, and all at the same time."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays), rest)


# Programs ------------------------------------------------------------------------------------


class Programs:
    """The programs that were built last, at most ``size`` of them."""

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


programs = Programs(KEPT)
_call: ContextVar[dict | None] = ContextVar("call", default=None)


def clear_caches() -> None:
    """Forget all compiled programs of this library, and free their memory. The next call compiles
    what it needs.

    At most the 128 programs that were used last are kept anyway, a few megabytes each. What JAX
    itself keeps is left alone; see ``jax.clear_caches``.

    Examples
    --------
    >>> import lksd
    >>> lksd.clear_caches()
    """
    programs.clear()


def one_call(function):
    """The decorator of a function in whose course nothing that models read from outside changes: it
    is looked at once.
    """

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
    # since it calls LAPACK: two such programs at the same time can wait for each other for ever. No
    # report of that was found at JAX or XLA; the lock may go when
    # test_linear_algebra_in_chains_does_not_hang passes without it.
    runs_alone: bool

    def __call__(self, *given):
        return self.executable(eqx.filter(given, eqx.is_array))


def compiled(
    function, *arguments, seen: Callable[[], Hashable] | None = None, optimised: bool = False
) -> Program:
    """``function`` compiled for these arguments; arrays may differ at the next call, everything
    else is part of the program.

    Code from outside, such as the model of a user, may read variables that have changed since.
    Where there is some, the program is traced again at every call and found by its steps and
    constants; or by what ``seen()`` returns, where that tells as much sooner.

    On a processor XLA's full optimisation (``optimised``) takes two to three times as long to
    compile most of these programs and makes them no faster.
    """

    @cache
    def trace():
        arrays, static = eqx.partition(arguments, eqx.is_array)
        options: dict[str, Any] = (
            {} if optimised or not on_processor() else {"xla_backend_optimization_level": 1}
        )
        # A function of its own, since JAX remembers the traces of those that it has seen.
        return jax.jit(
            lambda given: function(*eqx.combine(given, static)), compiler_options=options
        ).trace(arrays)

    def build() -> Program:
        executable = trace().lower().compile()
        return_memory()
        return Program(executable, "lapack" in str(executable.as_text()))

    name = function, CONFIG.jax_default_device, optimised  # an executable belongs to a device
    return once(name, arguments, build, seen or (lambda: steps_of(trace().jaxpr)))


@cache
def trimmer() -> Callable[[int], int] | None:
    """``malloc_trim`` of the C library, where it has that."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


def return_memory() -> None:
    """To the system, what a compilation has freed: the GNU C library would keep hundreds of
    megabytes of it, in pieces that fit nothing else.
    """
    if (trim := trimmer()) is not None:
        trim(0)


def program(function):
    """The decorator of a function of arrays, models and kernels that is compiled; inside another
    program it is part of that.
    """

    @wraps(function)
    def wrapper(*given):
        if is_traced(jax.tree.leaves(given)):
            return function(*given)
        arguments = on_device(given)
        return compiled(function, *arguments, optimised=True)(*arguments)

    return wrapper


def once(
    name: Hashable,
    arguments: tuple,
    build: Callable[[], Any],
    seen: Callable[[], Hashable] | None = None,
) -> Any:
    """``build()``, which depends on the shapes and types of arrays and on everything else in the
    arguments: under its name it is asked for once within a call.

    With ``seen`` it is kept among the programs for the calls that follow, which find it again where
    ``seen()`` is the same.
    """
    arrays, static = eqx.partition(arguments, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    rest, rest_structure = jax.tree.flatten(static)
    shapes = tuple(map(attrgetter("shape", "dtype"), leaves))
    known, key = _call.get(), (name, structure, rest_structure, tuple(rest), shapes)
    try:
        hash(key)
    except TypeError as error:
        raise TypeError(
            "model or sampler: expected fields that are numbers, arrays, strings, tuples or "
            f"functions; one is of another kind ({error}). Make it one of these."
        ) from error
    if known is not None and key in known:
        return known[key]
    made = (
        build() if seen is None else programs.get(key if fixed(arguments) else (key, seen()), build)
    )
    if known is not None:
        known[key] = made
    return made


def fixed(value: Any) -> bool:
    """Whether all code in it is of this library or of those that it rests on, which reads nothing
    that changes.
    """
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
    return (
        all(map(fixed, vars(value).values()))
        if isinstance(value, eqx.Module)
        else type(value).__module__.startswith("lksd.")
    )


def is_ours(value: Any) -> bool:
    package = (getattr(value, "__module__", type(value).__module__) or "").partition(".")[0]
    if package == "builtins" and isinstance(value, type):
        # a class that exec made says the same of itself
        return getattr(builtins, value.__name__, None) is value
    return package in FIXED


# Arrays of any length in a few lengths, so that programs compiled for one serve many ----------


def room(n: int, least: int = 1) -> int:
    """The next of ``least`` times 1, 2, 3, 4, 6, 8, 12, 16, ...: at most half as much again is
    added.
    """
    blocks = -(-n // least)
    power = 1 << max(blocks - 1, 0).bit_length()
    return least * (3 * power // 4 if power >= 4 and blocks <= 3 * power // 4 else power)


def longer(array: np.ndarray, length: int) -> np.ndarray:
    """The array with its last row repeated up to a length, so that padding never lies far from the
    data.
    """
    return np.concatenate([array, np.repeat(array[-1:], length - len(array), 0)])


def in_parts(function: Any, arrays: tuple[np.ndarray, ...], least: int, most: int) -> Any:
    """``function`` of the rows of arrays that all have n, by programs for few lengths between
    ``least`` and ``most`` rows.
    """
    n, found = len(arrays[0]), []
    for start in range(0, n, most):
        length = min(room(min(n - start, most), least), most)
        made = function(*[longer(array[start : start + most], length) for array in arrays])
        found.append(jax.tree.map(np.asarray, made))
    # the last part alone is padded
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:n], *found)

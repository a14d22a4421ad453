"""Programs compiled once for all arguments of the same shapes."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax

from ._device import chosen_device, on_processor

_programs: dict = {}


def compiled(function, *arguments) -> Program:
    """``function`` compiled for these arguments; arrays may differ at the next call, everything else is part of the program.

    On a processor XLA's full optimisation takes two to three times as long to compile these programs and makes
    them no faster.
    """

    def build():
        arrays, static = eqx.partition(arguments, eqx.is_array)
        options: dict[str, Any] = {"xla_backend_optimization_level": 1} if on_processor() else {}
        program = jax.jit(lambda given: function(*eqx.combine(given, static)), compiler_options=options)
        executable = program.lower(arrays).compile()
        return Program(executable, "lapack" in str(executable.as_text()))

    return _known((function, chosen_device()), arguments, build)  # an executable belongs to a device


class Program(NamedTuple):
    """An executable that takes what the function takes."""

    executable: Any
    runs_alone: bool  # since it calls LAPACK: two such programs at the same time can wait for each other for ever

    def __call__(self, *given):
        return self.executable(eqx.filter(given, eqx.is_array))


def remembered(function, *arguments):
    """``function(*arguments)``, which depends on the shapes of arrays alone, computed once for all arguments of the same shapes."""
    return _known(function, arguments, lambda: function(*arguments))


def _known(name, arguments, build):
    """What was built under this name for arguments of the same shapes before, else ``build()``."""
    arrays, static = eqx.partition(arguments, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    fixed, fixed_structure = jax.tree.flatten(static)
    shapes = tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)
    key = (name, structure, fixed_structure, tuple(fixed), shapes)
    try:
        if key in _programs:
            return _programs[key]
    except TypeError as error:
        raise TypeError(
            "model or sampler: expected fields that are numbers, arrays, strings, tuples or functions; "
            f"one is of another kind ({error}). Make it one of these."
        ) from error
    _programs[key] = build()
    return _programs[key]

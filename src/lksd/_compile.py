"""Programs compiled once for all arguments of the same shapes."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax

_programs: dict = {}


def compiled(function, *arguments):
    """``function`` compiled for these arguments; arrays may differ at the next call, everything else is part of the program.

    On a processor XLA's full optimisation takes two to three times as long to compile these programs and makes
    them no faster.
    """
    arrays, static = eqx.partition(arguments, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    fixed, fixed_structure = jax.tree.flatten(static)
    shapes = tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)
    key = (function, structure, fixed_structure, tuple(fixed), shapes)
    try:
        known = key in _programs
    except TypeError as error:
        raise TypeError(
            "model or sampler: expected fields that are numbers, arrays, strings, tuples or functions; "
            f"one is of another kind ({error}). Make it one of these."
        ) from error
    if not known:
        options: dict[str, Any] = {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else {}
        program = jax.jit(lambda given: function(*eqx.combine(given, static)), compiler_options=options)
        _programs[key] = program.lower(arrays).compile()
    executable = _programs[key]
    return lambda *given: executable(eqx.filter(given, eqx.is_array))

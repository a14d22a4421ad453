"""What a traced function does, as a value: two traces are equal only if they would become the same
program.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from hashlib import sha256
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

# Parameters that say nothing about the program: rules of differentiation, which have been applied
# when a function is traced, and a function whose trace stands beside it.
UNUSED = {
    "custom_jvp_call": {"jvp_jaxpr_fun", "jvp_jaxpr_thunk"},
    "custom_vjp_call": {"fwd_jaxpr_thunk", "bwd", "out_trees"},
    "reduce": {"computation"},
}


class Same:
    """Something that cannot be looked into: equal to itself alone, and kept, so that nothing else
    gets its address.
    """

    def __init__(self, thing: Any):
        self.thing = thing

    def __eq__(self, other) -> bool:
        return isinstance(other, Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def steps(function: Callable, *arguments) -> Hashable:
    """What ``function`` does with arrays of these shapes and types, and the form of what it
    returns.
    """
    arrays, static = eqx.partition(
        arguments, lambda leaf: eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)
    )
    # A function of its own, since JAX remembers the traces of those that it has seen.
    closed, out = jax.make_jaxpr(
        lambda given: function(*eqx.combine(given, static)), return_shape=True
    )(arrays)
    return steps_of(closed), jax.tree.structure(out)


def steps_of(closed: Any) -> Hashable:
    """Of a jaxpr: its equations in order, with variables by number and constants by content."""
    known: dict[int, Hashable] = {}

    def of_jaxpr(jaxpr: Any) -> Hashable:
        if id(jaxpr) not in known:
            known[id(jaxpr)] = read(jaxpr)
        return known[id(jaxpr)]

    def read(jaxpr: Any) -> Hashable:
        numbers: dict[Any, int] = {}

        def atom(one: Any) -> Hashable:
            return (
                (one.aval, content(one.val))
                if isinstance(one, Literal)
                else numbers.setdefault(one, len(numbers))
            )

        def named(variables: Any) -> Hashable:
            return tuple((atom(one), one.aval) for one in variables)

        def equation(one: Any) -> Hashable:
            unused = UNUSED.get(one.primitive.name, ())
            given = tuple(
                (name, value(part))
                for name, part in sorted(one.params.items())
                if name not in unused
            )
            return (
                one.primitive,
                tuple(map(atom, one.invars)),
                named(one.outvars),
                given,
                value(one.ctx),
            )

        inputs = named((*jaxpr.constvars, *jaxpr.invars))
        return inputs, tuple(map(equation, jaxpr.eqns)), tuple(map(atom, jaxpr.outvars))

    def value(part: Any) -> Hashable:
        if isinstance(part, ClosedJaxpr):
            return of_jaxpr(part.jaxpr), tuple(map(content, part.consts))
        if isinstance(part, Jaxpr):
            return of_jaxpr(part)
        if isinstance(part, (tuple, list)):
            return type(part), tuple(map(value, part))
        if isinstance(part, dict):
            return tuple((key, value(one)) for key, one in sorted(part.items()))
        if isinstance(part, (bool, int, float, complex, np.ndarray, np.generic, jax.Array)):
            return content(part)
        try:
            hash(part)
        except TypeError:
            return Same(part)
        return part

    return value(closed)


def content(constant: Any) -> Hashable:
    """A number or an array by its bits, so that 0.0 is not -0.0, nor 1 True, and NaN is itself."""
    if isinstance(constant, jax.Array) and jax.dtypes.issubdtype(
        constant.dtype, jax.dtypes.extended
    ):
        return str(constant.dtype), content(jax.random.key_data(constant))
    if isinstance(constant, (bool, int, float, complex)):
        return type(constant), repr(constant)
    array = np.asarray(constant)
    if array.dtype.hasobject:
        return Same(constant)
    return (
        type(constant),
        array.dtype.str,
        array.shape,
        sha256(np.ascontiguousarray(array).tobytes()).digest(),
    )

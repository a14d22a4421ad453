"""Whether what a function computes depends on its argument, by the operations it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Literal


def depends_on(function: Callable, argument: Any) -> bool:
    """Whether the value of ``function`` can change with the argument; True where that is not clear
    from its operations.
    """
    jaxpr = jax.make_jaxpr(function)(argument).jaxpr
    return any(reached(jaxpr, [True] * len(jaxpr.invars)))


def reached(jaxpr: Any, changing: list[bool]) -> list[bool]:
    """Which outputs of a program the ``changing`` ones of its inputs reach."""
    moving = {one for one, flag in zip(jaxpr.invars, changing, strict=True) if flag}

    def moves(one: Any) -> bool:
        return not isinstance(one, Literal) and one in moving

    for equation in jaxpr.eqns:
        flags = [moves(one) for one in equation.invars]
        inner = equation.params.get("jaxpr") if equation.primitive.name in ("jit", "pjit") else None
        outputs = reached(inner.jaxpr, flags) if inner else [any(flags)] * len(equation.outvars)
        moving |= {one for one, flag in zip(equation.outvars, outputs, strict=True) if flag}
    return [moves(one) for one in jaxpr.outvars]

"""Where the variables of a program can lie: the ends of their intervals, as the program computes them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters.partial_eval import dce_jaxpr

from ..supports import REAL, Support


class Region(NamedTuple):
    """Intervals of a variable, one row for each component of a mixture, (C, ...); or simplexes along its last axis."""

    lower: Any
    upper: Any
    free: bool = False  # all real numbers, whatever the parameters
    whole: bool = False  # integers
    simplex: int = 0


class Unknown(Exception):
    """A law whose region is none of these; the text says which."""


def widened(region: Region, shape: tuple[int, ...]) -> Region:
    """The same for a value of this shape, to which that of the region is broadcast."""

    def wide(ends):
        ends = jnp.asarray(ends)
        rows = ends.reshape(len(ends), *(1,) * (len(shape) + 1 - ends.ndim), *ends.shape[1:])
        return jnp.broadcast_to(rows, (len(ends), *shape))

    return region if region.simplex else region._replace(lower=wide(region.lower), upper=wide(region.upper))


def joined(regions: list[Region]) -> Region:
    """That of a mixture of these components, if it is of one kind."""
    first = regions[0]
    if len({(one.free, one.whole, one.simplex) for one in regions}) > 1:
        raise Unknown("a mixture of components that lie in different places")
    if first.simplex:
        return first
    return first._replace(
        lower=jnp.concatenate([one.lower for one in regions]), upper=jnp.concatenate([one.upper for one in regions])
    )


def latents_used(function: Callable, params, latents: dict[str, Any]) -> list[str]:
    """The latents on which ``function(params, latents)`` depends: whether a program for it uses them."""
    jaxpr = jax.make_jaxpr(function)(params, latents).jaxpr
    _, used = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    return [name for name, one in zip(sorted(latents), used[len(jax.tree.leaves(params)) :], strict=True) if one]


def fixed_ends(
    name: str, ends: Callable, params: dict, latents: dict[str, Any], draws: Collection[dict] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """The ends (D,) of a variable's intervals at these parameters, which must hold for all latents, components and draws."""
    if used := latents_used(ends, params, latents):
        raise ValueError(
            f"model: expected a support of {name!r} that does not depend on latents; its ends depend on "
            f"{', '.join(map(repr, used))}, and what holds given the latents does not hold for their average then. Use a law whose "
            "support is fixed."
        )
    every = [tuple(np.asarray(end) for end in jax.jit(ends)(given, latents)) for given in (params, *draws)]
    lower, upper = (np.stack(side) for side in zip(*every, strict=True))  # (draws, C, D)
    for axis, of, remedy in (
        (1, "all components of the mixture", "Use components with one support."),
        (0, "all draws of the parameters", "Give one value for the parameters on which it depends."),
    ):
        for side in (lower, upper):
            if (side != side.take([0], axis)).any():
                least, most = side.min(), side.max()
                raise ValueError(
                    f"model: expected the same support of {name!r} for {of}; one of its ends is between {least:g} and {most:g}. "
                    f"{remedy}"
                )
    return lower[0, 0].astype(float), upper[0, 0].astype(float)


def as_support(lower: np.ndarray, upper: np.ndarray) -> Support:
    """One interval for all columns where they are the same."""
    alike = (lower == lower[0]).all() and (upper == upper[0]).all()
    ends = (lower[:1], upper[:1]) if alike else (lower, upper)
    found = Support(tuple(ends[0].tolist()), tuple(ends[1].tolist()))
    return REAL if found.is_real else found

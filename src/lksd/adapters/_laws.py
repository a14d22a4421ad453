"""Where the variables of a program can lie, by the laws of NumPyro and PyMC: intervals whose ends
the program computes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters.partial_eval import dce_jaxpr

from ..supports import REAL, Support

INF = np.inf
# Laws that have single numbers of positive probability.
NUMPYRO_ATOMS = ("Censored", "ZeroInflated", "Hurdle", "Delta")
PYMC_ATOMS = ("Censored", "Hurdle", "DiracDelta")


class Region(NamedTuple):
    """Intervals of a variable, one row for each component of a mixture, (C, ...); or simplexes
    along its last axis.
    """

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

    return (
        region
        if region.simplex
        else region._replace(lower=wide(region.lower), upper=wide(region.upper))
    )


def joined(regions: list[Region]) -> Region:
    """That of a mixture of these components, if it is of one kind."""
    first = regions[0]
    if len({(one.free, one.whole, one.simplex) for one in regions}) > 1:
        raise Unknown("a mixture of components that lie in different places")
    if first.simplex:
        return first
    return first._replace(
        lower=jnp.concatenate([one.lower for one in regions]),
        upper=jnp.concatenate([one.upper for one in regions]),
    )


def latents_used(function: Callable, params, latents: dict[str, Any]) -> list[str]:
    """The latents on which ``function(params, latents)`` depends: whether a program for it uses
    them.
    """
    jaxpr = jax.make_jaxpr(function)(params, latents).jaxpr
    _, used = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    return [
        name
        for name, one in zip(sorted(latents), used[len(jax.tree.leaves(params)) :], strict=True)
        if one
    ]


def fixed_ends(
    name: str, ends: Callable, params: dict, latents: dict[str, Any], draws: Collection[dict] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """The ends (D,) of a variable's intervals at these parameters, which must hold for all latents,
    components and draws.
    """
    if used := latents_used(ends, params, latents):
        raise ValueError(
            f"model: expected a support of {name!r} that does not depend on latents; its ends "
            f"depend on {', '.join(map(repr, used))}, and what holds given the latents does not "
            "hold for their average then. Use a law whose support is fixed."
        )
    every = [
        tuple(np.asarray(end) for end in jax.jit(ends)(given, latents))
        for given in (params, *draws)
    ]
    lower, upper = (np.stack(side) for side in zip(*every, strict=True))  # (draws, C, D)
    for axis, of, remedy in (
        (1, "all components of the mixture", "Use components with one support."),
        (
            0,
            "all draws of the parameters",
            "Give one value for the parameters on which it depends.",
        ),
    ):
        for side in (lower, upper):
            if (side != side.take([0], axis)).any():
                least, most = side.min(), side.max()
                raise ValueError(
                    f"model: expected the same support of {name!r} for {of}; one of its ends is "
                    f"between {least:g} and {most:g}. {remedy}"
                )
    return lower[0, 0].astype(float), upper[0, 0].astype(float)


def as_support(lower: np.ndarray, upper: np.ndarray) -> Support:
    """One interval for all columns where they are the same."""
    alike = (lower == lower[0]).all() and (upper == upper[0]).all()
    ends = (lower[:1], upper[:1]) if alike else (lower, upper)
    found = Support(tuple(ends[0].tolist()), tuple(ends[1].tolist()))
    return REAL if found.is_real else found


def is_discrete(law) -> bool:
    """Whether a distribution is one of integers; its support may not say so before its parameters
    are known.
    """
    try:
        return bool(law.support.is_discrete)
    except (NotImplementedError, AttributeError):
        return False


def is_free(support) -> bool:
    """Whether a support is all reals."""
    from numpyro.distributions import constraints

    return isinstance(unwrapped(support), type(constraints.real))


def unwrapped(support):
    """A constraint of single entries, or of single events."""
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    return support


def base_law(law):
    """A distribution without what only changes its shape."""
    while isinstance(law, wrappers()):
        law = law.base_dist
    return law


def wrappers() -> tuple:
    from numpyro import distributions as dist

    return dist.Independent, dist.ExpandedDistribution, dist.MaskedDistribution


def has_mask(law) -> bool:
    """Whether some of a density's terms are left out."""
    from numpyro import distributions as dist

    while isinstance(law, wrappers()):
        if isinstance(law, dist.MaskedDistribution) and not np.all(law._mask):
            return True
        law = law.base_dist
    return False


def numpyro_region(law) -> Region:
    """The region of a value of the shape of ``law``."""
    from numpyro import distributions as dist

    shape = law.batch_shape + law.event_shape
    if isinstance(law, wrappers()):
        return widened(numpyro_region(law.base_dist), shape)
    if isinstance(law, dist.MixtureSameFamily):
        return by_component(numpyro_region(law.component_distribution), len(law.batch_shape))
    if isinstance(law, dist.MixtureGeneral):
        return joined([widened(numpyro_region(one), shape) for one in law.component_distributions])
    if not is_discrete(law) and any(name in type(law).__name__ for name in NUMPYRO_ATOMS):
        raise Unknown("single numbers with a probability of their own")
    if (
        isinstance(law, dist.TransformedDistribution)
        and type(law).support is dist.TransformedDistribution.support
    ):
        return widened(of_transformed(law), shape)
    return of_constraint(law.support, shape)


def by_component(region: Region, batch_dim: int) -> Region:
    """The components of a mixture, which stand on the axis behind the batch, as rows."""
    if region.simplex:
        return region

    def rows(ends):
        parts = jnp.moveaxis(ends, batch_dim + 1, 1)
        return parts.reshape(-1, *parts.shape[2:])

    return region._replace(lower=rows(region.lower), upper=rows(region.upper))


def of_transformed(law) -> Region:
    """The image of the base's region; the transforms know it where the base can lie anywhere."""
    from numpyro.distributions import transforms

    if is_free(law.base_dist.support):
        return of_constraint(law.support, law.batch_shape + law.event_shape)
    monotone = (
        transforms.AffineTransform,
        transforms.ExpTransform,
        transforms.PowerTransform,
        transforms.SigmoidTransform,
        transforms.SoftplusTransform,
    )
    steps = flat_steps(law.transforms)
    base = numpyro_region(law.base_dist)
    if base.simplex or base.whole or not all(isinstance(step, monotone) for step in steps):
        raise Unknown(
            f"a {type(base_law(law.base_dist)).__name__} transformed by "
            f"{type(law.transforms[-1]).__name__}"
        )
    lower, upper = base.lower, base.upper
    for step in steps:
        # NumPyro's own keeps away from 0 and 1 (https://github.com/pyro-ppl/numpyro/pull/1140)
        image = jax.nn.sigmoid if isinstance(step, transforms.SigmoidTransform) else step
        ends = image(lower), image(upper)
        lower, upper = jnp.minimum(*ends), jnp.maximum(*ends)
    return Region(lower, upper)


def flat_steps(steps) -> list:
    """The transforms one after the other, those that are composed of others taken apart."""
    return [
        part
        for step in steps
        for part in (flat_steps(step.parts) if hasattr(step, "parts") else [step])
    ]


def of_constraint(support, shape: tuple[int, ...]) -> Region:
    """What a constraint of NumPyro says about a value of this shape."""
    from numpyro.distributions import constraints

    one = unwrapped(support)
    if isinstance(one, type(constraints.simplex)):
        return Region(-INF, INF, simplex=shape[-1])
    whole = isinstance(
        one,
        (constraints.integer_interval, constraints.integer_greater_than, type(constraints.boolean)),
    )
    ends: Any
    if isinstance(one, type(constraints.boolean)):
        ends = 0, 1
    elif isinstance(one, (constraints.interval, constraints.integer_interval)):
        ends = one.lower_bound, one.upper_bound
    elif isinstance(one, (constraints.greater_than, constraints.integer_greater_than)):
        ends = one.lower_bound, INF
    elif isinstance(one, constraints.less_than):
        ends = -INF, one.upper_bound
    elif isinstance(one, type(constraints.real)):
        ends = -INF, INF
    else:
        raise Unknown(f"the constraint {str(one).partition('(')[0]}")
    lower, upper = (jnp.asarray(end, jnp.float64)[None] for end in ends)
    return widened(Region(lower, upper, free=is_free(one), whole=whole), shape)


REALS = Region([-INF], [INF], free=True)


def pymc_region(rv) -> Region | None:
    """The region of a variable, its ends lists of numbers or graphs; None where PyMC does not know
    it.
    """
    import pytensor.tensor as pt
    from pymc.distributions import transforms
    from pymc.logprob import transforms as general

    op, name = rv.owner.op, type(rv.owner.op).__name__
    if any(one in name for one in PYMC_ATOMS):
        raise Unknown("single numbers with a probability of their own")
    if "Mixture" in name:
        return of_mixture(rv.owner.inputs[2:])
    if name == "WishartRV":
        raise Unknown("symmetric matrices")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        transform = transforms._default_transform(op, rv)
    if transform is None:
        return (
            of_custom(rv)
            if "Custom" in " ".join(one.__name__ for one in type(op).__mro__)
            else REALS
        )
    if isinstance(transform, general.SimplexTransform):
        return Region([-INF], [INF], simplex=int(rv.type.shape[-1] or rv.shape[-1].eval()))
    if isinstance(transform, general.IntervalTransform):
        lower, upper = (
            end if end is None else pt.as_tensor(end) for end in transform.args_fn(*rv.owner.inputs)
        )
        own = Region([-INF if lower is None else lower], [INF if upper is None else upper])
        return within(own, base_region(rv)) if name == "TruncatedRV" else own
    ends: dict[type, Any] = {
        general.LogTransform: (0.0, INF),
        general.LogOddsTransform: (0.0, 1.0),
        general.CircularTransform: (-np.pi, np.pi),
    }
    if type(transform) not in ends:
        raise Unknown(f"a constraint of the kind {type(transform).__name__}")
    lower, upper = ends[type(transform)]
    return Region([lower], [upper])


def of_mixture(components) -> Region | None:
    """All components must lie in one place; those of one variable stand along an axis of it."""
    import pytensor.tensor as pt

    regions = [pymc_region(one) for one in components]
    if any(one is None for one in regions):
        return None
    known = [one for one in regions if one is not None]
    if len({(one.free, one.simplex) for one in known}) > 1:
        raise Unknown("a mixture of components that lie in different places")
    if known[0].free or known[0].simplex:
        return known[0]

    def rows(side: str) -> list:
        ends = [pt.as_tensor(end) for one in known for end in getattr(one, side)]
        return [extreme(end) for end in ends for extreme in (pt.min, pt.max)]

    return Region(rows("lower"), rows("upper"))


def base_region(rv) -> Region | None:
    """That of the variable which is truncated."""
    *inputs, _, _ = rv.owner.inputs
    return pymc_region(rv.owner.op.base_rv_op.make_node(*inputs).default_output())


def within(own: Region, base: Region | None) -> Region | None:
    """What a truncation leaves of the base."""
    import pytensor.tensor as pt

    if base is None or base.free:
        return None if base is None else own
    if base.simplex or len(base.lower) > 1:
        raise Unknown("a truncated mixture or simplex")
    return Region(
        [pt.maximum(own.lower[0], base.lower[0])], [pt.minimum(own.upper[0], base.upper[0])]
    )


def of_custom(rv) -> Region | None:
    """A distribution that is written as a function of others: where that is exp or the logistic
    function of one on all reals.
    """
    from pytensor.scalar import Exp, Sigmoid
    from pytensor.tensor.elemwise import Elemwise
    from pytensor.tensor.random.op import RandomVariable

    if not hasattr(rv.owner.op, "inner_outputs"):
        return None
    made = rv.owner.op.inner_outputs[rv.owner.outputs.index(rv)].owner
    if made is None or not isinstance(made.op, Elemwise):
        return None
    source = made.inputs[0].owner
    if (
        source is None
        or not isinstance(source.op, RandomVariable)
        or pymc_region(made.inputs[0]) != REALS
    ):
        return None
    ends = {Exp: (0.0, INF), Sigmoid: (0.0, 1.0)}.get(type(made.op.scalar_op))
    return None if ends is None else Region([ends[0]], [ends[1]])

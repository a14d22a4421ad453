"""Where distributions of NumPyro can lie."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._regions import Region, Unknown, joined, widened

INF = np.inf
ATOMS = ("Censored", "ZeroInflated", "Hurdle", "Delta")  # have single numbers of positive probability


def is_discrete(law) -> bool:
    """Whether a distribution is one of integers; its support may not say so before its parameters are known."""
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


def region_of(law) -> Region:
    """The region of a value of the shape of ``law``."""
    from numpyro import distributions as dist

    shape = law.batch_shape + law.event_shape
    if isinstance(law, wrappers()):
        return widened(region_of(law.base_dist), shape)
    if isinstance(law, dist.MixtureSameFamily):
        return by_component(region_of(law.component_distribution), len(law.batch_shape))
    if isinstance(law, dist.MixtureGeneral):
        return joined([widened(region_of(one), shape) for one in law.component_distributions])
    if not is_discrete(law) and any(name in type(law).__name__ for name in ATOMS):
        raise Unknown("single numbers with a probability of their own")
    if isinstance(law, dist.TransformedDistribution) and type(law).support is dist.TransformedDistribution.support:
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
    base = region_of(law.base_dist)
    if base.simplex or base.whole or not all(isinstance(step, monotone) for step in steps):
        raise Unknown(f"a {type(base_law(law.base_dist)).__name__} transformed by {type(law.transforms[-1]).__name__}")
    lower, upper = base.lower, base.upper
    for step in steps:
        # NumPyro's own keeps away from 0 and 1
        image = jax.nn.sigmoid if isinstance(step, transforms.SigmoidTransform) else step
        ends = image(lower), image(upper)
        lower, upper = jnp.minimum(*ends), jnp.maximum(*ends)
    return Region(lower, upper)


def flat_steps(steps) -> list:
    """The transforms one after the other, those that are composed of others taken apart."""
    return [part for step in steps for part in (flat_steps(step.parts) if hasattr(step, "parts") else [step])]


def of_constraint(support, shape: tuple[int, ...]) -> Region:
    """What a constraint of NumPyro says about a value of this shape."""
    from numpyro.distributions import constraints

    one = unwrapped(support)
    if isinstance(one, type(constraints.simplex)):
        return Region(-INF, INF, simplex=shape[-1])
    whole = isinstance(one, (constraints.integer_interval, constraints.integer_greater_than, type(constraints.boolean)))
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

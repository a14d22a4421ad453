"""Where random variables of PyMC can lie, which their default transforms say."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ._regions import Region, Unknown

INF = np.inf
ATOMS = ("Censored", "Hurdle", "DiracDelta")  # have single numbers of positive probability
REALS = Region([-INF], [INF], free=True)


def region_of(rv) -> Region | None:
    """The region of a variable, its ends lists of numbers or graphs; None where PyMC does not know it."""
    import pytensor.tensor as pt
    from pymc.distributions import transforms
    from pymc.logprob import transforms as general

    op, name = rv.owner.op, type(rv.owner.op).__name__
    if any(one in name for one in ATOMS):
        raise Unknown("single numbers with a probability of their own")
    if "Mixture" in name:
        return of_mixture(rv.owner.inputs[2:])
    if name == "WishartRV":
        raise Unknown("symmetric matrices")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        transform = transforms._default_transform(op, rv)
    if transform is None:
        return of_custom(rv) if "Custom" in " ".join(one.__name__ for one in type(op).__mro__) else REALS
    if isinstance(transform, general.SimplexTransform):
        return Region([-INF], [INF], simplex=int(rv.type.shape[-1] or rv.shape[-1].eval()))
    if isinstance(transform, general.IntervalTransform):
        lower, upper = (end if end is None else pt.as_tensor(end) for end in transform.args_fn(*rv.owner.inputs))
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

    regions = [region_of(one) for one in components]
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
    return region_of(rv.owner.op.base_rv_op.make_node(*inputs).default_output())


def within(own: Region, base: Region | None) -> Region | None:
    """What a truncation leaves of the base."""
    import pytensor.tensor as pt

    if base is None or base.free:
        return None if base is None else own
    if base.simplex or len(base.lower) > 1:
        raise Unknown("a truncated mixture or simplex")
    return Region([pt.maximum(own.lower[0], base.lower[0])], [pt.minimum(own.upper[0], base.upper[0])])


def of_custom(rv) -> Region | None:
    """A distribution that is written as a function of others: where that is exp or the logistic function of one on all reals."""
    from pytensor.scalar import Exp, Sigmoid
    from pytensor.tensor.elemwise import Elemwise
    from pytensor.tensor.random.op import RandomVariable

    if not hasattr(rv.owner.op, "inner_outputs"):
        return None
    made = rv.owner.op.inner_outputs[rv.owner.outputs.index(rv)].owner
    if made is None or not isinstance(made.op, Elemwise):
        return None
    source = made.inputs[0].owner
    if source is None or not isinstance(source.op, RandomVariable) or region_of(made.inputs[0]) != REALS:
        return None
    ends = {Exp: (0.0, INF), Sigmoid: (0.0, 1.0)}.get(type(made.op.scalar_op))
    return None if ends is None else Region([ends[0]], [ends[1]])

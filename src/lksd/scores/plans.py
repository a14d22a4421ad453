"""What chains are run on and with: the latent, the sampler, the initial values, and how many draws.

A model is looked at before any chain runs.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import float64
from .._text import reason_of
from ..models import LatentVariableModel
from ..models.base import (
    DiscreteLatent,
    HasPosterior,
    Simulates,
    SimulatesLikelihood,
    float64_leaves,
)
from ..models.simulation import of_length
from ..options import Chains
from ..samplers import HMC, AdaptiveHMC, Exact, Exchange, Gibbs, Sampler, UniformStart, WithinGibbs
from ..samplers.base import split_latent
from .chains import Plan, own_start
from .watch import HIGHEST, exponents

WARMUP, DRAWS, CHAINS = 200, 400, 2
# draws of a discrete latent below which one chain is run, since another would cost a warm-up of its
# own
SHORT = 50
BATCHES = 20  # batch means over all chains, at least
LONGEST_BATCH = 50  # draws that exist at a time


def check_start(initial, z, model) -> None:
    if isinstance(initial, UniformStart):
        if kinds(z) != {"integer"} or not isinstance(model, DiscreteLatent):
            raise ValueError(
                f"initial: UniformStart() needs a discrete latent and n_latent_values; {model} has "
                "no such latent."
            )
    elif initial is not None:
        if kinds(z) != {"real"}:
            raise ValueError(
                "initial: expected a latent of reals; this one has integers. Give the model "
                "initial(key, x)."
            )
        try:
            jax.eval_shape(lambda key, u: initial(key, u, model), jax.random.key(0), z)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"initial: expected one number, or one for each of the {real_size(z)} latent "
                "coordinates."
            ) from error


def choose_sampler(sampler, model, kinds_of_latent: set[str]) -> Sampler:
    """The one given, checked against the latent, or the default for it."""
    if not model.normalised and "integer" in kinds_of_latent:
        raise ValueError(
            f"model: {model} has a likelihood with an unknown normaliser and integers in its "
            "latent; there is no sampler for both. Normalise the likelihood, or sum the integers "
            "out."
        )
    if not model.normalised and not isinstance(sampler or Exchange(), Exchange):
        raise ValueError(
            f"sampler: the likelihood of {model} has an unknown normaliser that depends on z, with "
            f"which {type(sampler).__name__} would draw from a wrong posterior. Use Exchange(), by "
            "estimate_scores for this model alone."
        )
    if isinstance(sampler, Exchange) and not isinstance(model, SimulatesLikelihood):
        raise ValueError(
            f"sampler: Exchange() needs sample_likelihood(key, z), which {model} lacks. Use HMC() "
            "or NUTS()."
        )
    whole = (Exact, Gibbs, WithinGibbs)  # these know what to do with integers
    if kinds_of_latent == {"real", "integer"}:
        return sampler if isinstance(sampler, whole) else WithinGibbs(sampler or HMC())
    if kinds_of_latent == {"integer"}:
        if sampler is not None and not isinstance(sampler, whole):
            raise ValueError(
                f"sampler: {type(sampler).__name__} needs a real latent; that of {model} is "
                "discrete. Use Gibbs() or Exact()."
            )
        return sampler or (Exact() if isinstance(model, HasPosterior) else Gibbs())
    if (
        sampler is None
        and model.normalised
        and not (model.tunable and isinstance(model, Simulates))
    ):
        return AdaptiveHMC()
    return sampler or (HMC() if model.normalised else Exchange())


@float64
def takes_gradients(model, data: np.ndarray) -> bool:
    """Whether NUTS and HMC can sample the model's posterior: a real latent and a normalised
    likelihood.
    """
    model = float64_leaves(model)
    return model.normalised and kinds(latent_shapes(model, jnp.asarray(data))) == {"real"}


def real_size(z) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(split_latent(z)[0]))


def make_plan(options: Chains, control: bool, width: int) -> tuple[Plan, tuple[str, ...]]:
    """The lengths made to divide: chains x batches x draws of a batch."""
    warmup = WARMUP if options.warmup is None else options.warmup
    draws = DRAWS if options.draws is None else options.draws
    few = draws < SHORT and not width
    chains = min(1 if few else CHAINS, draws) if options.chains is None else options.chains
    each = -(-draws // chains)
    batches = min(max(-(-BATCHES // chains), -(-each // LONGEST_BATCH)), each)
    plan = Plan(chains, warmup, batches, -(-each // batches), width if control else 0)
    fitted_on = (chains - 1) * plan.batches * plan.batch_draws
    notes: tuple[str, ...] = ()
    degree = HIGHEST.get(width, 1)
    if control and fitted_on >= 2 * len(exponents(width, 1, degree)) + 4:
        plan = plan._replace(degree=degree)
    elif control and fitted_on < 2 * width + 4:
        plan = plan._replace(control=0)
        notes = (
            f"control variates need {2 * width + 4} draws in the other chains and have "
            f"{fitted_on}, so the plain means are used.",
        )
    return plan, notes


# ------------------------------------------------------------- the latent


def latent_shapes(model: LatentVariableModel, x):
    """The unconstrained latent of one observation as shapes and types."""
    if isinstance(model, Simulates):
        pair = jax.eval_shape(of_length(model, x.shape[1]).sample, jax.random.key(0))
        if (
            not isinstance(pair, (tuple, list))
            or len(pair) != 2
            or getattr(pair[1], "shape", None) != x.shape[1:]
        ):
            raise ValueError(
                f"model: expected sample(key) of {model} to return (z, x) with x of shape "
                f"{x.shape[1:]}, as the data; got shapes "
                f"{[getattr(part, 'shape', None) for part in pair]}. Check the order and the "
                "number of columns."
            )
    return jax.eval_shape(lambda key, one: own_start(model, key, one), jax.random.key(0), x[0])


def check_latent(model: LatentVariableModel, x):
    """The latent's shapes, once both log densities are known to return one number there."""
    z = latent_shapes(model, x)
    check_shapes(model, x, z)
    return z


def kinds(z) -> set[str]:
    """What the latent holds: "real", on which gradients exist, "integer", or both."""
    return {
        name
        for name, part in zip(("real", "integer"), split_latent(z), strict=True)
        if jax.tree.leaves(part)
    }


def check_shapes(model: LatentVariableModel, x, start) -> None:
    """Both log densities return one number at an observation and its unconstrained latent
    ``start``.
    """
    densities = {
        "log_prior": lambda one, u: model.log_prior(model.constrain(u)),
        "log_likelihood": lambda one, u: model.log_likelihood(one, model.constrain(u)),
    }
    for name, function in densities.items():
        if (shape := shape_of(f"{name} of {model}", function, x[0], start)) != ():
            raise ValueError(
                f"model: expected {name} of {model} to return one number; got shape {shape}. Sum "
                "over its terms."
            )


def shape_of(name: str, function: Callable, one, *rest) -> tuple[int, ...]:
    """The shape of what a model's function returns at one observation; whatever the user's code
    raises is named.
    """
    try:
        return jax.eval_shape(function, one, *rest).shape
    except Exception as error:
        raise ValueError(
            f"model: {name} fails on observations of {len(one)} columns ({reason_of(error)}). "
            "Check its shapes against the data."
        ) from error

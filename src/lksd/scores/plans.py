"""What chains are run with: the sampler, the initial values, and how many of how many draws."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import float64
from ..models.base import (
    DiscreteLatent,
    HasPosterior,
    Simulates,
    SimulatesLikelihood,
    float64_leaves,
)
from ..options import Chains
from ..samplers import HMC, AdaptiveHMC, Exact, Exchange, Gibbs, Sampler, UniformStart, WithinGibbs
from ..samplers.base import split_latent
from .chains import Plan
from .checks import kinds, latent_shapes

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
    plan = Plan(chains, warmup, batches, -(-each // batches), control)
    fitted_on = (chains - 1) * plan.batches * plan.batch_draws
    notes: tuple[str, ...] = ()
    if control and fitted_on < 2 * width + 4:
        plan = plan._replace(control=False)
        notes = (
            f"control variates need {2 * width + 4} draws in the other chains and have "
            f"{fitted_on}, so the plain means are used.",
        )
    return plan, notes

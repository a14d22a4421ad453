"""From a model and data to marginal scores: s_p(x) = E[s_p(x | z) | x] (Section 2.2)."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np

from .._float64 import float64
from .._keys import observation_keys, tuning_key
from .._progress import progress_wanted
from .._validation import LksdWarning, check_choice, check_count, check_reals, check_seed
from ..models import LatentVariableModel
from ..models.base import float64_leaves
from ..samplers import HMC, Exact, Exchange, Gibbs, Sampler, Start, WithinGibbs
from ..samplers.base import split_latent
from .batches import run
from .chains import Plan, begins_twice
from .checks import check_model, check_run, check_shapes, kinds, latent_shapes
from .exact import exact_score, exact_scores
from .result import ScoreEstimate

WARMUP, DRAWS, CHAINS = 200, 400, 2
BATCHES = 20  # batch means over all chains, at least
LONGEST_BATCH = 50  # draws that exist at a time
POOR_RHAT, POOR_SHARE = 1.1, 0.05  # R-hat above this, for more than this share of the observations
JUDGED = 50  # draws a chain from which R-hat means something
CONTROL_VARIATES = ("auto", "none")


@float64
def estimate_scores(
    model: LatentVariableModel,
    x,
    *,
    sampler: Sampler | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    chains: int | None = None,
    exact: bool | None = None,
    control_variates: str = "auto",
    initial: Start | None = None,
    index=None,
    seed: int = 0,
    batch_size: int | None = None,
    progress: bool | None = None,
) -> ScoreEstimate:
    """The marginal scores of ``model`` at ``x`` by one Markov chain or more for each observation.

    Parameters
    ----------
    model : LatentVariableModel
    x : (n, D) array
    sampler : Sampler, optional
        Default: HMC; the exchange algorithm where the likelihood's normaliser is unknown; the model's Gibbs sweep
        or exact posterior draws where the latent is discrete.
    warmup : int, optional
        Steps of each chain that are discarded (default 200).
    draws : int, optional
        Draws kept for each observation over all its chains (default 400).
    chains : int, optional
        Chains for each observation (default 2).
    exact : bool, optional
        None uses the model's exact marginal score if it has one; True demands it, False forbids it.
    control_variates : "auto" or "none"
        "auto" regresses the conditional scores on grad_z log p(x, z) where that helps.
    initial : Start, optional
        Where chains begin, such as ``lksd.samplers.NormalStart(mean)``. Default: the first at a draw from the prior (or
        the model's ``initial``), every second one elsewhere, so that what is left of the beginning shows.
    index : (n,) integers, optional
        An id for each observation, which decides its chain's randomness (default 0 .. n-1).
    batch_size : int, optional
        Observations that run at a time. Changes time and memory, not the answer.
    progress : bool, optional
        Whether to show a progress line; None shows one on a terminal for work of more than two seconds.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> model = lksd.models.PPCA(weight=np.ones((3, 1)), noise_scale=0.5)
    >>> x = np.random.default_rng(0).normal(size=(10, 3))
    >>> estimate = lksd.estimate_scores(model, x, exact=False)
    >>> exact = lksd.estimate_scores(model, x)
    >>> bool(np.abs(estimate.score - exact.score).max() < 1e-8)
    True
    """
    check_model(model)
    check_choice("control_variates", control_variates, CONTROL_VARIATES)
    data = check_reals("x", x)
    check_count("x", len(data), minimum=1)
    seed, ids = check_seed(seed), check_index(index, len(data))
    model, batch_size = float64_leaves(model), None if batch_size is None else check_length("batch_size", batch_size, 1)
    own_notes = (model.note,) if hasattr(model, "note") else ()
    if exact is not False and (score := exact_score(model)) is not None:
        return exact_scores(model, score, data, ids, seed, own_notes)
    if exact:
        raise ValueError(f"exact: {model} has neither log_marginal(x) nor marginal_score(x). Leave exact=None to estimate it.")
    points, keys = jnp.asarray(data), observation_keys(seed, ids)
    z = latent_shapes(model, points)
    check_shapes(model, points, z)
    check_start(initial, z)
    sampler = choose_sampler(sampler, model, kinds(z)).tuned(model, tuning_key(seed))
    plan, notes = make_plan(warmup, draws, chains, wants_control(control_variates, model, z), real_size(z))
    with progress_wanted(progress):
        found = run(model, float64_leaves(sampler), float64_leaves(initial), points, keys, plan, batch_size)
    check_run(found, plan, ids)
    plain, averages = found.plain, found.controlled
    if averages is None or np.median(averages.mcse) > np.median(plain.mcse):
        if plan.control:
            notes = (*notes, "control variates did not reduce the error, so the plain means are used.")
        averages, plan = plain, plan._replace(control=False)
    warn_of_poor_mixing(found.rhat, plan, ids)
    means = "control variates" if plan.control else "plain means"
    return ScoreEstimate(
        score=averages.score,
        mcse=averages.mcse,
        index=ids,
        seed=seed,
        method=f"{sampler}, {plan.chains} chains of {plan.batches * plan.batch_draws} draws after {plan.warmup}, {means}",
        rhat=found.rhat,
        ess=found.ess,
        acceptance=found.acceptance,
        divergences=found.divergences.sum(1),
        batch_means=averages.batch_means,
        two_starts=initial is None and plan.chains > 1 and begins_twice(model, z),
        notes=(*notes, *own_notes),
    )


def check_index(index, n: int) -> np.ndarray:
    if index is None:
        return np.arange(n)
    ids = np.asarray(index)
    if ids.shape != (n,) or not np.issubdtype(ids.dtype, np.integer) or (ids < 0).any() or len(np.unique(ids)) < n:
        raise ValueError(
            f"index: expected {n} different integers of at least 0, one for each observation; got {index!r}. Number them."
        )
    return ids


def check_start(initial, z) -> None:
    if initial is not None and not isinstance(initial, Start):
        raise TypeError(f"initial: expected a start such as lksd.samplers.NormalStart(mean); got {initial!r}. Give an instance.")
    if initial is not None:
        if kinds(z) != {"real"}:
            raise ValueError("initial: expected a latent of reals; this one has integers. Give the model initial(key, x).")
        try:
            jax.eval_shape(initial, jax.random.key(0), z)
        except (ValueError, TypeError) as error:
            raise ValueError(f"initial: expected one number, or one for each of the {real_size(z)} latent coordinates.") from error


def choose_sampler(sampler, model, kinds_of_latent: set[str]) -> Sampler:
    """The one given, checked against the latent, or the default for it."""
    if sampler is not None and not isinstance(sampler, Sampler):
        raise TypeError(f"sampler: expected a sampler such as lksd.samplers.HMC(); got {sampler!r}. Give an instance.")
    if not model.normalised and "integer" in kinds_of_latent:
        raise ValueError(
            f"model: {model} has a likelihood with an unknown normaliser and integers in its latent; there is no sampler for both. "
            "Normalise the likelihood, or sum the integers out."
        )
    if not model.normalised and not isinstance(sampler or Exchange(), Exchange):
        raise ValueError(
            f"sampler: the likelihood of {model} has an unknown normaliser that depends on z, with which "
            f"{type(sampler).__name__} would draw from a wrong posterior. Use Exchange(), by estimate_scores for this model alone."
        )
    if isinstance(sampler, Exchange) and not hasattr(model, "sample_likelihood"):
        raise ValueError(f"sampler: Exchange() needs sample_likelihood(key, z), which {model} lacks. Use HMC() or NUTS().")
    whole = (Exact, Gibbs, WithinGibbs)  # these know what to do with integers
    if kinds_of_latent == {"real", "integer"}:
        return sampler if isinstance(sampler, whole) else WithinGibbs(sampler or HMC())
    if kinds_of_latent == {"integer"}:
        if sampler is not None and not isinstance(sampler, whole):
            raise ValueError(
                f"sampler: {type(sampler).__name__} needs a real latent; that of {model} is discrete. Use Gibbs() or Exact()."
            )
        return sampler or (Exact() if hasattr(model, "sample_posterior") else Gibbs())
    return sampler or (HMC() if model.normalised else Exchange())


@float64
def takes_gradients(model, x) -> bool:
    """Whether NUTS and HMC can sample the model's posterior: a real latent and a normalised likelihood."""
    model = float64_leaves(model)
    return model.normalised and kinds(latent_shapes(model, jnp.asarray(check_reals("x", x)))) == {"real"}


def wants_control(control_variates: str, model, z) -> bool:
    """grad_z log p(x, z) is known for real latents and normalised likelihoods."""
    return control_variates == "auto" and "real" in kinds(z) and model.normalised


def real_size(z) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(split_latent(z)[0]))


def make_plan(warmup, draws, chains, control: bool, width: int) -> tuple[Plan, tuple[str, ...]]:
    """The lengths checked and made to divide: chains x batches x draws of a batch."""
    warmup = WARMUP if warmup is None else check_length("warmup", warmup, 0)
    draws = DRAWS if draws is None else check_length("draws", draws, 1)
    chains = min(CHAINS, draws) if chains is None else check_length("chains", chains, 1)
    each = -(-draws // chains)
    batches = min(max(-(-BATCHES // chains), -(-each // LONGEST_BATCH)), each)
    plan = Plan(chains, warmup, batches, -(-each // batches), control)
    fitted_on = (chains - 1) * plan.batches * plan.batch_draws
    notes: tuple[str, ...] = ()
    if control and fitted_on < 2 * width + 4:
        plan = plan._replace(control=False)
        notes = (
            f"control variates need {2 * width + 4} draws in the other chains and have {fitted_on}, so the plain means are used.",
        )
    return plan, notes


def check_length(name: str, value, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}: expected an integer of at least {least}; got {value!r}. Give a number of steps.")
    return int(value)


def warn_of_poor_mixing(rhat: np.ndarray, plan: Plan, ids: np.ndarray) -> None:
    if plan.batches * plan.batch_draws >= JUDGED and np.mean(rhat > POOR_RHAT) > POOR_SHARE:
        worst = int(np.nanargmax(rhat))
        warnings.warn(
            f"R-hat is {rhat[worst]:.2f} for observation {ids[worst]}; raise warmup and draws, or try another sampler.",
            LksdWarning,
            stacklevel=4,
        )

"""From a model and data to marginal scores: s_p(x) = E[s_p(x | z) | x] (Section 2.2)."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._float64 import float64
from .._keys import observation_keys, tuning_key
from .._validation import LksdWarning, check_choice, check_count, check_reals, check_seed
from ..models import LatentVariableModel
from ..models.base import float64_leaves
from ..samplers import HMC, Exact, Sampler
from . import diagnostics
from .chains import Plan, run_batch
from .checks import check_model, check_run, check_shapes, is_real, latent_shapes
from .control import average
from .result import ScoreEstimate

WARMUP, DRAWS, CHAINS = 200, 400, 2
BATCHES = 20  # batch means over all chains, at least
LONGEST_BATCH = 50  # draws that exist at a time
LANES = 16  # observations of a batch come in this multiple, so that its size does not change the digits
LARGEST_BATCH = 512
POOR_RHAT, POOR_SHARE = 1.1, 0.05  # R-hat above this, for more than this share of the observations
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
    index=None,
    seed: int = 0,
    batch_size: int | None = None,
) -> ScoreEstimate:
    """The marginal scores of ``model`` at ``x`` by one Markov chain or more for each observation.

    Parameters
    ----------
    model : LatentVariableModel
    x : (n, D) array
    sampler : Sampler, optional
        Default: HMC, or exact posterior draws where the latent is discrete and the model has them.
    warmup : int, optional
        Steps of each chain that are discarded (default 200).
    draws : int, optional
        Draws kept for each observation over all its chains (default 400).
    chains : int, optional
        Chains for each observation (default 2), each begun at a draw from the prior.
    exact : bool, optional
        None uses the model's exact marginal score if it has one; True demands it, False forbids it.
    control_variates : "auto" or "none"
        "auto" regresses the conditional scores on grad_z log p(x, z) where that helps.
    index : (n,) integers, optional
        An id for each observation, which decides its chain's randomness (default 0 .. n-1).

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
    model = float64_leaves(model)
    if exact is not False and hasattr(model, "marginal_score"):
        return exact_scores(model, data, ids, seed)
    if exact:
        raise ValueError(f"exact: {model} has no marginal_score(x). Leave exact=None to estimate it.")
    points, keys = jnp.asarray(data), observation_keys(seed, ids)
    z = latent_shapes(model, points)
    check_shapes(model, points, z)
    continuous = is_real(z)
    sampler = choose_sampler(sampler, model, continuous).tuned(model, tuning_key(seed))
    width = sum(leaf.size for leaf in jax.tree.leaves(z))
    plan, notes = make_plan(warmup, draws, chains, control_variates == "auto" and continuous, width)
    reduced = run(model, float64_leaves(sampler), points, keys, plan, batch_size)
    check_run(reduced, ids)
    averages = jax.tree.map(np.asarray, average(reduced, plan))
    if plan.control:
        plain = average(reduced, plan._replace(control=False))
        if np.median(averages.mcse) > np.median(np.asarray(plain.mcse)):
            averages, plan = jax.tree.map(np.asarray, plain), plan._replace(control=False)
            notes = (*notes, "control variates did not reduce the error, so the plain means are used.")
    return summarise(averages, reduced, sampler, plan, ids, seed, notes)


def exact_scores(model, data: np.ndarray, ids: np.ndarray, seed: int) -> ScoreEstimate:
    score = np.asarray(eqx.filter_jit(lambda m, points: jax.vmap(m.marginal_score)(points))(model, jnp.asarray(data)))
    finite = np.isfinite(score).all(1)
    if not finite.all():
        raise ValueError(
            f"model: the exact score of {model} is not finite at observation {ids[np.argmin(finite)]}. Check its parameters."
        )
    unknown = np.full(len(ids), np.nan)
    return ScoreEstimate(
        score=score,
        mcse=np.zeros_like(score),
        index=ids,
        seed=seed,
        method="exact marginal score",
        rhat=unknown,
        ess=unknown,
        acceptance=unknown,
        divergences=np.zeros(len(ids), dtype=np.int64),
        batch_means=np.zeros((len(ids), 0, data.shape[1])),
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


def choose_sampler(sampler, model, continuous: bool) -> Sampler:
    if sampler is not None and not isinstance(sampler, Sampler):
        raise TypeError(f"sampler: expected a sampler such as lksd.samplers.HMC(); got {sampler!r}. Give an instance.")
    if sampler is None:
        sampler = HMC() if continuous else Exact()
    if not continuous and not isinstance(sampler, Exact):
        raise ValueError(f"sampler: {type(sampler).__name__} needs a real latent; that of {model} is discrete. Use Exact().")
    return sampler


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


def run(model, sampler, points, keys, plan: Plan, batch_size: int | None):
    """Batches of observations, on all cores."""
    n, workers = len(points), os.cpu_count() or 1
    size = min(-(-n // workers), LARGEST_BATCH) if batch_size is None else check_length("batch_size", batch_size, 1)
    size = -(-size // LANES) * LANES
    starts = range(0, n, size)

    def batch(start):
        rows = jnp.minimum(start + jnp.arange(size), n - 1)
        return (model, sampler, points[rows], keys[rows])

    program = compiled(batch(0), plan)

    @float64
    def one(start):
        return jax.block_until_ready(program(*batch(start), plan))

    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(one, starts))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:n], *parts)


_programs: dict = {}


def compiled(arguments, plan: Plan):
    """One program for all models, samplers and data of the same shapes, compiled before the threads begin."""
    arrays, static = eqx.partition(arguments, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    fixed, fixed_structure = jax.tree.flatten(static)
    key = (structure, fixed_structure, tuple(fixed), tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves), plan)
    if key not in _programs:
        program: Any = eqx.filter_jit(run_batch)
        _programs[key] = program.lower(*arguments, plan).compile()
    return _programs[key]


def summarise(averages, reduced, sampler, plan: Plan, ids, seed: int, notes) -> ScoreEstimate:
    traces = np.moveaxis(np.asarray(reduced.traces), 0, 2)  # (C, M, n, 2)
    draws = traces.shape[1]
    rhat = ess = np.full(len(ids), np.nan)
    if draws >= 8:
        rhat, ess = diagnostics.rhat(traces).max(-1), diagnostics.bulk_ess(traces).min(-1)
        if np.mean(rhat > POOR_RHAT) > POOR_SHARE and draws >= 50:
            worst = int(np.nanargmax(rhat))
            warnings.warn(
                f"R-hat is {rhat[worst]:.2f} for observation {ids[worst]}; raise warmup and draws, or use NUTS().",
                LksdWarning,
                stacklevel=4,
            )
    control = "control variates" if plan.control else "plain means"
    return ScoreEstimate(
        score=averages.score,
        mcse=averages.mcse,
        index=ids,
        seed=seed,
        method=f"{type(sampler).__name__}, {plan.chains} chains of {draws} draws after {plan.warmup}, {control}",
        rhat=rhat,
        ess=ess,
        acceptance=np.asarray(reduced.acceptance).mean(1),
        divergences=np.asarray(reduced.divergences).sum(1).astype(np.int64),
        batch_means=averages.batch_means,
        notes=notes,
    )

"""From a model and data to marginal scores: s_p(x) = E[s_p(x | z) | x] (Section 2.2)."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._compile import one_call, remembered
from .._documents import Filled, drop_empty_documents, is_sparse, read_documents
from .._float64 import float64
from .._keys import observation_keys, tuning_key
from .._progress import progress_wanted, track
from .._validation import check_choice, check_count, check_reals, check_seed, noted, warn
from .._vocabulary import as_documents, holds_words, vocabularies_of
from ..engines import opened
from ..models import LatentVariableModel
from ..models.base import (
    AveragesRatios,
    DiscreteLatent,
    HasPosterior,
    ModifiesPosterior,
    Simulates,
    SimulatesLikelihood,
    float64_leaves,
)
from ..models.behaviour import behaviour
from ..samplers import HMC, AdaptiveHMC, Exact, Exchange, Gibbs, Sampler, Start, UniformStart, WithinGibbs
from ..samplers.base import split_latent
from ..stein import Barker, DiscreteOperator, SteinOperator
from .averages import Averages, by_modified_posterior, neighbours, operator_averages, score_fields, targets
from .batches import Run, Setup, run
from .chains import Plan, begins_twice
from .checkpoint import as_checkpoint
from .checks import check_model, check_possible, check_support, checked_latent, kinds, latent_shapes, row_digests
from .columns import by_column_name
from .conditional import Point, model_at
from .convergence import judge, refuse, refuse_all, said_of_unconverged
from .exact import exact_estimate, exact_parts
from .lengths import LEAST_STEPS, Group, joined, length_groups
from .operators import check_alphabets, is_discrete, operators_for
from .rerun import First, run_again, said_of_reruns
from .result import ScoreEstimate
from .unbiased import check_linear, pair_plan, unbiased_estimate, unbiased_pairs

WARMUP, DRAWS, CHAINS = 200, 400, 2
SHORT = 50  # draws of a discrete latent below which one chain is run, since another would cost a warm-up of its own
BATCHES = 20  # batch means over all chains, at least
LONGEST_BATCH = 50  # draws that exist at a time
INDEPENDENT = 5  # draws of a batch from which the means of two are taken as independent
CONTROL_VARIATES = ("auto", "none")


@noted
@one_call
@by_column_name
@float64
def estimate_scores(
    model: LatentVariableModel,
    x,
    *,
    operator=None,
    sampler: Sampler | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    chains: int | None = None,
    exact: bool | None = None,
    control_variates: str = "auto",
    unbiased: bool = False,
    meeting_limit: int | None = None,
    initial: Start | None = None,
    counts: bool | None = None,
    drop_empty: bool = False,
    index=None,
    seed: int = 0,
    batch_size: int | None = None,
    engine=None,
    checkpoint=None,
    progress: bool | None = None,
) -> ScoreEstimate:
    """The marginal scores of ``model`` at ``x`` by one Markov chain or more for each observation.

    Observations whose chains have not converged are run again by themselves, at most twice, with more and longer chains that tune
    themselves; the others keep every digit. What still has not converged is warned of, and False in ``converged`` of the result.

    Parameters
    ----------
    model : LatentVariableModel
    x : (n, D) array; for discrete models also token-id lists, lists of words of the model's vocabulary, or word counts
    operator : name, operator or tuple of them, optional
        For discrete models, see ``discrete_operators``; default: "difference" and "barker". Scores of two models can be
        compared only if they belong to the same operators.
    sampler : Sampler, optional
        Default: HMC (``AdaptiveHMC`` where the model cannot simulate); the exchange algorithm where the likelihood's normaliser is
        unknown; the model's Gibbs sweep or exact posterior draws where the latent is discrete.
    warmup : int, optional
        Steps of each chain that are discarded (default 200).
    draws : int, optional
        Draws kept for each observation over all its chains (default 400).
    chains : int, optional
        Chains for each observation (default 2, or 1 for fewer than 50 draws of a discrete latent).
    exact : bool, optional
        None uses the model's exact marginal score if it has one; True demands it, False forbids it.
    control_variates : "auto" or "none"
        "auto" regresses the conditional scores on grad_z log p(x, z) where that helps, and averages ratios over part of a
        discrete latent (Rao-Blackwell) where the model can. "none" gives the paper's estimators: plain means, and for Barker the
        modified posterior of each neighbour (Appendix B.2); nothing is run again.
    unbiased : bool
        Remove the bias of the chains' beginnings: pairs of coupled chains run until they meet, and what they differ by until then
        corrects the plain means, so that no warm-up is needed for validity. Of discrete operators for "difference" alone, which is
        then the default; without control variates. ``meeting_times`` of the result says when chains met.
    meeting_limit : int, optional
        Steps after which coupled chains that have not met are an error (default: ten times their length, at least 10,000).
    initial : Start, optional
        Where chains begin, such as ``lksd.samplers.NormalStart(mean)``. Default: the first at a draw from the prior (or
        the model's ``initial``), every second one elsewhere, so that what is left of the beginning shows.
    counts : bool, optional
        Whether a dense ``x`` holds word counts instead of token ids. The columns of a data frame are matched to the words of a
        model that knows them.
    drop_empty : bool
        Leave out documents without words, or without any that the model knows, instead of refusing them. Scores have a row for each
        that is left, ``index`` says which those are, and a note counts the others.
    index : (n,) integers, optional
        An id for each observation, which decides its chain's randomness (default 0 .. n-1).
    batch_size : int, optional
        Observations that run at a time. Changes time and memory, not the answer.
    engine : "dask", address or dask.distributed.Client, optional
        Where chains run. Default: this process, on all its devices. "dask" starts a worker on each processor, "tcp://host:8786"
        connects to a cluster. Changes time, not the answer (docs/clusters.md).
    checkpoint : path, optional
        A file for what is finished. A run that was killed goes on from there, with the same digits; a file of other data,
        another model or other settings is refused.
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
    discrete = is_discrete(model)
    if unbiased and discrete and operator is None:
        operator = "difference"
    operators = operators_for(operator, (model,))
    if unbiased:
        check_linear(operators, discrete)
    elif meeting_limit is not None:
        raise ValueError("meeting_limit: expected with unbiased=True only; got it without. Leave it out, or say unbiased=True.")
    several = discrete and (isinstance(operator, (tuple, list)) or (operator is None and len(operators) > 1))
    left_out: tuple[str, ...] = ()
    if discrete and holds_words(x, [model], counts):
        x, left_out = as_documents(x, vocabularies_of([model])[0], drop_empty)
    if drop_empty and not discrete:
        raise ValueError(f"drop_empty: {model} describes real numbers, not documents. Leave it out.")
    filled = drop_empty_documents(x, check_alphabets([model]), counts) if drop_empty else Filled(x)
    data, left_out = read(model, operators, filled.x, counts), (*left_out, *filled.notes)
    check_count("x", len(data), minimum=1)
    seed, ids = check_seed(seed), check_index(filled.index_of(index), len(data))
    batch_size = None if batch_size is None else check_length("batch_size", batch_size, 1)
    support = None
    if discrete:
        check_possible(model, data, ids)
    elif not model.directional:
        support = check_support(model, model.support, data, ids)
    model = float64_leaves(model)
    operator = operators if several else operators[0]
    common = {"index": ids, "seed": seed, "operator": operator, "exchangeable": model.exchangeable, "graphs": model.graphs}
    common |= {"support": support, "observed": row_digests(data)}
    note = model.note
    own_notes = left_out if note is None else (*left_out, note)
    wanted = targets(operators, data) if discrete else None
    kept = as_checkpoint(checkpoint)
    with opened(engine) as place, progress_wanted(progress):
        if exact is not False and (scores := exact_parts(model, data, operators, wanted, ids, exact)) is not None:
            return exact_estimate(scores, several, notes=own_notes, **common)
        if exact:
            ways = "marginal_ratios(x, values)" if discrete else "marginal_score(x)"
            raise ValueError(f"exact: {model} has neither log_marginal(x) nor {ways}. Leave exact=None to estimate it.")
        points = Point(data, None if wanted is None else wanted.values)  # type: ignore[arg-type]
        z = remembered(checked_latent, model, jnp.asarray(data[:1]), seen=partial(behaviour, model, data.shape[1]))
        check_start(initial, z, model)
        with track("tuning", 1):
            sampler = choose_sampler(sampler, model, kinds(z)).tuned(model, tuning_key(seed), data.shape[1])
        controlled = not unbiased and wants_control(control_variates, model, z)
        plan, notes = make_plan(warmup, draws, chains, controlled, real_size(z))
        plan = plan._replace(averaged=discrete and control_variates == "auto")
        keys, setup = observation_keys(seed, ids), Setup(batch_size, place, kept)
        steps = plan.chains * (plan.warmup + plan.batches * plan.batch_draws)
        groups = length_groups(data, max(steps, LEAST_STEPS))
        batches, own_ids = [group.of(points, keys) for group in groups], [ids[group.rows] for group in groups]
        if unbiased:
            pairs = pair_plan(plan, None if meeting_limit is None else check_length("meeting_limit", meeting_limit, 1))
            met = unbiased_pairs(model, sampler, initial, batches, pairs, setup, own_ids)
            method = f"{sampler}, {pairs}"
            return unbiased_estimate(met, groups, method, operators, wanted, several, notes=own_notes, **common)
        run_options = (model, float64_leaves(sampler), float64_leaves(initial))
        anywhere = isinstance(sampler, (Gibbs, Exact))
        modified = control_variates == "none" and any(isinstance(one, Barker) for one in operators)
        if modified:
            check_modified(model, points, sampler)
        every = run(*run_options, batches, plan, setup)
        judged = [judge(found, plan, anywhere) for found in every]
        good = joined(groups, [one.converged for one in judged])
        refuse_all(joined(groups, [one.faults for one in judged]), ids)
        if control_variates == "auto" and not good.all():
            first = First(*run_options, batches, own_ids, plan, anywhere, kinds(z) == {"real"} and model.normalised)
            every, judged = run_again(every, judged, first, seed, setup)
            notes = (*notes, said_of_reruns(~good, joined(groups, [one.converged for one in judged])))
        refuse(joined(groups, [one.faults for one in judged]), ids)
        found, converged = quality(groups, every), joined(groups, [one.converged for one in judged])
        averages, remark = better_averages(every, plan, [good[group.rows] for group in groups])
        if remark:
            notes, plan = (*notes, remark), plan._replace(control=False)
        parts = [[own] for own in averages]
        if wanted is not None:

            def barker(batch, own: np.ndarray, columns: list[int]) -> Averages:
                points, keys = batch
                (sites,) = run(*run_options, [neighbours(points, keys, columns)], plan, setup)
                refuse(judge(sites, plan, anywhere).faults, np.repeat(own, len(sites.finite) // len(own)))
                return by_modified_posterior(sites.plain, points.x, columns)

            independent = plan.batch_draws >= INDEPENDENT
            parts = [
                operator_averages(means, operators, wanted.of(group), independent, partial(barker, *rest) if modified else None)
                for means, group, *rest in zip(averages, groups, batches, own_ids, strict=True)
            ]
    if not converged.all():
        warn(said_of_unconverged(converged, found.rhat, found.ess, ids))
    return ScoreEstimate(
        **score_fields(groups, parts, several),
        method=f"{sampler}, {plan}, {means_used(model, plan, points)}",
        rhat=found.rhat,
        ess=found.ess,
        acceptance=found.acceptance,
        divergences=found.divergences.sum(1),
        converged=converged,
        two_starts=initial is None and plan.chains > 1 and begins_twice(model, z),
        notes=(*notes, *own_notes),
        **common,
    )


def read(model, operators: tuple[SteinOperator, ...], x, counts: bool | None) -> np.ndarray:
    """The observations checked, in the form that the model takes."""
    if not is_discrete(model):
        if counts is not None:
            raise ValueError(f"counts: {model} describes real numbers, not words. Leave it out.")
        return operators[0].observations(x) if operators else check_reals("x", x)
    without_positions = is_sparse(x) or bool(counts)
    if without_positions and any(one.witness != "shared" for one in operators if isinstance(one, DiscreteOperator)):
        raise ValueError(
            "x: expected token ids for an operator whose witnesses belong to positions; got word counts, which have none. "
            'Use witness="shared".'
        )
    return read_documents(x, model.n_values, counts, model.any_length)


def check_modified(model, points: Point, sampler: Sampler) -> None:
    """Chains for the modified posterior need its density alone, or a model that knows how to sweep it."""
    own = isinstance(at_first(model, points), ModifiesPosterior)
    if not own and isinstance(sampler, (Gibbs, Exact, WithinGibbs)):
        raise ValueError(
            f'control_variates: "none" with Barker needs chains for a modified posterior, for which {model} has no sampler. '
            'Use control_variates="auto", or give the model between(x, values, d, m) and share(x, values, d, m, z).'
        )


def at_first(model, points: Point):
    """The model at the first observation, as shapes."""
    return jax.eval_shape(model_at, model, jax.tree.map(lambda leaf: leaf[0], points))


def better_averages(every: list[Run], plan: Plan, good: list[np.ndarray]) -> tuple[list[Averages], str | None]:
    """The averages of every group, with control variates where they reduce the error at observations with ``good`` chains."""
    plain, controlled = [found.plain for found in every], [found.controlled for found in every if found.controlled is not None]
    if not plan.control or not controlled:
        return plain, None
    rows = good if any(one.any() for one in good) else [np.ones_like(one) for one in good]
    if median_error(controlled, rows) > median_error(plain, rows):
        return plain, "control variates did not reduce the error, so the plain means are used."
    return controlled, None


def median_error(averages: list[Averages], rows: list[np.ndarray]) -> float:
    return float(np.median(np.concatenate([one.mcse[own].ravel() for one, own in zip(averages, rows, strict=True)])))


def quality(groups: list[Group], every: list[Run]) -> Run:
    """Of the chains of all observations; the averages stay with the groups."""
    nothing: Any = None
    told = [found._replace(plain=nothing, controlled=nothing) for found in every]
    return jax.tree.map(lambda *parts: joined(groups, list(parts)), *told)


def means_used(model, plan: Plan, points: Point) -> str:
    if plan.control:
        return "control variates"
    return "Rao-Blackwellised" if plan.averaged and isinstance(at_first(model, points), AveragesRatios) else "plain means"


def check_index(index, n: int) -> np.ndarray:
    if index is None:
        return np.arange(n)
    ids = np.asarray(index)
    if ids.shape != (n,) or not np.issubdtype(ids.dtype, np.integer) or (ids < 0).any() or len(np.unique(ids)) < n:
        wanted = f"index: expected {n} different integers from 0 to 2^64 - 1, one for each observation"
        raise ValueError(f"{wanted}; got {np.array2string(ids, threshold=10)}. Number them.")
    return ids


def check_start(initial, z, model) -> None:
    if initial is not None and not isinstance(initial, Start):
        raise TypeError(f"initial: expected a start such as lksd.samplers.NormalStart(mean); got {initial!r}. Give an instance.")
    if isinstance(initial, UniformStart):
        if kinds(z) != {"integer"} or not isinstance(model, DiscreteLatent):
            raise ValueError(f"initial: UniformStart() needs a discrete latent and n_latent_values; {model} has no such latent.")
    elif initial is not None:
        if kinds(z) != {"real"}:
            raise ValueError("initial: expected a latent of reals; this one has integers. Give the model initial(key, x).")
        try:
            jax.eval_shape(lambda key, u: initial(key, u, model), jax.random.key(0), z)
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
    if isinstance(sampler, Exchange) and not isinstance(model, SimulatesLikelihood):
        raise ValueError(f"sampler: Exchange() needs sample_likelihood(key, z), which {model} lacks. Use HMC() or NUTS().")
    whole = (Exact, Gibbs, WithinGibbs)  # these know what to do with integers
    if kinds_of_latent == {"real", "integer"}:
        return sampler if isinstance(sampler, whole) else WithinGibbs(sampler or HMC())
    if kinds_of_latent == {"integer"}:
        if sampler is not None and not isinstance(sampler, whole):
            raise ValueError(
                f"sampler: {type(sampler).__name__} needs a real latent; that of {model} is discrete. Use Gibbs() or Exact()."
            )
        return sampler or (Exact() if isinstance(model, HasPosterior) else Gibbs())
    if sampler is None and model.normalised and not (model.tunable and isinstance(model, Simulates)):
        return AdaptiveHMC()
    return sampler or (HMC() if model.normalised else Exchange())


@float64
def takes_gradients(model, x, counts: bool | None = None) -> bool:
    """Whether NUTS and HMC can sample the model's posterior: a real latent and a normalised likelihood."""
    data = read(model, (), x, counts)
    model = float64_leaves(model)
    return model.normalised and kinds(latent_shapes(model, jnp.asarray(data))) == {"real"}


def wants_control(control_variates: str, model, z) -> bool:
    """grad_z log p(x, z) is known for real latents and normalised likelihoods."""
    return control_variates == "auto" and "real" in kinds(z) and model.normalised


def real_size(z) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(split_latent(z)[0]))


def make_plan(warmup, draws, chains, control: bool, width: int) -> tuple[Plan, tuple[str, ...]]:
    """The lengths checked and made to divide: chains x batches x draws of a batch."""
    warmup = WARMUP if warmup is None else check_length("warmup", warmup, 0)
    draws = DRAWS if draws is None else check_length("draws", draws, 1)
    few = draws < SHORT and not width
    chains = min(1 if few else CHAINS, draws) if chains is None else check_length("chains", chains, 1)
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

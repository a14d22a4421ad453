"""From a model and data to marginal scores: s_p(x) = E[s_p(x | z) | x] (Section 2.2)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import float64, remembered
from .._keys import observation_keys, tuning_key
from .._keywords import EstimateKeywords, Options, verb
from .._progress import progress_wanted, track
from .._validation import column_order, noted, warn
from ..domains import Domain, Observations, read_data
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
from ..options import Chains
from ..samplers import HMC, AdaptiveHMC, Exact, Exchange, Gibbs, Sampler, UniformStart, WithinGibbs
from ..samplers.base import split_latent
from ..stein import SteinOperator
from ..supports import Support
from .averages import (
    Averages,
    by_modified_posterior,
    neighbours,
    operator_averages,
    score_fields,
    targets,
)
from .batches import Run, Setup, run
from .chains import Plan, Point, begins_twice, model_at
from .checkpoint import as_checkpoint
from .checks import check_model, check_possible, checked_latent, kinds, latent_shapes, row_digests
from .convergence import judge, refuse, refuse_all, said_of_unconverged
from .exact import exact_estimate, exact_parts
from .lengths import LEAST_STEPS, Group, joined, length_groups
from .rerun import First, run_again, said_of_reruns
from .result import ScoreEstimate
from .unbiased import check_linear, pair_plan, unbiased_estimate, unbiased_pairs

WARMUP, DRAWS, CHAINS = 200, 400, 2
# draws of a discrete latent below which one chain is run, since another would cost a warm-up of its
# own
SHORT = 50
BATCHES = 20  # batch means over all chains, at least
LONGEST_BATCH = 50  # draws that exist at a time
INDEPENDENT = 5  # draws of a batch from which the means of two are taken as independent


@verb
@float64
def estimate_scores(
    model: LatentVariableModel,
    x: Any,
    *,
    operator: Any = None,
    **keywords: Unpack[EstimateKeywords],
) -> ScoreEstimate:
    """The marginal scores of ``model`` at ``x`` by one Markov chain or more for each observation.

    Observations whose chains have not converged are run again by themselves, at most twice, with
    more and longer chains that tune themselves; the others stay as they are. What still has not
    converged is warned of, and False in ``converged`` of the result.

    Parameters
    ----------
    model : LatentVariableModel
    x : (n, D) array
        For discrete models also token-id lists, lists of words of the model's vocabulary, or word
        counts.
    operator : name, operator or tuple of them, optional
        For discrete models, see ``discrete_operators``; default: "difference" and "barker", for
        models of documents "barker". Scores of two models can be compared only if they belong to
        the same operators.

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
    options = Options.read(estimate_scores, keywords)
    check_model(model)
    domain, data, (model,) = read_data(x, {"model": model}, options.reading, least=1)
    wanted = domain.linear if options.chains.unbiased and operator is None else operator
    operators = domain.operators(wanted, [model])
    several = domain.discrete and (
        isinstance(wanted, (tuple, list)) or (wanted is None and len(operators) > 1)
    )
    (support,) = domain.supports([""], [model], data)
    with opened(options.run.engine) as place, progress_wanted(options.run.progress):
        setup = Setup(options.run.batch_size, place, as_checkpoint(options.run.checkpoint))
        found = Estimation(domain, data, operators, options.chains, options.run.seed, several).of(
            model, support, setup
        )
    return replace(found, notes=(*data.notes, *found.notes)) if data.notes else found


class Estimation(NamedTuple):
    """What the scores of all models of a call have in common."""

    domain: Domain
    data: Observations
    operators: tuple[SteinOperator, ...]
    chains: Chains
    seed: int
    several: bool  # whether scores are tuples, one for each operator

    @noted
    @float64
    def of(
        self, model: LatentVariableModel, support: Support | None, setup: Setup
    ) -> ScoreEstimate:
        """The scores of one model, in the columns of the data."""
        data = self.data
        observed = row_digests(data.values)
        order = column_order("x", data.columns, model.columns, f"the columns of {model}")
        values = data.values if order is None else data.values[:, order]
        found = estimate(self, model, values, setup)
        if order is not None:
            found = with_columns(found, np.argsort(order))
        return replace(found, columns=data.columns, support=support, observed=observed)


def estimate(
    common: Estimation, model: LatentVariableModel, data: np.ndarray, setup: Setup
) -> ScoreEstimate:
    """The scores of a model at observations as it takes them."""
    operators, chains, ids, discrete = (
        common.operators,
        common.chains,
        common.data.ids,
        common.domain.discrete,
    )
    check_model(model)
    if chains.unbiased:
        check_linear(operators)
    if discrete:
        check_possible(model, data, ids)
    model = float64_leaves(model)
    several = common.several
    own_notes = () if model.note is None else (model.note,)
    fields: dict[str, Any] = {
        "index": ids,
        "seed": common.seed,
        "operator": operators if several else operators[0],
    }
    fields |= {"exchangeable": model.exchangeable, "graphs": model.graphs}
    wanted = targets(operators, data) if discrete else None
    if (
        chains.exact is not False
        and (scores := exact_parts(model, data, operators, wanted, ids, chains.exact)) is not None
    ):
        return exact_estimate(scores, several, notes=own_notes, **fields)
    if chains.exact:
        ways = "marginal_ratios(x, values)" if discrete else "marginal_score(x)"
        raise ValueError(
            f"exact: {model} has neither log_marginal(x) nor {ways}. Leave exact=None to estimate "
            "it."
        )
    points = Point(data, None if wanted is None else wanted.values)  # type: ignore[arg-type]
    z = remembered(
        checked_latent, model, jnp.asarray(data[:1]), seen=partial(behaviour, model, data.shape[1])
    )
    initial = chains.initial
    check_start(initial, z, model)
    with track("tuning", 1):
        sampler = choose_sampler(chains.sampler, model, kinds(z)).tuned(
            model, tuning_key(common.seed), data.shape[1]
        )
    controlled = (
        not chains.unbiased
        and chains.control_variates == "auto"
        and "real" in kinds(z)
        and model.normalised
    )
    plan, notes = make_plan(chains, controlled, real_size(z))
    plan = plan._replace(averaged=discrete and chains.control_variates == "auto")
    keys = observation_keys(common.seed, ids)
    steps = plan.chains * (plan.warmup + plan.batches * plan.batch_draws)
    groups = length_groups(data, max(steps, LEAST_STEPS))
    batches, own_ids = (
        [group.of(points, keys) for group in groups],
        [ids[group.rows] for group in groups],
    )
    if chains.unbiased:
        pairs = pair_plan(plan, chains.meeting_limit)
        met = unbiased_pairs(model, sampler, initial, batches, pairs, setup, own_ids)
        return unbiased_estimate(
            met,
            groups,
            f"{sampler}, {pairs}",
            operators,
            wanted,
            several,
            notes=own_notes,
            **fields,
        )
    run_options = (model, float64_leaves(sampler), float64_leaves(initial))
    anywhere = isinstance(sampler, (Gibbs, Exact))
    modified = chains.control_variates == "none" and any(
        one.modified_posterior for one in operators
    )
    if modified:
        check_modified(model, points, sampler)
    every = run(*run_options, batches, plan, setup)
    judged = [judge(found, plan, anywhere) for found in every]
    good = joined(groups, [one.converged for one in judged])
    refuse_all(joined(groups, [one.faults for one in judged]), ids)
    if chains.control_variates == "auto" and not good.all():
        first = First(
            *run_options,
            batches,
            own_ids,
            plan,
            anywhere,
            kinds(z) == {"real"} and model.normalised,
        )
        every, judged = run_again(every, judged, first, common.seed, setup)
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
            refuse(
                judge(sites, plan, anywhere).faults, np.repeat(own, len(sites.finite) // len(own))
            )
            return by_modified_posterior(sites.plain, points.x, columns)

        independent = plan.batch_draws >= INDEPENDENT
        parts = [
            operator_averages(
                means,
                operators,
                wanted.of(group),
                independent,
                partial(barker, *rest) if modified else None,
            )
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
        **fields,
    )


def with_columns(scores: ScoreEstimate, order: Any) -> ScoreEstimate:
    """The scores with their coordinates in another order."""
    support = None if scores.support is None else scores.support.reordered(order)
    return scores.changed(
        lambda name, part: np.take(part, order, 3 if name == "batch_means" else 1), support=support
    )


def check_modified(model, points: Point, sampler: Sampler) -> None:
    """Chains for the modified posterior need its density alone, or a model that knows how to sweep
    it.
    """
    own = isinstance(at_first(model, points), ModifiesPosterior)
    if not own and isinstance(sampler, (Gibbs, Exact, WithinGibbs)):
        raise ValueError(
            'control_variates: "none" with Barker needs chains for a modified posterior, for '
            f"which {model} has no sampler. "
            'Use control_variates="auto", or give the model between(x, values, d, m) and share(x, '
            "values, d, m, z)."
        )


def at_first(model, points: Point):
    """The model at the first observation, as shapes."""
    return jax.eval_shape(model_at, model, jax.tree.map(lambda leaf: leaf[0], points))


def better_averages(
    every: list[Run], plan: Plan, good: list[np.ndarray]
) -> tuple[list[Averages], str | None]:
    """The averages of every group, with control variates where they reduce the error at
    observations with ``good`` chains.
    """
    plain, controlled = (
        [found.plain for found in every],
        [found.controlled for found in every if found.controlled is not None],
    )
    if not plan.control or not controlled:
        return plain, None
    rows = good if any(one.any() for one in good) else [np.ones_like(one) for one in good]
    if median_error(controlled, rows) > median_error(plain, rows):
        return plain, "control variates did not reduce the error, so the plain means are used."
    return controlled, None


def median_error(averages: list[Averages], rows: list[np.ndarray]) -> float:
    return float(
        np.median(
            np.concatenate([one.mcse[own].ravel() for one, own in zip(averages, rows, strict=True)])
        )
    )


def quality(groups: list[Group], every: list[Run]) -> Run:
    """Of the chains of all observations; the averages stay with the groups."""
    nothing: Any = None
    told = [found._replace(plain=nothing, controlled=nothing) for found in every]
    return jax.tree.map(lambda *parts: joined(groups, list(parts)), *told)


def means_used(model, plan: Plan, points: Point) -> str:
    if plan.control:
        return "control variates"
    return (
        "Rao-Blackwellised"
        if plan.averaged and isinstance(at_first(model, points), AveragesRatios)
        else "plain means"
    )


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

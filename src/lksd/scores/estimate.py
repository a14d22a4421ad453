"""From a model and data to marginal scores: s_p(x) = E[s_p(x | z) | x] (Section 2.2)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from .._documents import numbered
from .._jax import float64, once
from .._keys import observation_keys, tuning_key
from .._keywords import EstimateKeywords, verb
from .._validation import column_order, noted, warn
from ..criteria import Additive
from ..criteria.choice import locate_criteria, read_criteria
from ..domains import Domain, Observations, read_data
from ..engines import opened, track
from ..models import LDA, LatentVariableModel
from ..models.base import (
    AveragesRatios,
    ModifiesPosterior,
    Simulates,
    SimulatesLikelihood,
    Starts,
    float64_leaves,
)
from ..models.behaviour import behaviour
from ..options import Chains, Options
from ..samplers import Exact, Gibbs, Sampler, WithinGibbs
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
from .batches import AVERAGES, Run, Setup, better_averages, refined_averages, run
from .chains import Plan, Point, begins_twice, model_at
from .checkpoint import as_checkpoint
from .convergence import judge, refuse, refuse_all, unconverged_warning
from .elsewhere import better_points
from .exact import exact_estimate, exact_parts
from .lengths import LEAST_STEPS, Group, join_groups, length_groups
from .losses import Asks, asks, chain_losses, loss_fields, watch_of
from .plans import check_latent, check_start, choose_sampler, kinds, make_plan, real_size
from .rerun import First, rerun_note, run_again
from .result import ScoreEstimate, row_digests
from .unbiased import check_linear, pair_plan, unbiased_estimate, unbiased_pairs

INDEPENDENT = 5  # draws of a batch from which the means of two are taken as independent


@verb
@float64
def estimate_scores(
    model: LatentVariableModel,
    x: Any,
    *,
    operator: Any = None,
    criteria: Any = (),
    **keywords: Unpack[EstimateKeywords],
) -> ScoreEstimate:
    """The marginal scores of ``model`` at ``x`` by one Markov chain or more for each observation.

    Observations whose chains have not converged, or came late from a far beginning, are run again
    by themselves, at most twice, with more and longer chains that tune themselves; the others stay
    as they are. What still has not converged is warned of, and False in ``converged`` of the
    result.

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
    criteria : names or objects of lksd.criteria, optional
        Additive criteria whose losses are computed from the same draws: ``losses`` of the result.

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
    wanted_losses = locate_criteria(
        read_criteria(criteria), domain, {"": support}, data, [model], options.chains.exact
    )
    with opened(options.run.engine, options.run.progress) as place:
        setup = Setup(options.run.batch_size, place, as_checkpoint(options.run.checkpoint))
        common = Estimation(
            domain, data, operators, options.chains, options.run.seed, several, wanted_losses
        )
        found = common.of(model, support, setup)
    return replace(found, notes=(*data.notes, *found.notes)) if data.notes else found


class Estimation(NamedTuple):
    """What the scores of all models of a call have in common."""

    domain: Domain
    data: Observations
    operators: tuple[SteinOperator, ...]
    chains: Chains
    seed: int
    several: bool  # whether scores are tuples, one for each operator
    criteria: tuple[Additive, ...] = ()  # whose losses are wanted too
    scores: bool = True  # whether scores are wanted, or losses alone where they are exact

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
        common = self
        if order is not None:
            common = self._replace(criteria=tuple(one.reorder(order) for one in self.criteria))
        found = estimate(common, model, values, setup)
        if order is not None and np.size(found.score):
            found = with_columns(found, np.argsort(order))
        bases = tuple(one.basis for one in self.criteria)
        return replace(
            found, columns=data.columns, support=support, observed=observed, loss_bases=bases
        )


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
    criteria = float64_leaves(common.criteria)
    if chains.unbiased:
        check_linear(operators)
        if criteria:
            raise ValueError(
                "unbiased: expected without additive criteria, which take the draws of ordinary "
                'chains. Leave it out, or use criterion="ksd".'
            )
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
    asking = [Asks(one, model) for one in criteria if asks(one)]
    wanted = targets((*operators, *asking), data) if discrete else None
    if chains.exact is not False:
        own = operators if common.scores else ()
        needed = wanted if own else targets(tuple(asking), data) if asking else None
        exact = exact_parts(model, data, own, needed, ids, chains.exact, criteria)
        if exact is not None:
            if criteria:
                fields |= loss_fields(criteria, exact[1])
            return exact_estimate(exact[0], several, notes=own_notes, **fields)
    if chains.exact:
        ways = "marginal_ratios(x, values)" if discrete else "marginal_score(x)"
        raise ValueError(
            f"exact: {model} has neither log_marginal(x) nor {ways}. Leave exact=None to estimate "
            "it."
        )
    points = Point(data, None if wanted is None else wanted.values)  # type: ignore[arg-type]
    given, look = (model, jnp.asarray(data[:1])), partial(behaviour, model, data.shape[1])
    z = once(check_latent, given, partial(check_latent, *given), look)
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
    if discrete:  # ratios take their errors into account, so that these must not be too large
        plan = plan._replace(averaged=chains.control_variates == "auto", degree=1)
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
    width = real_size(z) if controlled else 0
    watch = watch_of(criteria, model, jnp.asarray(data[0]), z, plan, width, look)
    if wanted is not None and asking and not is_averaged(model, plan, points):
        watch = replace(watch, columns=tuple(wanted.columns[len(operators)]))
    run_options = (model, float64_leaves(sampler), float64_leaves(initial))
    anywhere = isinstance(sampler, (Gibbs, Exact))
    real = kinds(z) == {"real"} and model.normalised
    modified = chains.control_variates == "none" and any(
        one.modified_posterior for one in operators
    )
    if modified:
        check_modified(model, points, sampler)
    every = run(*run_options, batches, plan, setup, watch)
    judged = [judge(found, plan, anywhere, real) for found in every]
    refuse_all(join_groups(groups, [one.faults for one in judged]), ids)
    may_run_again = chains.control_variates == "auto"
    better = tuple(np.zeros((len(own), 0)) for own in own_ids)
    if may_run_again and real:
        better = better_points(model, every, batches, own_ids, common.seed, setup)
        judged = [one.without(rows) for one, rows in zip(judged, better, strict=True)]
    good = join_groups(groups, [one.settled for one in judged])
    if may_run_again and not good.all():
        first = First(
            *run_options,
            batches,
            own_ids,
            plan,
            anywhere,
            real,
            watch,
            better,
        )
        every, judged = run_again(every, judged, first, common.seed, setup)
        notes = (*notes, rerun_note(~good, join_groups(groups, [one.converged for one in judged])))
    refuse(join_groups(groups, [one.faults for one in judged]), ids)
    found, converged = (
        quality(groups, every),
        join_groups(groups, [one.converged for one in judged]),
    )
    settled = [(good if good.any() else ~good)[group.rows] for group in groups]
    averages, remark = better_averages(every, plan, settled)
    if remark:
        notes, plan = (*notes, remark), plan._replace(control=0)
    parts = [[own] for own in refined_averages(averages, every, settled)]
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
                wanted.of(group).first(len(operators)),
                independent,
                partial(barker, *rest) if modified else None,
            )
            for means, group, *rest in zip(averages, groups, batches, own_ids, strict=True)
        ]
    if criteria:
        losses = chain_losses(criteria, watch, data, groups, every, averages, wanted)
        fields |= loss_fields(criteria, losses)
    if not converged.all():
        warn(unconverged_warning(converged, found.rhat, found.ess, ids))
    return ScoreEstimate(
        **score_fields(groups, parts, several),
        method=f"{sampler}, {plan}, {kind_of_means(model, plan, points)}",
        rhat=found.rhat,
        ess=found.ess,
        acceptance=found.acceptance,
        divergences=found.divergences.sum(1),
        converged=converged,
        two_starts=initial is None and plan.chains > 1 and begins_twice(model, z),
        notes=(*notes, *own_notes),
        **fields,
    )


def check_model(model: Any) -> None:
    if isinstance(model, type) or not isinstance(model, LatentVariableModel):
        raise TypeError(
            f"model: expected an instance of a lksd.models.LatentVariableModel; got {model!r}. "
            "Subclass it, and create one."
        )
    if not isinstance(model, (Simulates, Starts)):
        raise TypeError(
            f"model: {model} has neither sample(key) nor initial(key, x), so the shape of z is "
            "unknown. Add one of them."
        )
    if not model.normalised and not isinstance(model, SimulatesLikelihood):
        raise ValueError(
            f"model: {model} declares a likelihood whose normaliser depends on z, and "
            "sample_likelihood(key, z) is missing. Add it, so that the exchange algorithm can be "
            "used, or normalise the likelihood."
        )


def check_possible(model, x: np.ndarray, ids: np.ndarray) -> None:
    """Every word of every document, or value of every observation, can come from the model, where
    it can say so.
    """
    where = np.argwhere(model.impossible(x))
    if len(where):
        document, position = (int(i) for i in where[0])
        word, vocabulary = int(x[document, position]), model.vocabulary
        name = "" if vocabulary is None else f" ({vocabulary.words[word]!r})"
        whole, part = (
            ("document", "word")
            if isinstance(model, LDA) or model.vocabulary is not None
            else ("observation", "value")
        )
        named = (
            numbered(document, whole)
            if ids[document] == document
            else f"the {whole} with index {ids[document]}"
        )
        raise ValueError(
            f"x: {part} {word}{name} in {named} has probability zero under {model}, and so has the "
            f"{whole} ({len(set(where[:, 0].tolist()))} such {whole}s). Smooth the model's "
            f"probabilities, or remove the {part}."
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


def quality(groups: list[Group], every: list[Run]) -> Run:
    """Of the chains of all observations; the averages stay with the groups."""
    nothing: Any = None
    left_out = dict.fromkeys((*AVERAGES, "tails"), nothing)
    told = [found._replace(**left_out) for found in every]
    return jax.tree.map(lambda *parts: join_groups(groups, list(parts)), *told)


def kind_of_means(model, plan: Plan, points: Point) -> str:
    if plan.control:
        return "control variates"
    return "Rao-Blackwellised" if is_averaged(model, plan, points) else "plain means"


def is_averaged(model, plan: Plan, points: Point) -> bool:
    """Whether ratios are averaged over part of the latent."""
    return plan.averaged and isinstance(at_first(model, points), AveragesRatios)

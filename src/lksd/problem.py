"""The door: the only place where data, models, kernels, operators and options meet and
are checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ._validation import (
    MINIMUM_OBSERVATIONS,
    about,
    check_choice,
    check_reals,
    in_columns,
)
from .adapters.recognition import EXPECTED, adapter_for, recognise
from .criteria import KSD, Additive, Fisher
from .criteria.choice import Choice, choose_criteria, locate_criteria
from .criteria.identity import lacks_identity
from .domains import Domain, Observations, is_estimate, read_data
from .engines import Engine
from .inference.contrasts import pairs_of
from .inference.hypotheses import Hypothesis, prepared_family
from .inference.matching import (
    at_data,
    common_index,
    is_called,
    listed,
    same,
    untied_notes,
    with_one_operator,
)
from .inference.smoothing import Rung, rungs, warn_of_isolation
from .models import IsMixture, LatentVariableModel, SimulatesLikelihood
from .named import Named
from .options import PAPER, PAPER_CHAINS, PAPER_SWEEPS, Options
from .samplers import NUTS, Exchange
from .scores import ScoreEstimate
from .scores.averages import average
from .scores.batches import Setup
from .scores.checkpoint import as_checkpoint
from .scores.estimate import Estimation
from .scores.identity import check_identities
from .scores.plans import takes_gradients
from .stein import SteinOperator
from .supports import Coordinates, Support

ONLY_KSD = Choice(KSD(), ())
NO_FISHER = "the kernel Stein discrepancy decides, since there is no Fisher score: {}."
LEFT_OUT = "there is no Fisher score: {}."


class Findings(NamedTuple):
    """What is known of one scale of noise: the scores of all models, and what the test takes of
    them.
    """

    family: list[Hypothesis]
    scores: list[ScoreEstimate] = []  # noqa: RUF012  (none, where scores are given)
    prepared: Any = None

    def number(self, hypothesis: Hypothesis) -> int:
        """Which of the operators that the scores belong to is that of a hypothesis."""
        return next(
            i for i, one in enumerate(self.prepared.operators) if one is hypothesis.operator
        )


@dataclass(frozen=True)
class Problem:
    """A call with models, read and checked."""

    named: Named
    domain: Domain
    observations: Observations
    operators: tuple[SteinOperator, ...]
    supports: tuple[Support | None, ...]
    kernel: Any
    holdout: np.ndarray | None
    options: Options
    paper: bool
    notes: tuple[str, ...]
    choice: Choice = ONLY_KSD
    criteria: tuple[Additive, ...] = ()  # that add up, with what they take from the data

    @classmethod
    def read(
        cls,
        x: Any,
        named: Named,
        options: Options,
        kernel: Any,
        operator: Any,
        preset: str | None = None,
        check: bool = True,
        single: bool = False,
        criterion: Any = "ksd",
        also: Any = "auto",
        least: int = MINIMUM_OBSERVATIONS,
    ) -> Problem:
        """Everything that a call is about, with its defaults; a ``single`` operator where one is
        asked for, and ``least`` observations.
        """
        decision, chains, reading, run = options
        paper = preset is not None
        for number, (name, model) in enumerate(named.by(named.arguments).items()):
            if not isinstance(model, (LatentVariableModel, ScoreEstimate)):
                before, after = named.models[:number], named.models[number + 1 :]
                named = named._replace(models=(*before, read_model(name, model), *after))
        domain, data, models = read_data(x, named.by(named.arguments), reading, least)
        if decision.pairs is not None:
            pairs_of(decision.pairs, len(data.values))  # which refuses too few
        named = named._replace(models=tuple(models))
        given = {"preset": preset, "smooth": reading.smooth, "unbiased": chains.unbiased or None}
        by_kernel = next((name for name, value in given.items() if value is not None), None)
        choice = choose_criteria(criterion, also, models, chains.exact, by_kernel)
        if single and choice.primary.name != "ksd":
            raise ValueError(
                f'criterion: expected "ksd" for a goodness-of-fit test; got {choice.primary}. The '
                "mean of an additive score says which of several models fits better, not whether "
                "one fits: its smallest value is not known. Compare the model with another."
            )
        if own := choice.of("ksd"):
            kernel = own.kernel if kernel is None else kernel
            operator = own.operator if operator is None else operator
        if paper:
            check_choice("preset", preset, ["paper"])
            options = options._replace(
                decision=decision.over(PAPER),
                chains=chains.over(PAPER_SWEEPS if domain.discrete else PAPER_CHAINS),
            )
        if single:
            models[0], operator = with_one_operator(domain, models[0], operator)
        elif operator is None and chains.unbiased and not is_estimate(models[0]):
            operator = domain.linear  # of which alone there are unbiased scores
        estimates = {
            name: one for name, one in zip(named.names, models, strict=True) if is_estimate(one)
        }
        wanted = domain.papers_operators(operator) if paper else operator
        operators = (
            common_operators(domain, models, estimates, wanted)
            if estimates
            else domain.operators(wanted, models)
        )
        if single and len(operators) > 1:
            raise ValueError(
                f"operator: expected one for a goodness-of-fit test; got {len(operators)}. Test "
                "them one by one."
            )
        if not domain.discrete and operator is not None:
            data = data._replace(values=operators[0].observations(data.values))
        untied: tuple[str, ...] = ()
        if estimates:
            tied = at_data(estimates, data, "scores of {}")
            models = [tied.get(name, one) for name, one in zip(named.names, models, strict=True)]
            ids = None if reading.index is None and data.rows is None else data.ids
            data, untied = data._replace(ids=common_index(estimates, ids)), untied_notes(estimates)
        supports = domain.supports(named.names, models, data)
        domain = domain.located(
            dict(zip(named.names, supports, strict=True)), data, kernel, reading.smooth
        )
        if check and not domain.weighted:
            called = [
                name if role else "" for name, role in zip(named.names, named.roles, strict=True)
            ]
            check_identities(
                dict(zip(called, models, strict=True)),
                data.values,
                run.seed,
                options.chains,
                domain.coordinates,
            )
        holdout = reading.holdout
        if holdout is not None:
            holdout = read_holdout(domain, data, holdout)
        if domain.weighted and choice.additive and criterion == "auto":
            choice = ONLY_KSD  # a kernel that takes care of edges itself
        located: Any = (domain, {}, data, models, options.chains.exact, holdout)
        criteria = locate_criteria(choice.additive, *located)
        refusals = without_identity(named.names, models, criteria, run.seed) if check else ()
        said = ""
        if refusals:
            primary = choice.primary.name == "fisher"
            if primary and criterion != "auto":
                raise ValueError(f"criterion: the models have no Fisher score: {refusals[0]}.")
            choice, said = choice.without("fisher"), NO_FISHER if primary else LEFT_OUT
            criteria = locate_criteria(choice.additive, *located)
        return cls(
            named._replace(models=tuple(models)),
            domain,
            data,
            operators,
            tuple(supports),
            kernel,
            holdout,
            options,
            paper,
            (*data.notes, *untied, *domain.notes, *(said.format(one) for one in refusals)),
            choice,
            criteria,
        )

    def notes_with(self, findings: Findings) -> tuple[str, ...]:
        """What a reader should know of the data, of the scores, and of the units of the test."""
        own = [
            f"{name}: {note}" if role else note
            for name, role, one in zip(
                self.named.names, self.named.roles, findings.scores, strict=True
            )
            for note in one.notes
        ]
        prepared = () if findings.prepared is None else findings.prepared.notes
        return (*self.notes, *own, *prepared)

    def findings(self, engine: Engine) -> dict[str, Findings]:
        """The scores of all models and the hypotheses about them, for every scale of noise by its
        name.
        """
        reading, run = self.options.reading, self.options.run
        kept = None if run.checkpoint is None else as_checkpoint(run.checkpoint)
        found, stages = (
            {},
            [Rung(self.observations.values, list(self.named.models), self.holdout, "")],
        )
        if reading.smooth is not None:
            models = self.named.by(self.named.arguments)
            stages = rungs(self.observations, models, self.holdout, reading.smooth, run.seed)
        elif mixtures := {
            name: one
            for name, one in self.named.by(self.named.names).items()
            if isinstance(one, IsMixture)
        }:
            warn_of_isolation(self.observations.values, mixtures)
        for rung in stages:
            scores = []
            for number, (name, role, model) in enumerate(
                zip(self.named.names, self.named.roles, rung.models, strict=True)
            ):
                setup = Setup(run.batch_size, engine, kept and kept.with_label(role + rung.name))
                try:
                    with about(name if role else ""):
                        scores.append(self.scores_of(model, rung, self.supports[number], setup))
                except ValueError as error:
                    if not self.named.has_names:
                        raise
                    raise ValueError(f"{name}: {error}") from error
            data, name, coordinates = rung.x, rung.name, self.domain.coordinates
            if coordinates is not None:
                scores = [moved(one, data, coordinates) for one in scores]
                data, name = self.domain.transform("x", data), f"{name}, {coordinates}"
            if not self.choice.of("ksd", "mmd"):  # which compare observations with each other
                found[name] = Findings([], scores)
                continue
            prepared = self.domain.prepare(
                data, scores, self.kernel, rung.holdout, reading.standardise, self.paper
            )
            found[name] = Findings(
                prepared_family(prepared, self.named.names, name), scores, prepared
            )
        return found

    def scores_of(
        self,
        model: Any,
        rung: Rung,
        support: Support | None,
        setup: Setup,
        losses_alone: bool = False,
    ) -> ScoreEstimate:
        """The scores of one model, estimated where they are not given; perhaps without them where
        ``losses_alone`` are wanted.
        """
        if is_estimate(model):
            return model
        chains = self.options.chains
        if self.paper and chains.sampler is None and takes_gradients(model, rung.x):
            chains = replace(
                chains, sampler=Exchange() if isinstance(model, SimulatesLikelihood) else NUTS()
            )
        data = self.observations._replace(values=rung.x)
        common = Estimation(
            self.domain,
            data,
            self.operators,
            chains,
            self.options.run.seed,
            self.domain.discrete,
            self.criteria,
            not losses_alone,
        )
        return common.of(model, support, setup)


def read_model(name: str, model: Any) -> LatentVariableModel:
    """A fitted object of another package as the model that it is."""
    if (found := recognise(model)) is None:
        raise TypeError(
            f"{name}: expected {EXPECTED}, or a ScoreEstimate; got {model!r}. {adapter_for(model)}"
        )
    return found


def read_holdout(domain: Domain, data: Observations, holdout: Any) -> Any:
    """Other observations, in the columns and coordinates of the data."""
    if domain.discrete:
        return holdout  # which is refused with integers
    return domain.transform(
        "holdout", check_reals("holdout", in_columns(data.columns, holdout, "holdout"))
    )


def without_identity(
    names: Sequence[str], models: Sequence[Any], criteria: Sequence[Additive], seed: int
) -> tuple[str, ...]:
    """Which models have no Fisher score, and why; those of this library are known to have it."""
    fisher = next((one for one in criteria if isinstance(one, Fisher)), None)
    own = [
        (name, model)
        for name, model in zip(names, models, strict=True)
        if fisher is not None and not is_estimate(model) and not is_family(model)
    ]
    found = [(name, lacks_identity(fisher, model, seed)) for name, model in own]  # type: ignore[arg-type]
    return tuple(f"{name}: {said}" for name, said in found if said is not None)


def is_family(model: Any) -> bool:
    """Whether the model is one of this library's own, and not one that an adapter has read."""
    return type(model).__module__.startswith("lksd.models.")


# ------------------------------------------------------------- scores that are given


def common_operators(
    domain: Domain, models: list[Any], estimates: dict[str, Any], operator: Any
) -> tuple[SteinOperator, ...]:
    """The operators of the scores that are given, to which those of the other models belong too."""
    given = [one.operators for one in estimates.values()]
    if any(not same(given[0], other) for other in given[1:]):
        raise ValueError(
            f"p and q: expected scores of the same operators; got {listed(given[0])} and "
            f"{listed(given[1])}, or the same with another order of the values. Estimate both with "
            "operator=lksd.discrete_operators(p, q)."
        )
    wanted = (
        given[0]
        if operator is None
        else tuple(operator)
        if isinstance(operator, (tuple, list))
        else (operator,)
    )
    if len(wanted) != len(given[0]) or not all(map(is_called, given[0], wanted)):
        raise ValueError(
            f"operator: expected {listed(given[0])}, to which the scores given belong; got "
            f"{listed(wanted)}. Leave it out."
        )
    return domain.operators(given[0], models) if len(estimates) < len(models) else given[0]


def moved(estimate: ScoreEstimate, x: np.ndarray, coordinates: Coordinates) -> ScoreEstimate:
    """Scores at ``x``, and the batch means behind them, as scores in other coordinates."""
    score, means = (coordinates.score(x, part) for part in (estimate.score, estimate.batch_means))
    error = average(means).mcse if means.shape[1] else np.zeros_like(score)
    return replace(estimate, score=score, batch_means=means, mcse=error)

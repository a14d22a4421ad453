"""Candidates fitted to all folds but one, and scored on that one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ._text import line_of, reason_of
from ._validation import about, column_names
from .criteria import Criterion
from .engines import Engine
from .fitting.base import Fit
from .fitting.fits import Fits
from .fitting.procedures import Procedure
from .inference.losses import check_losses
from .inference.smoothing import Rung
from .models import LatentVariableModel
from .models.base import kind_of
from .named import Named
from .options import Options, check_steps
from .problem import Problem
from .scores.batches import Setup
from .scores.checkpoint import Checkpoint
from .statistics.folds import assign_folds

NO_LOSSES = (
    "criterion: expected one that adds up over the observations, so that those of all folds can be "
    "put together; got {}. {}"
)


def take(x: Any, rows: np.ndarray) -> Any:
    """Some of the observations, in the form in which all were given."""
    if hasattr(x, "iloc"):
        return x.iloc[rows]
    if hasattr(x, "tocsr"):
        return x.tocsr()[rows]
    if isinstance(x, (list, tuple)):
        return [x[row] for row in rows]
    return x[rows] if column_names(x) is None else x[rows.tolist()]


class Partitions(NamedTuple):
    """Which observations are left out together, in every repeat."""

    fold: np.ndarray  # (repeats, n)
    folds: int
    seed: int

    @classmethod
    def read(cls, n: int, folds: Any, repeats: Any, seed: int) -> Partitions:
        folds, repeats = check_steps("folds", folds, 2), check_steps("repeats", repeats, 1)
        if folds > n // 2:
            raise ValueError(
                f"folds: expected at most {n // 2}, so that each has two of the {n} observations "
                f"or more, whose spread tells the error; got {folds}. Ask for fewer."
            )
        every = [assign_folds(n, folds, seed, repeat) for repeat in range(repeats)]
        return cls(np.stack(every), folds, seed)

    def parts(self) -> Iterator[tuple[int, np.ndarray]]:
        """The repeat, and whether each observation is in the fold, for every fold."""
        for repeat, fold in np.ndindex(len(self.fold), self.folds):
            yield repeat, self.fold[repeat] == fold

    def seed_of(self, *numbers: int) -> int:
        """The seed of one fit."""
        return int(np.random.SeedSequence([self.seed, *numbers]).generate_state(1)[0])


class Unit(NamedTuple):
    """One fit: of a candidate, to the observations outside of a fold."""

    number: int
    candidate: int
    seed: int
    train: np.ndarray


class Failure(NamedTuple):
    """Why a candidate could not be fitted."""

    reason: str


def fitter(shared: tuple[Any, Any, tuple[Any, ...]]) -> Callable[[Unit], Fit | Failure]:
    """The function that fits one unit, as engines take it."""
    fit, x, candidates = shared

    def run(unit: Unit) -> Fit | Failure:
        try:
            return fit(take(x, unit.train), candidates[unit.candidate], unit.seed)
        except Exception as error:  # of the caller's code, or of another package
            ours = isinstance(error, (ValueError, TypeError)) and line_of(error) is None
            return Failure(str(error) if ours else reason_of(error))

    return run


class Part(NamedTuple):
    """The scores of all candidates on one fold."""

    problem: Problem
    losses: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]
    converged: dict[str, np.ndarray]
    notes: tuple[str, ...]


class CrossFit(NamedTuple):
    """Everything that a choice among candidates is about, read and checked."""

    x: Any
    procedure: Procedure
    partitions: Partitions
    criterion: Any
    options: Options
    check: bool
    strict: bool  # whether a candidate that fails ends the call

    @property
    def shared(self) -> tuple[Any, Any, tuple[Any, ...]]:
        return self.procedure.fit, self.x, self.procedure.candidates

    def units(self) -> Iterator[Unit]:
        """All fits, fold by fold."""
        candidates = range(len(self.procedure.labels))
        for part, (_, inside) in enumerate(self.partitions.parts()):
            train = np.flatnonzero(~inside)
            for candidate in candidates:
                number = part * len(candidates) + candidate
                yield Unit(number, candidate, self.partitions.seed_of(part, candidate), train)

    def fits(self, engine: Engine, kept: Fits) -> Iterator[Fit | Failure]:
        """The fits of all units; those that an earlier run has finished are taken from there."""
        units, known = list(self.units()), kept.finished()
        missing = [unit for unit in units if unit.number not in known]
        elsewhere = self.procedure.parallel or self.options.run.engine is not None
        made = (
            engine.map(fitter, self.shared, missing)
            if elsewhere
            else map(fitter(self.shared), missing)
        )
        for unit in units:
            found = known.get(unit.number) or next(made)
            if unit.number not in known and isinstance(found, Fit):
                kept.write(unit.number, found)
            yield found

    def fit_to_all(self, label: str) -> Fit | Failure:
        """A candidate fitted to all observations."""
        candidate = self.procedure.labels.index(label)
        everything = np.arange(self.partitions.fold.shape[1])
        seed = self.partitions.seed_of(candidate)
        return fitter(self.shared)(Unit(-1, candidate, seed, everything))

    def score(
        self,
        models: dict[str, LatentVariableModel],
        rows: np.ndarray,
        primary: Criterion | None,
        engine: Engine,
        kept: Checkpoint | None,
        failed: dict[str, str],
    ) -> Part:
        """The losses of models at the observations in a fold, by the criterion that the first fold
        has found; the models are checked there.
        """
        real = any(kind_of(one) == "reals" for one in models.values())
        reading = replace(
            self.options.reading, index=rows, holdout=self.x if real else None
        )  # one metric for all folds
        problem = Problem.read(
            take(self.x, rows),
            Named.several(models),
            self.options._replace(reading=reading),
            kernel=None,
            operator=None,
            check=self.check and primary is None,
            criterion=primary or self.criterion,
            also=(),
            least=1,
        )
        if not problem.criteria:
            why = " ".join(problem.notes) or "The models have none: give them log_marginal."
            raise ValueError(NO_LOSSES.format(problem.choice.primary, why))
        name, setup = problem.criteria[0].name, Setup(self.options.run.batch_size, engine, None)
        rung = Rung(problem.observations.values, list(problem.named.models), None, "")
        found = Part(problem, {}, {}, {}, problem.notes)
        for label, model, support in zip(models, rung.models, problem.supports, strict=True):
            own = setup._replace(checkpoint=kept and kept.with_label(label))
            try:
                with about(label):
                    scores = problem.scores_of(model, rung, support, own, losses_alone=True)
                losses = check_losses(name, scores.loss(name))
            except ValueError as error:
                self.fail(failed, label, f"it cannot be scored: {error}")
                continue
            found.losses[label] = losses
            found.errors[label] = scores.loss(name, "loss_errors")
            found.converged[label] = (
                np.ones(len(losses), bool) if scores.converged is None else scores.converged
            )
        return found

    def fail(self, failed: dict[str, str], label: str, reason: str) -> None:
        """Name a candidate that is left out, or end the call."""
        if self.strict:
            raise ValueError(f"{label}: {reason}")
        failed.setdefault(label, reason)


@dataclass(frozen=True)
class OutOfFold:
    """What is known of a candidate at every observation, from fits without it."""

    losses: np.ndarray
    loss_errors: np.ndarray
    converged: np.ndarray
    index: np.ndarray

    def loss(self, criterion: str, kind: str = "losses") -> np.ndarray:
        return getattr(self, kind)


class Scores(NamedTuple):
    """Those of all candidates that have some, in the order given."""

    labels: tuple[str, ...]
    losses: np.ndarray  # (repeats, n, candidates)
    candidates: list[OutOfFold]
    failed: dict[str, str]
    notes: tuple[str, ...]
    parts: list[Part]  # of the first partition


def cross_fit(work: CrossFit, engine: Engine, kept: Fits, advance: Callable[[int], None]) -> Scores:
    """Fit and score all candidates on every fold."""
    labels, (repeats, n) = work.procedure.labels, work.partitions.fold.shape
    losses, errors = np.full((2, repeats, n, len(labels)), np.nan)
    converged = np.ones((repeats, n, len(labels)), dtype=bool)
    failed: dict[str, str] = {}
    notes: dict[str, None] = {}  # each once, in their order
    parts: list[Part] = []
    fits = work.fits(engine, kept)
    for number, (repeat, inside) in enumerate(work.partitions.parts()):
        models = {}
        for label in labels:
            found = next(fits)
            advance(1)
            if isinstance(found, Failure):
                work.fail(failed, label, f"it cannot be fitted: {found.reason}")
                continue
            models[label] = found.model
            notes |= dict.fromkeys(f"{label}: {note}." for note in found.notes)
        live = {label: one for label, one in models.items() if label not in failed}
        check_left(live, failed)
        primary = parts[0].problem.choice.primary if parts else None
        stage = kept.checkpoint and kept.checkpoint.with_label(f"{number}/")
        part = work.score(live, np.flatnonzero(inside), primary, engine, stage, failed)
        check_basis(part, *parts[:1])
        for label, own in part.losses.items():
            column = labels.index(label)
            losses[repeat, inside, column] = own
            errors[repeat, inside, column] = part.errors[label]
            converged[repeat, inside, column] = part.converged[label]
        notes |= dict.fromkeys(part.notes)
        if repeat == 0:
            parts.append(part)
        advance(len(labels))
    left = [number for number, label in enumerate(labels) if label not in failed]
    check_left(left, failed)
    every = [
        OutOfFold(
            losses[..., c].mean(0),
            np.sqrt(np.mean(errors[..., c] ** 2, 0) / repeats),
            np.all(converged[..., c], 0),
            np.arange(n),
        )
        for c in left
    ]
    kept_labels = tuple(labels[c] for c in left)
    return Scores(kept_labels, losses[..., left], every, failed, tuple(notes), parts)


def check_basis(part: Part, first: Part | None = None) -> None:
    """Losses of all folds can be put together."""
    own, known = (one and one.problem.criteria[0].basis for one in (part, first))
    if known is not None and own != known:
        raise ValueError(
            "fit: expected models of the same support and values in every fold, so that all losses "
            f"are in the same units; got {known} in the first and {own} in another. Fix what the "
            "models do not estimate."
        )


def check_left(candidates: Any, failed: dict[str, str]) -> None:
    """There are candidates to compare."""
    if len(candidates) < 2:
        label, reason = next(iter(failed.items()))
        raise ValueError(
            f"candidates: expected at least two that can be fitted and scored; {len(candidates)} "
            f"of them can. {label}: {reason}"
        )

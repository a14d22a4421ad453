"""Observations that are real vectors, in all of space or in a part of it, and unit vectors."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from .._validation import (
    check_reals,
    column_names,
    column_order,
    default_labels,
    joined,
    row_labels,
    warn,
)
from .._vocabulary import is_words, vocabularies_of
from ..kernels import IMQ, BallBump, BoxBump, Kernel, Standardised, Weighted
from ..kernels.radial import column_spreads
from ..stein import Langevin, Spherical, SteinOperator
from ..stein.base import check_directions
from ..supports import REAL, Coordinates, Support, read_support
from .base import Domain, Observations, Prepared, check_index, is_estimate

CONTINUOUS: dict[str, Any] = {"langevin": Langevin, "spherical": Spherical}
LANGEVIN = Langevin()
UNEVEN = 100  # ratio of column scales that is reported
FEWEST_INSIDE = 0.1  # of a model's draws, the share in the domain from which they stand for it
SUGGESTED = (("unit", 0.0, 1.0), ("positive", 0.0, np.inf))


class Vectors(Domain):
    """What real vectors and unit vectors have in common."""

    describes: ClassVar[str] = "real numbers"
    operator: ClassVar[str]

    @classmethod
    def read(cls, x, models, reading):
        if reading.drop_empty:
            raise ValueError(
                "drop_empty: expected with models of documents; these describe real numbers. Leave "
                "it out."
            )
        if reading.counts is not None:
            raise ValueError(
                f"counts: {models[0]} describes real numbers, not words. Leave it out."
            )
        try:
            values = cls.check("x", x)
        except TypeError:
            if is_words(x):
                vocabularies_of(models)  # which refuses them
            raise
        ids = check_index(reading.index, len(values))
        return cls(), Observations(values, ids, column_names(x), row_names(x)), models

    @staticmethod
    @abstractmethod
    def check(name: str, value: Any) -> np.ndarray:
        """(n, D) numbers of this kind."""

    def operators(self, choice, models):
        if choice is None:
            return (CONTINUOUS[self.operator](),)
        (found,) = choice if isinstance(choice, (tuple, list)) and len(choice) == 1 else (choice,)
        found = CONTINUOUS[found]() if isinstance(found, str) and found in CONTINUOUS else found
        if not is_continuous(found):
            raise ValueError(
                f"operator: expected '{self.operator}' for models of continuous data; got "
                f"{choice if isinstance(choice, (tuple, list)) else (choice,)!r}. Leave it out."
            )
        if self.kind == "directions" != found.data:
            raise ValueError(
                f"operator: expected 'spherical' for {models[0]}, a model of unit vectors; got "
                f"{found}. Leave it out."
            )
        return (found,)

    def prepare(self, x, estimates, kernel, holdout, standardise, paper):
        given, notes = [one.part("score") for one in estimates], []
        (operator,) = estimates[0].operators
        if standardise and operator.data == "directions":
            raise ValueError(
                "standardise: expected without unit vectors, which would leave the sphere. Leave "
                "it out."
            )
        spread, units = column_spreads(x), np.ones(x.shape[1])
        source = x if holdout is None else holdout
        if source.shape[1:] != x.shape[1:]:
            raise ValueError(
                f"holdout: expected {x.shape[1]} columns as in x; got {source.shape[1]}. Give data "
                "of the same kind."
            )
        if standardise:
            if not spread.all():
                raise ValueError(
                    f"standardise: column {int(np.argmin(spread))} of x is constant and has no "
                    "scale. Drop it."
                )
            units = spread
            x, source, given = x / units, source / units, [(one * units,) for (one,) in given]
            notes.append(
                "columns are divided by their standard deviations; the hypothesis is about data in "
                "these units."
            )
        elif (kernel is not None or paper or operator.scalar) and (
            ratio := spread.max() / spread[spread > 0].min(initial=np.inf)
        ) > UNEVEN:
            warn(
                f"x: columns differ in scale by a factor of {ratio:.0f}, and the largest dominate; "
                "consider standardise=True."
            )
        if kernel is None:
            kernel = default_kernel(source, operator, paper)
            if holdout is not None:
                notes.append(
                    f"the kernel's scales come from a holdout of {len(source)} observations."
                )
        return Prepared(x, given, estimates[0].operators, kernel, units, tuple(notes))

    def mmd_kernel(self, prepared: Prepared) -> Kernel:
        return IMQ.at_median(prepared.x)


@dataclass(frozen=True)
class Reals(Vectors):
    """Real vectors, compared in coordinates in which the part of space that all models share has
    no edge.
    """

    kind: ClassVar[str] = "reals"
    operator: ClassVar[str] = "langevin"

    coordinates: Coordinates | None = None  # None for all of space
    weighted: bool = False  # whether the kernel's weight takes care of edges
    notes: tuple[str, ...] = ()

    check = staticmethod(check_reals)

    def supports(self, names, models, observations):
        return list(map(partial(support_of, observations), names, models))

    def located(self, supports, observations, kernel, smooth):
        data, dim = observations.values, observations.values.shape[1]
        notes = integer_note(data)
        shared = intersection(supports, dim)
        if kernel is not None and vanishes_at_edges(kernel):
            edges = f"the kernel's weight takes care of the edges of {shared}."
            return Reals(None, True, notes if shared == REAL else (*notes, edges))
        if shared == REAL:
            if None in supports.values():
                warn_of_support(data, supports)
            return Reals(None, False, notes)
        if smooth is not None:
            raise ValueError(
                f"smooth: expected models of all real numbers; these describe {shared}. Leave it "
                "out."
            )
        coordinates = Coordinates.of(shared, dim)
        made = (
            f"the test is made in coordinates without a boundary, {coordinates}; kernels and their "
            "scales refer to these."
        )
        ends = shared.bounds(dim)
        wider = [
            name
            for name, one in supports.items()
            if not np.array_equal((one or REAL).bounds(dim), ends)
        ]
        if not wider:
            return Reals(coordinates, False, (*notes, made))
        silent = [name for name, one in supports.items() if one is None]
        said = f"; no support is declared by {joined(silent)}" if silent else ""
        restricted = (
            f"restricted to the domain that all models share, {shared}: {joined(wider)}{said}."
        )
        return Reals(coordinates, False, (*notes, made, restricted))

    def transform(self, name: str, values: np.ndarray) -> np.ndarray:
        if self.coordinates is None:
            return values
        if values.shape[1] != len(self.coordinates.lower):
            raise ValueError(
                f"{name}: expected {len(self.coordinates.lower)} columns as in x; got "
                f"{values.shape[1]}."
            )
        inside = self.coordinates.inside(values).all(1)
        if not inside.all():
            raise ValueError(
                f"{name}: expected observations in the domain of the models; row "
                f"{int(np.argmin(inside))} lies outside. Leave it out."
            )
        return self.coordinates.forward(values)

    def draws(self, model, y):
        if self.coordinates is None or y.shape[1:] != self.coordinates.lower.shape:
            return y
        inside = self.coordinates.inside(y).all(1)
        if np.mean(inside) < FEWEST_INSIDE:
            raise ValueError(
                f"also_mmd: {np.mean(inside):.1%} of what {model} simulates lies in the domain "
                "that all models share. Leave it out."
            )
        return self.coordinates.forward(y[inside])


@dataclass(frozen=True)
class Directions(Vectors):
    """Unit vectors."""

    kind: ClassVar[str] = "directions"
    operator: ClassVar[str] = "spherical"

    check = staticmethod(check_directions)


def default_kernel(
    x: np.ndarray, operator: SteinOperator = LANGEVIN, paper: bool = False
) -> Kernel:
    """A local kernel on columns in units of their own; the paper's kernel in the paper's test, and
    where the operator takes one number only.
    """
    return IMQ.at_median(x) if paper or operator.scalar else Standardised.at_median(x)


def is_continuous(choice: Any) -> bool:
    """Whether a name or an operator is one for real data."""
    if isinstance(choice, str):
        return choice in CONTINUOUS
    return isinstance(choice, SteinOperator) and choice.data != "integers"


def row_names(x: Any) -> tuple[str, ...] | None:
    """The labels of a data frame's rows, where it does not just number them."""
    labels = row_labels(x)
    if labels is None or labels.equals(default_labels(labels)):
        return None
    return tuple(map(str, labels))


def support_of(observations: Observations, name: str, model: Any) -> Support | None:
    """What a model declares, in the order of the data's columns, which lie there."""
    if model.support == "real":
        return REAL
    x = observations.values
    support = read_support(model.support, x.shape[1])
    order = column_order("x", observations.columns, model.columns, f"the columns of {model}")
    if support is not None and order is not None:
        support = support.reordered(np.argsort(order))
    if is_estimate(model) and support is None:
        return None  # scores that were saved before supports were
    return check_support(f"{name} ({model})" if name else str(model), support, x, observations.ids)


def vanishes_at_edges(kernel: Any) -> bool:
    """Whether the user's kernels all have a weight that is zero at the edges of a region, so that
    no boundary term is left.
    """
    given = kernel if isinstance(kernel, (list, tuple)) else [kernel]
    return all(
        isinstance(one, Weighted) and isinstance(one.weight, (BallBump, BoxBump)) for one in given
    )


def intersection(supports: dict[str, Support | None], dim: int) -> Support:
    """Where all models have a density; a simplex is shared with simplexes alone."""
    if set(supports.values()) <= {REAL, None}:
        return REAL
    every = [one or REAL for one in supports.values()]
    kinds = {one.simplex for one in every}
    if len(kinds) > 1:
        said = ", ".join(f"{name} describes {one or REAL}" for name, one in supports.items())
        raise ValueError(
            f"x: expected models of the same kind of data; {said}. A density on the simplex and "
            "one on all of space cannot be compared: declare support = 'simplex' where that is "
            "meant."
        )
    if kinds != {0}:
        return every[0]
    ends = [one.bounds(dim) for one in every]
    lower, upper = np.max([low for low, _ in ends], 0), np.min([high for _, high in ends], 0)
    if len(set(zip(lower.tolist(), upper.tolist(), strict=True))) == 1:
        lower, upper = lower[:1], upper[:1]
    return Support(tuple(lower.tolist()), tuple(upper.tolist()))


def integer_note(x: np.ndarray) -> tuple[str, ...]:
    whole = int((x == np.rint(x)).all(0).sum())
    if not whole:
        return ()
    which = "x holds" if whole == x.shape[1] else f"{whole} of {x.shape[1]} columns of x hold"
    return (f"{which} integers only, which are treated as real numbers.",)


def warn_of_support(x: np.ndarray, supports: dict[str, Support | None]) -> None:
    """A warning where the data look bounded and a model does not say what it describes."""
    found = next((name for name, low, high in SUGGESTED if ((x >= low) & (x <= high)).all()), None)
    if found is None:
        return
    words = "positive" if found == "positive" else "between 0 and 1"
    silent = [name for name, one in supports.items() if one is None]
    note = (
        f"all data are {words}, and no support is declared by {joined(silent)}. A model of such "
        f"numbers alone must declare support = {found!r}, or the test is wrong at the boundary; a "
        "model of all real numbers declares support = 'real'."
    )
    warn(f"x: {note}")


def check_support(model: Any, declared: Any, x: np.ndarray, ids: np.ndarray) -> Support | None:
    """Where the model says that observations lie: all of these do. A model that says nothing is not
    given integers.
    """
    support = read_support(declared, x.shape[1])
    if support is None:
        whole = np.flatnonzero((x == np.rint(x)).all(0))
        if len(whole):
            which = "x" if len(whole) == x.shape[1] else f"column {whole[0]} of x"
            raise ValueError(
                f"x: expected real numbers for {model}, which does not say what it describes; "
                f"{which} holds integers only. A model of integers 0 .. L-1 declares n_values = L; "
                "counts without a bound cannot be compared yet; a model that treats ratings, "
                "counts or rounded values as real numbers declares support = 'real'."
            )
        return None
    check_inside(str(model), support, x, ids)
    return support


def check_inside(name: str, support: Support, x: np.ndarray, ids: np.ndarray) -> None:
    """All observations lie inside the support of the model of this name."""
    inside = Coordinates.of(support, x.shape[1]).inside(x)
    if inside.all():
        return
    row, column = (int(i) for i in np.argwhere(~inside)[0])
    value, count = x[row, column], int((~inside.all(1)).sum())
    at_end = value in [end[column] for end in support.bounds(x.shape[1])] or (
        support.simplex and value in (0.0, 1.0)
    )
    why = (
        "No density describes exact values at an end: leave them out, or use a model that gives "
        "them a probability."
        if at_end
        else "The model gives no density there: leave them out, or use another model."
    )
    raise ValueError(
        f"x: {name} describes {support}; observation {ids[row]} has {value:g} in column {column} "
        f"(observations of this kind: {count}). {why}"
    )

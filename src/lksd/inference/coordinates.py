"""The coordinates that all models of a call are scored in: those of the domain that their supports share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_reals, column_names, column_order, in_columns_of, joined, warn
from ..kernels import BallBump, BoxBump, Weighted
from ..models.base import kind_of
from ..scores import ScoreEstimate
from ..scores.averages import average
from ..scores.checks import check_support
from ..stein import Langevin
from ..supports import REAL, Coordinates, Support, read_support

FEWEST_INSIDE = 0.1  # of a model's draws, the share in the domain from which they stand for it
SUGGESTED = (("unit", 0.0, 1.0), ("positive", 0.0, np.inf))


class Domain(NamedTuple):
    """Where all models of a call have their observations."""

    coordinates: Coordinates | None  # None for all of space
    notes: tuple[str, ...] = ()
    weighted: bool = False  # whether the kernel's weight takes care of edges

    @property
    def name(self) -> str:
        """As part of the operator's."""
        return "" if self.coordinates is None else f", {self.coordinates}"

    def data(self, name: str, x: Any, like: Any = None) -> Any:
        """Observations in these coordinates, with the columns ``like`` another data frame's."""
        x = in_columns_of(like, x, name)
        if self.coordinates is None or x is None:
            return x
        raw = check_reals(name, x)
        if raw.shape[1] != len(self.coordinates.lower):
            raise ValueError(f"{name}: expected {len(self.coordinates.lower)} columns as in x; got {raw.shape[1]}.")
        inside = self.coordinates.inside(raw).all(1)
        if not inside.all():
            raise ValueError(
                f"{name}: expected observations in the domain of the models; row {int(np.argmin(inside))} lies outside. "
                "Leave it out."
            )
        return self.coordinates.forward(raw)

    def draws(self, model: Any, y: np.ndarray) -> np.ndarray:
        """Observations that a model has simulated, in these coordinates; those outside of the domain are left out."""
        if self.coordinates is None or y.shape[1:] != self.coordinates.lower.shape:
            return y
        inside = self.coordinates.inside(y).all(1)
        if np.mean(inside) < FEWEST_INSIDE:
            raise ValueError(
                f"also_mmd: {np.mean(inside):.1%} of what {model} simulates lies in the domain that all models share. Leave it out."
            )
        return self.coordinates.forward(y[inside])

    def scores(self, x: Any, estimates: list[ScoreEstimate]) -> list[ScoreEstimate]:
        """Scores at ``x``, and the batch means behind them, as scores in these coordinates."""
        if self.coordinates is None:
            return estimates
        raw = check_reals("x", x)
        return [moved(one, raw, self.coordinates) for one in estimates]


def moved(estimate: ScoreEstimate, x: np.ndarray, coordinates: Coordinates) -> ScoreEstimate:
    score, means = (coordinates.score(x, part) for part in (estimate.score, estimate.batch_means))
    error = average(means).mcse if means.shape[1] else np.zeros_like(score)
    return replace(estimate, score=score, batch_means=means, mcse=error)


def common_domain(x: Any, models: dict[str, Any], kernel: Any, smooth: Any = None) -> Domain:
    """The domain of real data and models; refuses what has no place in it, and warns where none is declared and one is likely."""
    if any(not describes_reals(model) for model in models.values()):
        return Domain(None)
    data, names = check_reals("x", x), column_names(x)
    dim, notes = data.shape[1], integer_note(data)
    declared = {name: support_of(name, model, data, names) for name, model in models.items()}
    silent = [name for name, one in declared.items() if one is None]
    supports = {name: one or REAL for name, one in declared.items()}
    shared = intersection(supports, dim)
    if vanishes_at_edges(kernel):
        edges = () if shared.is_real else (f"the kernel's weight takes care of the edges of {shared}.",)
        return Domain(None, (*notes, *edges), weighted=True)
    if shared.is_real:
        if silent:
            warn_of_support(data, silent)
        return Domain(None, notes)
    if smooth is not None:
        raise ValueError(f"smooth: expected models of all real numbers; these describe {shared}. Leave it out.")
    coordinates = Coordinates.of(shared, dim)
    made = f"the test is made in coordinates without a boundary, {coordinates}; kernels and their scales refer to these."
    wider = [name for name, one in supports.items() if not np.array_equal(one.bounds(dim), shared.bounds(dim))]
    if not wider:
        return Domain(coordinates, (*notes, made))
    said = f"; no support is declared by {joined(silent)}" if silent else ""
    restricted = f"restricted to the domain that all models share, {shared}: {joined(wider)}{said}."
    return Domain(coordinates, (*notes, made, restricted))


def vanishes_at_edges(kernel: Any) -> bool:
    """Whether the user's kernels all have a weight that is zero at the edges of a region, so that no boundary term is left."""
    given = kernel if isinstance(kernel, (list, tuple)) else [kernel]
    return all(isinstance(one, Weighted) and isinstance(one.weight, (BallBump, BoxBump)) for one in given)


def support_of(name: str, model: Any, x: np.ndarray, names: tuple[str, ...] | None) -> Support | None:
    """What a model declares, in the order of the data's columns, which lie there."""
    support = read_support(model.support, x.shape[1])
    order = column_order("x", names, getattr(model, "columns", None), f"the columns of {model}")
    if support is not None and order is not None:
        support = support.reordered(np.argsort(order))
    if isinstance(model, ScoreEstimate) and support is None:
        return None  # scores that were saved before supports were
    return check_support(f"{name} ({model})", support, x, np.arange(len(x)))


def describes_reals(model: Any) -> bool:
    """Whether observations are real vectors, with the Langevin operator."""
    if isinstance(model, ScoreEstimate):
        return isinstance(model.operators[0], Langevin)
    return kind_of(model) == "reals"


def intersection(supports: dict[str, Support], dim: int) -> Support:
    """Where all models have a density; a simplex is shared with simplexes alone."""
    kinds = {one.simplex for one in supports.values()}
    if len(kinds) > 1:
        said = ", ".join(f"{name} describes {one}" for name, one in supports.items())
        raise ValueError(
            f"x: expected models of the same kind of data; {said}. A density on the simplex and one on all of space cannot "
            "be compared: declare support = 'simplex' where that is meant."
        )
    if kinds != {0}:
        return next(iter(supports.values()))
    ends = [one.bounds(dim) for one in supports.values()]
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


def warn_of_support(x: np.ndarray, silent: list[str]) -> None:
    """A warning where the data look bounded and a model does not say what it describes."""
    found = next((name for name, low, high in SUGGESTED if ((x >= low) & (x <= high)).all()), None)
    if found is None:
        return
    words = "positive" if found == "positive" else "between 0 and 1"
    note = (
        f"all data are {words}, and no support is declared by {joined(silent)}. A model of such numbers alone must declare "
        f"support = {found!r}, or the test is wrong at the boundary; a model of all real numbers declares support = 'real'."
    )
    warn(f"x: {note}")

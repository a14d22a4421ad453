"""Stein's identity on pairs (z, x) that a model has simulated: statistics whose means are zero if
scores and draws agree.

A chart is a set of coordinates w with the gradient s of a log density in them: E[s_d f(w) +
df/dw_d] = 0 for smooth f. Where scores are averages over the posterior it is the joint density of x
and the unconstrained latent u, since z is an exact draw from the posterior of its own x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

FREQUENCIES = (1.0, 2.5)  # of the waves, for coordinates with a spread of 1
DIRECTIONS = 24  # random ones, along which witnesses look too
CROSSED = 200  # coordinates of which every pair is looked at; of more, a random choice
ROUNDING = 1e-10
# multiplications that BLAS does in one thread; several that wait for each other take longer than
# these products
SMALL = 200_000
FEATURES = 48  # of a regression on the latent: waves, beside the latent itself
SHARE = 4  # draws for each feature, at least
RIDGES = 1e-9, 1e-3  # of the latent itself, and of the waves
# what statistics belong to: coordinates and their sums, random directions, pairs
COORDINATES, ALONG, PAIRS = range(3)


class Witness(NamedTuple):
    """A function of one coordinate at many points, its derivative, and what it is called."""

    name: str
    f: np.ndarray
    df: np.ndarray | float
    expected: int = 0  # what the mean of s f is, where f' is a constant

    @property
    def identity(self) -> str:
        return (
            "score times w" if self.expected else f"score times f(w) plus f'(w), f = {self.name},"
        )


def witnesses(w: np.ndarray) -> Iterator[Witness]:
    """w itself and a few waves, for w with a spread of 1."""
    yield Witness("w", w, 1.0, -1)
    for k in FREQUENCIES:
        arc, sin, cos = "w" if k == 1 else f"{k:g}w", np.sin(k * w), np.cos(k * w)
        yield Witness(f"sin {arc}", sin, k * cos)
        yield Witness(f"cos {arc}", cos, -k * sin)


class Statistics(NamedTuple):
    """Means over the draws that are to be zero, and their standard errors."""

    name: str
    expected: int  # of what the name says, which is the mean and this
    mean: Float[np.ndarray, " k"]
    error: Float[np.ndarray, " k"]
    place: Callable[[int], str]  # where each of them is
    order: int = COORDINATES  # the simplest to speak of come first

    @property
    def t(self) -> Float[np.ndarray, " k"]:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.mean == 0, 0.0, self.mean / self.error)


def statistics(
    name: str, expected: int, values, parts, place, order: int = COORDINATES
) -> Statistics:
    """Means over the first axis; a mean that is mere rounding beside the ``parts`` of its values
    counts as zero.
    """
    mean, error = values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))
    size = np.mean(np.abs(parts), 0)
    mean = np.where(np.abs(mean) <= ROUNDING * size, 0.0, mean)
    return Statistics(
        name, expected, mean, np.where(error <= ROUNDING * size, 0.0, error), place, order
    )


def slices(a, width: int) -> list[slice]:
    """Rows of a whose product with ``width`` columns is small."""
    size = max(1, SMALL // max(1, a.shape[1] * width))
    return [slice(start, start + size) for start in range(0, len(a), size)]


def times(a, b) -> np.ndarray:
    """a @ b for a tall a."""
    return np.concatenate([a[rows] @ b for rows in slices(a, b.shape[1])])


def moments(a, b) -> np.ndarray:
    """a.T @ b for tall a and b."""
    total = np.zeros((a.shape[1], b.shape[1]))
    for rows in slices(a, b.shape[1]):
        total += a[rows].T @ b[rows]
    return total


class Unit(NamedTuple):
    """Robust centres and scales of columns."""

    centre: np.ndarray
    scale: np.ndarray

    def __call__(self, columns):
        return (columns - self.centre) / self.scale


def unit_of(columns: Float[np.ndarray, "m k"]) -> Unit:
    low, centre, high = np.quantile(columns, [0.25, 0.5, 0.75], axis=0)
    scale = np.where(high > low, (high - low) / 1.349, columns.std(0))
    return Unit(centre, np.where(scale > 0, scale, 1.0))


class Frame(NamedTuple):
    """What is chosen once, on the first draws, and kept for the rest."""

    own: Unit
    others: Unit
    directions: Float[np.ndarray, "k p"]
    along: Unit
    rows: Int[np.ndarray, " a"]  # of the pairs
    columns: Int[np.ndarray, " b"]


class Chart(NamedTuple):
    """Coordinates, the gradient of a log density in them, and what else a witness may look at."""

    w: Float[np.ndarray, "m p"]
    s: Float[np.ndarray, "m p"]
    others: Float[np.ndarray, "m r"]
    of_x: int  # how many of the coordinates belong to x
    name: str = "x"  # what those are called
    sphere: bool = False  # whether w are unit vectors

    def label(self, number: int) -> str:
        return f"{self.name}[{number}]" if number < self.of_x else f"u[{number - self.of_x}]"

    def make_frame(self, rng: np.random.Generator) -> Frame:
        own = unit_of(self.w)
        return frame(self, own, self.w if self.sphere else own(self.w), rng)

    def statistics(self, kept: Frame) -> list[Statistics]:
        """The witnesses 1, w_d and waves of w_d, for each coordinate and summed; along random
        directions; for all pairs.
        """
        s, w = self.s, self.w
        # the field is the projection of a fixed direction on the tangent space, its divergence -(D
        # - 1) w_d
        if self.sphere:
            s = s - w * np.sum(w * s, 1, keepdims=True) - (w.shape[1] - 1) * w
        scaled, standard = s * kept.own.scale, kept.own(w)
        found = [statistics("the score", 0, scaled, scaled, self.label)]
        found += self.along(s, w, kept.own, self.label, COORDINATES)
        s, w = (
            times(part, kept.directions.T)
            for part in ((s, w) if self.sphere else (scaled, standard))
        )
        found += self.along(s, w, kept.along, "random direction {}".format, ALONG)
        return (
            found
            if self.sphere
            else [*found, cross_statistics("the score", scaled, standard, self, kept)]
        )

    def along(self, s, w, unit: Unit, place: Callable[[int], str], order: int) -> list[Statistics]:
        """s f + f' along directions in which the coordinates are w, f a function of w in these
        units.
        """
        found, s = [], s * unit.scale
        growth = 1 - w**2 if self.sphere else 1.0  # of w along its direction
        for witness in witnesses(unit(w)):
            parts = s * witness.f
            values = parts + witness.df * growth
            found.append(
                statistics(witness.identity, witness.expected, values, parts, place, order)
            )
            found += self.sums(witness, values, parts) if order == COORDINATES else []
        return found

    def sums(self, witness: Witness, values, parts) -> list[Statistics]:
        """Means over all coordinates of x, all of u, and both: mistakes that all of them share."""
        width = values.shape[1]
        groups = {
            "all coordinates": slice(None),
            f"all {self.name}[d]": slice(self.of_x),
            "all u[d]": slice(self.of_x, None),
        }
        if self.of_x in (0, width):
            groups = {"all coordinates": slice(None)} if width > 1 else {}
        if not groups:
            return []
        values, parts = (
            np.stack([one[:, own].mean(1) for own in groups.values()], 1) for one in (values, parts)
        )
        return [
            statistics(witness.identity, witness.expected, values, parts, list(groups).__getitem__)
        ]


class Neighbours(NamedTuple):
    """Integers, and the ratios p(x with x_d -> v)/p(x) for their two neighbours v on the cycle of
    all values.
    """

    w: Int[np.ndarray, "m D"]
    ratios: Float[np.ndarray, "m D 2"]
    others: Float[np.ndarray, "m r"]
    size: int  # of the alphabet

    def label(self, number: int) -> str:
        return f"x[{number}]"

    def make_frame(self, rng: np.random.Generator) -> Frame:
        own = unit_of(self.w.astype(np.float64))
        return frame(self, own, own(self.w), rng)

    def statistics(self, kept: Frame) -> list[Statistics]:
        """Barker's moves keep p: E[sum_v a_v (f(x with x_d -> v) - f(x))] = 0, a_v = r_v / (1 +
        r_v), for every d and f.
        """
        name, found = "the change of {} that Barker's moves are expected to make", []
        changes = self.changes(kept.own)
        for witness, change in changes.items():
            found.append(statistics(name.format(witness), 0, change, change, self.label))
            total = change.mean(1, keepdims=True)
            found.append(
                statistics(name.format(witness), 0, total, total, ["all coordinates"].__getitem__)
            )
        return [
            *found,
            cross_statistics(name.format("sin w"), changes["sin w"], kept.own(self.w), self, kept),
        ]

    def changes(self, unit: Unit) -> dict[str, Float[np.ndarray, "m D"]]:
        """sum_v a_v (f(x with x_d -> v) - f(x)) for every witness."""
        # the two neighbours of one of two values are the same
        steps = (1, -1) if self.size > 2 else (1,)
        found = {witness.name: np.zeros(self.w.shape) for witness in witnesses(unit(self.w))}
        for number, step in enumerate(steps):
            with np.errstate(divide="ignore"):
                weight = 1 / (1 + 1 / self.ratios[..., number])
            moved = unit((self.w + step) % self.size)
            for there, here in zip(witnesses(moved), witnesses(unit(self.w)), strict=True):
                found[here.name] += weight * (there.f - here.f)
        return found


def frame(chart: Any, own: Unit, w, rng: np.random.Generator) -> Frame:
    width, more = w.shape[1], chart.others.shape[1]
    directions = rng.normal(size=(DIRECTIONS if width > 1 else 0, width))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    rows, columns = (rng.permutation(size)[:CROSSED] for size in (width, width + more))
    return Frame(
        own, unit_of(chart.others), directions, unit_of(times(w, directions.T)), rows, columns
    )


def cross_statistics(name: str, s, w, chart: Any, kept: Frame) -> Statistics:
    """What belongs to one coordinate, which has mean zero given the others, times a bounded
    function of another.
    """
    s, witness = (
        s[:, kept.rows],
        np.tanh(np.hstack([w, kept.others(chart.others)]))[:, kept.columns],
    )
    m, width = len(s), len(kept.columns)
    mean = moments(s, witness) / m
    error = np.sqrt(np.maximum(moments(s**2, witness**2) / m - mean**2, 0.0) / (m - 1))
    mean[kept.rows[:, None] == kept.columns] = 0.0

    def place(number: int) -> str:
        d, e = int(kept.rows[number // width]), int(kept.columns[number % width])
        other = chart.label(e) if e < w.shape[1] else f"latent number {e - w.shape[1]}"
        return f"{chart.label(d)}, times tanh w at {other},"

    return Statistics(name, 0, mean.ravel(), error.ravel(), place, PAIRS)


class Regression(NamedTuple):
    """x as a function psi of u: linear, and waves of random frequencies.

    Noise that is small beside the spread of x shows in what the regression leaves of x alone.
    """

    unit: Unit
    frequencies: Float[np.ndarray, "q k"]
    phases: Float[np.ndarray, " k"]
    inverse: Float[np.ndarray, "f f"]  # of the features' second moments
    coefficients: Float[np.ndarray, "f D"]

    def features(self, u) -> Float[np.ndarray, "m f"]:
        return features(self.unit(u), self.frequencies, self.phases)

    def apply(self, x, u, score, slope, own: bool):
        """x - psi(u), and the gradient in u where that is held fixed: slope + psi'(u)' score.

        The map from (x, u) to (x - psi(u), u) keeps volumes. For the draws that psi was fitted on
        (``own``) each has the psi of all others, by the formula for one observation left out, so
        that it is a fixed function there too.
        """
        values = self.features(u)
        rest = x - times(values, self.coefficients)
        weights = times(score, self.coefficients.T)
        if own:
            solved = times(values, self.inverse)
            free = 1 - np.sum(solved * values, 1, keepdims=True)
            weights -= solved * np.sum(score * rest, 1, keepdims=True) / free
            rest = rest / free
        width = u.shape[1]
        bent = (
            -np.sin(times(self.unit(u), self.frequencies) + self.phases) * weights[:, 1 + width :]
        )
        moved = (weights[:, 1 : 1 + width] + times(bent, self.frequencies.T)) / self.unit.scale
        return rest, slope + moved if slope.shape == u.shape else slope


def regression(x, u, rng: np.random.Generator) -> Regression | None:
    """Fitted by least squares; None where u has too many coordinates for so many draws."""
    m, width = u.shape
    room = m // SHARE - width - 1
    if room < 0 or not width:
        return None
    unit, count = unit_of(u), min(FEATURES, room)
    frequencies, phases = (
        rng.normal(size=(width, count)) / np.sqrt(width),
        rng.uniform(0, 2 * np.pi, count),
    )
    values = features(unit(u), frequencies, phases)
    ridge = m * np.repeat(RIDGES, (1 + width, count))
    inverse = np.linalg.inv(moments(values, values) + np.diag(ridge))
    return Regression(unit, frequencies, phases, inverse, inverse @ moments(values, x))


def features(u, frequencies, phases) -> Float[np.ndarray, "m f"]:
    return np.hstack([np.ones((len(u), 1)), u, np.cos(times(u, frequencies) + phases)])

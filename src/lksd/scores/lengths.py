"""Documents in groups of like length, so that short ones do not pay for the longest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from .chains import Point

WORTH = 2e7  # steps of a chain at one word that take as long as to compile one more program
CLASSES = 2  # of lengths, between a length and its double
# for each word: what exact scores cost, and what is kept of a chain costs in memory
EXACT_STEPS, LEAST_STEPS = 10, 200
AT_ONCE = 32  # observations whose batch means are filled up with zeros at a time


class Group(NamedTuple):
    """Observations that are computed together, none longer than ``length``."""

    rows: Int[np.ndarray, " k"]
    length: int

    def of(self, points: Point, keys: Any = None) -> tuple[Point, Any]:
        """Their points, cut to the length, and their keys."""
        values = None if points.values is None else points.values[self.rows, : self.length]
        return Point(points.x[self.rows, : self.length], values), None if keys is None else keys[
            self.rows
        ]


def length_groups(x: np.ndarray, steps: float) -> list[Group]:
    """The documents (padded with -1) by their lengths, the longest first.

    A group is joined to the next longer one unless that would add more work than a program of its
    own takes, at ``steps`` for each word. What a document's chains draw does not depend on what
    follows its end, so its scores do not depend on its group.
    """
    if not np.issubdtype(x.dtype, np.integer) or (x >= 0).all():
        return [Group(np.arange(len(x)), x.shape[1])]
    lengths = x.shape[1] - np.argmax(x[:, ::-1] >= 0, 1)
    classes = np.ceil(CLASSES * np.log2(lengths))
    found: list[Group] = []
    rows = np.zeros(0, int)
    for number in np.unique(classes):
        longest = int(lengths[classes == number].max())
        if len(rows) and steps * len(rows) * (longest - lengths[rows].max()) > WORTH:
            found.append(Group(rows, int(lengths[rows].max())))
            rows = rows[:0]
        rows = np.sort(np.concatenate([rows, np.flatnonzero(classes == number)]))
    return [*found, Group(rows, int(lengths[rows].max()))][::-1]


def join_groups(groups: list[Group], parts: list[np.ndarray]) -> np.ndarray:
    """One array of all observations from those (k, ...) of the groups."""
    whole = np.empty(
        (sum(len(group.rows) for group in groups), *parts[0].shape[1:]), parts[0].dtype
    )
    for group, part in zip(groups, parts, strict=True):
        whole[group.rows] = part
    return whole


def pad_groups(groups: list[Group], parts: list[np.ndarray]) -> np.ndarray:
    """The same for arrays (k, D, ...) with as many positions as each group has; zeros beyond."""
    if len(groups) == 1:
        return parts[0]
    longest = max(group.length for group in groups)
    whole = np.zeros((sum(len(group.rows) for group in groups), longest, *parts[0].shape[2:]))
    for group, part in zip(groups, parts, strict=True):
        whole[group.rows, : group.length] = part
    return whole


def batch_means(groups: list[Group], parts: list[np.ndarray]) -> Any:
    """Batch means (k, C, B, D, ...) of the groups as those of all observations."""
    return (
        parts[0]
        if len(groups) == 1
        else BatchMeans(tuple(group.rows for group in groups), tuple(parts))
    )


@dataclass(frozen=True, eq=False)
class BatchMeans:
    """An array (n, C, B, D, ...) of documents in groups of like length, kept without the zeros
    after their ends.

    Rows are taken by ``means[rows]``; ``numpy.asarray(means)`` is the whole array, and whatever
    else an array has is that of it.
    """

    rows: tuple[Int[np.ndarray, " k"], ...]
    parts: tuple[np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        first = self.parts[0].shape
        longest = max(part.shape[3] for part in self.parts)
        return (sum(map(len, self.rows)), *first[1:3], longest, *first[4:])

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        if isinstance(index, tuple):
            return np.asarray(self)[index]
        wanted = np.arange(len(self))[index]
        whole = np.zeros((wanted.size, *self.shape[1:]))
        for rows, part in zip(self.rows, self.parts, strict=True):
            place = np.full(len(self), -1)
            place[rows] = np.arange(len(rows))
            here = place[wanted.ravel()]
            whole[here >= 0, :, :, : part.shape[3]] = part[here[here >= 0]]
        return whole.reshape(*wanted.shape, *self.shape[1:])

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self[:] if dtype is None else self[:].astype(dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


def project(means: Any, rows: Int[np.ndarray, " k"], slopes: np.ndarray) -> np.ndarray:
    """The inner products (k, C, B) of batch means of some observations with the slopes (k, D, ...)
    there.
    """
    found = []
    for start in range(0, len(rows), AT_ONCE):
        chosen = slice(start, start + AT_ONCE)
        part, slope = means[rows[chosen]], slopes[chosen]
        flat = part.reshape(*part.shape[:3], -1)
        found.append(np.einsum("ncbd,nd->ncb", flat, slope.reshape(len(slope), -1)))
    return np.concatenate(found)

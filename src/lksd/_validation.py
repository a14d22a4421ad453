"""Checks at the door. Every message says what was expected, what came, and what to do."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from pathlib import Path

import numpy as np

MINIMUM_OBSERVATIONS = 4
LARGEST = 1e40  # of data and scores
SEEDS = 2**63  # as many as keys take


class LksdWarning(UserWarning):
    """Every warning of this library, so that one filter reaches them all."""


PACKAGE = str(Path(__file__).parent)
_subject: ContextVar[str] = ContextVar("subject", default="")
_said: ContextVar[list[str] | None] = ContextVar("said", default=None)


@contextmanager
def about(name: str) -> Iterator[None]:
    """Warnings given inside begin with this name, which says which of several models they are
    about.
    """
    token = _subject.set(name)
    try:
        yield
    finally:
        _subject.reset(token)


def warn(message: str) -> None:
    """A warning that points at the caller's own line: the first outside of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    subject, said = _subject.get(), _said.get()
    if said is not None:
        said.append(message)
    warnings.warn(f"{subject}: {message}" if subject else message, LksdWarning, stacklevel=level)


def noted(function: Callable) -> Callable:
    """``function``, whose result has all warnings that were given on the way among its
    ``notes``.
    """

    @wraps(function)
    def call(*args, **options):
        said: list[str] = []
        token = _said.set(said)
        try:
            result = function(*args, **options)
        finally:
            _said.reset(token)
        new = said and [one for one in dict.fromkeys(said) if one not in result.notes]
        return replace(result, notes=(*result.notes, *new)) if new else result

    return call


def to_numpy(name: str, value) -> np.ndarray:
    """A numeric NumPy array from an array, a nested list or a data frame of numeric columns."""
    if hasattr(value, "toarray"):
        raise TypeError(
            f"{name}: got a sparse matrix, which is read as word counts and only fits a BagOfWords "
            "kernel. Use .toarray() if these are plain numbers."
        )
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        where = tuple(int(i) for i in np.argwhere(np.ma.getmaskarray(value))[0])
        raise ValueError(
            f"{name}: expected no missing values; the one at index {where} is masked. Remove or "
            "impute them first."
        )
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TypeError(
            f"{name}: expected a rectangular array; its rows differ in length. Pad them or check "
            "the data."
        ) from error
    if array.dtype == object:
        array = numbers_of(name, array)
    if array.dtype == bool:
        return array.astype(np.int64)
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise TypeError(
            f"{name}: expected real numbers; got values of type {array.dtype}. Keep the numeric "
            "columns only."
        )
    return array


def column_names(value) -> tuple[str, ...] | None:
    """The names of a data frame's columns; None for anything else."""
    names = getattr(value, "columns", None)
    return (
        None
        if names is None or not hasattr(value, "to_numpy")
        else tuple(str(name) for name in names)
    )


def column_order(
    name: str, given: tuple[str, ...] | None, wanted: Sequence[str] | None, whose: str
) -> list[int] | None:
    """Where the wanted columns stand among the given ones; None where one side has no names, or
    both have one order.
    """
    if given is None or wanted is None or given == (wanted := tuple(str(one) for one in wanted)):
        return None
    for names in (given, wanted):
        check_distinct(name, names)
    missing, unknown = (
        [one for one in a if one not in set(b)] for a, b in ((wanted, given), (given, wanted))
    )
    if missing or unknown:
        said = [
            f"{word} {', '.join(map(repr, names[:5]))}"
            for word, names in (("lacks", missing), ("has also", unknown))
            if names
        ]
        raise ValueError(
            f"{name}: expected {whose} by their names; it {' and '.join(said)}. Select and name "
            "the same columns."
        )
    return [given.index(one) for one in wanted]


def check_distinct(name: str, columns: Sequence[str]) -> None:
    """No two columns have one name."""
    if twice := sorted(one for one, times in Counter(columns).items() if times > 1):
        raise ValueError(
            f"{name}: expected columns with different names; {twice[0]!r} occurs twice. Rename one."
        )


def in_columns(columns: tuple[str, ...] | None, value, name: str):
    """``value`` with its columns in the order of those of x, where both have names."""
    order = column_order(name, column_names(value), columns, "the columns of x")
    return value if order is None else to_numpy(name, value)[:, order]


def row_labels(value):
    """The row index of a pandas object; None for anything else."""
    return value.index if hasattr(value, "iloc") and hasattr(value, "to_numpy") else None


def default_labels(labels):
    """0, 1, 2, ... as pandas numbers rows that have no labels."""
    import pandas

    return pandas.RangeIndex(len(labels))


def joined(names) -> str:
    """Two names with "and" between them; of several the first and the last with dots."""
    names = list(names)
    return " and ".join(names) if len(names) <= 2 else f"{names[0]}, ..., {names[-1]}"


def numbers_of(name: str, array: np.ndarray) -> np.ndarray:
    """An array of Python objects as float64; the first that is no number is named."""
    numbers = np.empty(array.shape)
    for where, entry in np.ndenumerate(array):
        if isinstance(entry, str) or not hasattr(entry, "__float__"):
            raise TypeError(
                f"{name}: expected numbers; got {entry!r} at index {where}. Remove missing values, "
                "keep numeric columns only."
            )
        numbers[where] = float(entry)
    return numbers


def check_number(name: str, value) -> float:
    """One finite number."""
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "iuf" or not np.isfinite(array):
        raise TypeError(f"{name}: expected one finite number; got {value!r}. Give a float.")
    return float(array)


def check_size(name: str, value) -> int:
    """The size of an alphabet."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 2:
        raise ValueError(
            f"{name}: expected an integer of at least 2; got {value!r}. Give the size of the "
            "alphabet."
        )
    return int(value)


def check_finite(name: str, array: np.ndarray) -> np.ndarray:
    flat = array.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        # one fast pass; finite numbers may still have squares that are not
        if np.isfinite(np.vdot(flat, flat)):
            return array
    finite = np.isfinite(array)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(
            f"{name}: expected finite numbers; got {array[where]} at index {where} "
            f"({int((~finite).sum())} such values). Remove or impute these observations first."
        )
    return array


def check_moderate(name: str, array: np.ndarray) -> np.ndarray:
    """Finite numbers whose sixth powers, which the test's moments hold, can be summed without
    overflow.
    """
    if array.size and not max(-float(array.min()), float(array.max())) <= LARGEST:
        check_finite(name, array)
        where = tuple(int(i) for i in np.unravel_index(np.argmax(np.abs(array)), array.shape))
        raise ValueError(
            f"{name}: expected numbers below {LARGEST:g} in size, so that powers of them stay "
            f"finite; got {array[where]:g} at index {where}. Check this observation, or rescale "
            "the data."
        )
    return array


def check_count(name: str, n: int, minimum: int = MINIMUM_OBSERVATIONS) -> None:
    if n < minimum:
        raise ValueError(
            f"{name}: expected at least {minimum} observations; got {n}. Collect more data."
        )


def check_reals(name: str, value) -> np.ndarray:
    """A finite (n, D) float64 array; a vector is read as n observations of one coordinate."""
    array = to_numpy(name, value).astype(np.float64, copy=False)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"{name}: expected shape (n, D); got {array.shape}. Put one observation in each row."
        )
    return check_moderate(name, array)


def check_integers(name: str, value) -> np.ndarray:
    """A (n, D) int32 array; numbers with a fractional part are refused."""
    array = check_finite(name, to_numpy(name, value))
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"{name}: expected shape (n, D); got {array.shape}. Put one observation in each row."
        )
    rounded = array if np.issubdtype(array.dtype, np.integer) else np.rint(array)
    if not (rounded == array).all():
        where = tuple(int(i) for i in np.argwhere(rounded != array)[0])
        raise ValueError(
            f"{name}: expected integers for a discrete operator; got {array[where]} at index "
            f"{where}. Use the Langevin operator for continuous data, and do not mix the two kinds "
            "of column."
        )
    if rounded.size and max(-float(rounded.min()), float(rounded.max())) > np.iinfo(np.int32).max:
        raise ValueError(
            f"{name}: expected integers below 2^31; the largest is {float(rounded.max()):g}. "
            "Recode the values."
        )
    return rounded.astype(np.int32)


def check_range(name: str, tokens: np.ndarray, n_values: int) -> None:
    """Every value lies in 0 .. n_values - 1 (-1 marks a position that a document lacks)."""
    outside = (tokens >= n_values) | (tokens < -1)
    if outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        raise ValueError(
            f"{name}: expected values from 0 to {n_values - 1}; got {tokens[where]} at index "
            f"{where}. Recode the values, or raise n_values."
        )


def check_probability(name: str, value) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.number))
        or not 0 < value < 1
    ):
        raise ValueError(
            f"{name}: expected a number strictly between 0 and 1; got {value!r}. A usual choice is "
            "0.05."
        )
    return float(value)


def check_choice(name: str, value, choices: Iterable[str]) -> str:
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}: expected one of {listed}; got {value!r}. Check the spelling.")
    return value


def check_seed(seed) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(
            f"seed: expected an integer of at least 0; got {seed!r}. Give one, so that the digits "
            "can be had again."
        )
    if seed >= SEEDS:
        raise ValueError(f"seed: expected an integer below 2^63; got {seed}. Give a smaller one.")
    return int(seed)

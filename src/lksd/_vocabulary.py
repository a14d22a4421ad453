"""The words of a topic model, as a constant that compiled programs may carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ._documents import DROP, checked_counts, dense_counts, numbered
from ._validation import check_distinct, column_names


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their ids."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.words)) < len(self.words):
            first: dict[str, int] = {}
            word, number = next(
                (w, i) for i, w in enumerate(self.words) if first.setdefault(w, i) != i
            )
            raise ValueError(
                f"vocabulary: expected different words; words {first[word]} and {number} (counting "
                f"from 0) are both {word!r}. Rename one, or add up their columns."
            )

    def __hash__(self) -> int:
        # hundreds of thousands of words are compared where that must be, and never hashed
        return len(self.words)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.words)} words)"


def as_vocabulary(words: Sequence[str] | Vocabulary | None) -> Vocabulary | None:
    if words is None or isinstance(words, Vocabulary):
        return words
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise TypeError(
            "vocabulary: expected a sequence of strings, one for each word id; got something else. "
            "List the words."
        )
    return Vocabulary(tuple(words))


def is_words(x: Any) -> bool:
    """Documents as lists of words, not of ids."""
    column = getattr(x, "ndim", 0) == 1 and getattr(x.dtype, "kind", "O") in "OUT"
    if not column and not isinstance(x, (list, tuple)):
        return False
    first: Any = next((one for one in x if hasattr(one, "__len__") and len(one)), ())
    if isinstance(first, str):
        raise TypeError(
            f"x: expected each document as a list of words; got text, {first[:40]!r}. Split it "
            "into words first."
        )
    return hasattr(first, "__getitem__") and len(first) > 0 and isinstance(first[0], str)


def word_columns(x: Any) -> tuple[str, ...] | None:
    """The names of a data frame's columns, where they may be words; None for anything else."""
    names = column_names(x)
    return names if names is not None and all(isinstance(name, str) for name in x.columns) else None


def holds_words(x: Any, models: Sequence[Any], counts: bool | None) -> bool:
    """Whether documents are lists of words, or a data frame of counts whose columns are words, and
    the models know words.
    """
    names = word_columns(x)
    if names is None or counts is False:
        return is_words(x)
    known = {
        word for model in models if model.vocabulary is not None for word in model.vocabulary.words
    }
    if counts is None and 2 * sum(name in known for name in names) > len(names):
        raise ValueError(
            "x: its columns have the names of words, such as "
            f"{next(name for name in names if name in known)!r}, and could hold their counts or "
            "token ids. Say counts=True, or counts=False for ids."
        )
    return bool(known and counts)


def as_documents(
    x: Any, vocabulary: Vocabulary, drop_empty: bool = False
) -> tuple[Any, tuple[str, ...]]:
    """Documents of words by the ids of the words, and notes on what is left out; see
    ``holds_words``.
    """
    names = word_columns(x)
    return (
        as_ids(x, vocabulary, drop_empty)
        if names is None
        else as_counts(x, names, vocabulary, drop_empty)
    )


def as_counts(
    frame: Any, names: tuple[str, ...], vocabulary: Vocabulary, drop_empty: bool = False
) -> tuple[csr_array, tuple[str, ...]]:
    """Counts of words by their ids, and notes on words that are not in the vocabulary or have no
    column.
    """
    check_distinct("x", names)
    ids = {word: number for number, word in enumerate(vocabulary.words)}
    found = [column for column, name in enumerate(names) if name in ids]
    if not found:
        raise ValueError(
            f"x: expected columns that are words of the models' vocabulary of {len(ids)} words, "
            f"such as {vocabulary.words[0]!r}; none of {len(names)} is ({names[0]!r}, ...). Name "
            "the columns by their words, or give x.to_numpy() with a column for each word in the "
            "order of the vocabulary."
        )
    given = sparse_counts(frame)
    known = given[:, found].tocoo()
    place = np.array([ids[names[column]] for column in found])
    counts = csr_array(
        (known.data, (known.row, place[known.col])), shape=(given.shape[0], len(ids))
    )
    totals, kept = (np.asarray(matrix.sum(1)).ravel() for matrix in (given, counts))
    if not drop_empty and (unknown := np.flatnonzero((kept == 0) & (totals > 0))).size:
        raise no_known_words(int(unknown[0]), int(totals[unknown[0]]), len(ids))
    notes = left_out(
        int(totals.sum()),
        int(kept.sum()),
        int((given.sum(0) > 0).sum() - (counts.sum(0) > 0).sum()),
    )
    if missing := len(ids) - len(found):
        said = (
            f"{missing:,} of the {len(ids):,} words in the models' vocabulary have no column, and "
            "are taken not to occur."
        )
        notes = (*notes, said)
    return counts, notes


def sparse_counts(frame: Any) -> csr_array:
    """A data frame's counts; sparse columns of pandas stay sparse."""
    try:
        matrix = frame.sparse.to_coo()
    # columns that are not sparse, or whose common value is not zero
    except (AttributeError, ValueError):
        return dense_counts(frame)
    return checked_counts(matrix)


def no_known_words(number: int, count: int, known: int) -> ValueError:
    return ValueError(
        f"x: {numbered(number)}: none of its {count} words is in the models' vocabulary of {known} "
        f"words. Say {DROP} to leave such documents out, or prepare them as for the models' "
        "training."
    )


def left_out(total: int, kept: int, kinds: int) -> tuple[str, ...]:
    """A note on words that are not in the vocabulary, if there are some."""
    if kept == total:
        return ()
    return (
        f"{total - kept:,} of {total:,} words ({kinds:,} different) are not in the models' "
        "vocabulary and are left out.",
    )


def as_ids(
    documents: Sequence[Sequence[str]], vocabulary: Vocabulary, drop_empty: bool = False
) -> tuple[list[list[int]], tuple[str, ...]]:
    """Word ids, and a note where words are not in the vocabulary and so left out; a document
    without any is an error, or empty.
    """
    ids = {word: number for number, word in enumerate(vocabulary.words)}
    found = [[ids[word] for word in document if word in ids] for document in documents]
    for number, (document, left) in enumerate(zip(documents, found, strict=True)):
        if not left and not drop_empty:
            raise no_known_words(number, len(document), len(ids))
    kinds = len({word for document in documents for word in document} - ids.keys())
    return found, left_out(sum(map(len, documents)), sum(map(len, found)), kinds)


def vocabularies_of(models: Sequence[Any]) -> list[Vocabulary]:
    """The vocabularies of the models that have one; documents of words need at least one."""
    given = [model.vocabulary for model in models if model.vocabulary is not None]
    if not given:
        raise ValueError(
            "x: the documents hold words, but no model has a vocabulary. Give word ids, or models "
            "with their words."
        )
    return given

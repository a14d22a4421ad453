"""Documents of any form as one padded array of token ids, -1 where a document has ended."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ._validation import check_count, check_integers, check_range, to_numpy, warn
from .graphs import edges

PADDING = -1
NAMED = 20  # documents that a note names
# words of all documents from which a test takes minutes, and places of the table of documents and
# words, a gigabyte of it, beyond which it does not end
MANY_WORDS, MOST_PLACES = 5_000_000, 2**28
DROP = "drop_empty=True (--drop-empty)"


def numbered(index: int, kind: str = "document") -> str:
    """A document in a message, all of which count in the same way."""
    return f"{kind} {index} (counting from 0)"


def is_sparse(x) -> bool:
    return hasattr(x, "tocsr")


def is_ragged(x) -> bool:
    """A list, tuple or column of token-id sequences that differ in length."""
    listed = isinstance(x, (list, tuple)) or (
        getattr(getattr(x, "dtype", None), "kind", "") == "O" and getattr(x, "ndim", 0) == 1
    )
    return listed and len(set(map(np.size, x))) > 1


def pad(documents, scored: bool = True) -> np.ndarray:
    """Token-id lists of different length as an (n, D) int32 array padded with -1; see ``as_tokens``
    for ``scored``.
    """
    rows = list(map(np.asarray, documents))
    for index, row in enumerate(rows):
        if row.ndim != 1 or (row.size and not np.issubdtype(row.dtype, np.integer)):
            raise TypeError(
                f"x: expected each document as a list of integer token ids; {numbered(index)} is "
                "not. Map words to ids with the model's vocabulary first."
            )
        if row.size == 0:
            way = (
                "Remove it, and its scores with it"
                if scored
                else f"Say {DROP} to leave such documents out"
            )
            raise ValueError(f"x: {numbered(index)} is empty. {way}.")
        if row.min() < 0:
            raise ValueError(
                f"x: {numbered(index)} has the negative token id {row.min()}. Ids start at 0."
            )
        if row.max() > np.iinfo(np.int32).max:
            raise ValueError(
                f"x: {numbered(index)} has the token id {row.max()}; ids must lie below 2^31. "
                "Recode the vocabulary."
            )
    tokens = np.full((len(rows), max(map(len, rows))), PADDING, dtype=np.int32)
    for index, row in enumerate(rows):
        tokens[index, : row.size] = row
    return tokens


def pad_scores(name: str, scores, lengths: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Scores of documents of different length in the padded ``shape``, zero where a document has
    ended.
    """
    if len(scores) != len(lengths):
        raise ValueError(
            f"{name}: expected scores of {len(lengths)} documents; got {len(scores)}. Give one "
            "array for each."
        )
    padded = np.zeros(shape)
    for index, (score, length) in enumerate(zip(scores, lengths, strict=True)):
        rows = np.asarray(score, dtype=np.float64)
        if rows.shape != (length, *shape[2:]):
            raise ValueError(
                f"{name}: expected shape {(int(length), *shape[2:])} for {numbered(index)}; got "
                f"{rows.shape}. Give one score for each token."
            )
        padded[index, :length] = rows
    return padded


def from_counts(counts, scored: bool = True) -> np.ndarray:
    """Sparse word counts (n, L) as padded tokens in ascending order of the word id."""
    matrix = checked_counts(counts)
    check_words(matrix)
    ends = zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    return pad(
        [np.repeat(matrix.indices[a:b], matrix.data[a:b].astype(np.int64)) for a, b in ends], scored
    )


def check_words(matrix: csr_array) -> None:
    """Every count is so many words, each of which costs time and memory."""
    lengths = np.asarray(matrix.astype(np.float64).sum(1)).ravel()
    total, longest = lengths.sum(), lengths.max(initial=0)
    if total <= MANY_WORDS and len(lengths) * longest <= MOST_PLACES:
        return
    factor = int(np.gcd.reduce(np.minimum(matrix.data, 2**62).astype(np.int64)))
    remedy = (
        f"All counts are multiples of {factor:,}: divide them by it."
        if factor > 1
        else "Give the counts as they are in the documents, not rescaled; or leave out the longest."
    )
    said = (
        f"{numbered(int(lengths.argmax()))} has {longest:,.0f} words, and all {len(lengths):,} "
        f"documents have {total:,.0f}"
    )
    if len(lengths) * longest > MOST_PLACES:
        raise ValueError(
            f"x: expected documents of which a table of {MOST_PLACES:,} words holds all, each with "
            f"the room of the longest; {said}. {remedy}"
        )
    warn(f"x: {said}; each costs time, and the test may take long. {remedy}")


def checked_counts(counts) -> csr_array:
    """A sparse matrix with one entry for each document and word, all of them counts."""
    matrix = csr_array(counts.tocsr(), copy=True)
    matrix.sum_duplicates()
    numbers = np.asarray(matrix.data)
    wrong = ~np.isfinite(numbers) | (numbers < 0) | (numbers != np.rint(numbers))
    if wrong.any():
        index = int(np.searchsorted(matrix.indptr, np.argmax(wrong), side="right")) - 1
        raise ValueError(
            f"x: expected non-negative integer counts; {numbered(index)} has others. Do not "
            "rescale the counts."
        )
    return matrix


class Filled(NamedTuple):
    """Documents that have words; where some of those given have none, the rows of the others, and a
    note.
    """

    x: Any
    rows: np.ndarray | None = None
    given: int = 0
    notes: tuple[str, ...] = ()

    def index_of(self, index: Any) -> Any:
        """The ids of these documents, from those of all that were given; default: the rows that
        they had there.
        """
        if self.rows is None or index is None:
            return self.rows if index is None else index
        if np.shape(index) != (self.given,):
            raise ValueError(
                f"index: expected one for each of the {self.given} documents given; got {index!r}. "
                "Number them all."
            )
        return np.asarray(index)[self.rows]


def drop_empty_documents(
    x, n_values: int, counts: bool | None = None, of_words: bool = True
) -> Filled:
    """The documents without those that have no words, or observations of other kinds without
    values; what is wrong with others is said with their rows among all.
    """
    if is_sparse(x):
        x = x.tocsr()
        empty = np.asarray(abs(x).sum(1)).ravel() == 0
        rest = x[~empty]
    elif is_ragged(x):
        empty = np.array([np.size(row) == 0 for row in x])
        rest = [row for row, nothing in zip(x, empty, strict=True) if not nothing]
    elif counts:
        x = to_numpy("x", x)
        empty = (x == 0).all(1)
        rest = x[~empty]
    else:
        return Filled(x)
    if not empty.any():
        return Filled(x)
    check_count("x without empty documents", int((~empty).sum()), 1)
    check_documents(x, empty, n_values, counts)
    without = np.flatnonzero(empty)
    more = f" and {len(without) - NAMED} more" if len(without) > NAMED else ""
    lacking = "documents have no words" if of_words else "observations have no values"
    note = (
        f"{len(without)} of {len(empty)} {lacking}, or none that the models know, and are "
        f"left out: {', '.join(map(str, without[:NAMED]))}{more} (counting from 0)."
    )
    return Filled(rest, np.flatnonzero(~empty), len(empty), (note,))


def check_documents(x, empty: np.ndarray, n_values: int, counts: bool | None) -> None:
    """As ``read_documents`` does, with a word in those that have none."""
    if is_ragged(x):
        read_documents(
            [[0] if nothing else row for row, nothing in zip(x, empty, strict=True)],
            n_values,
            counts,
        )
    else:
        where = np.flatnonzero(empty)
        words = csr_array((np.ones(len(where), int), (where, np.zeros(len(where), int))), x.shape)
        read_documents(csr_array(x) + words, n_values, counts)


def word_counts(tokens: np.ndarray, words: int) -> csr_array:
    """How often each document, padded with -1, has each word: (n, words)."""
    rows, places = np.nonzero(tokens >= 0)
    index = (rows.astype(np.int32), tokens[rows, places].astype(np.int32))
    return csr_array((np.ones(len(rows)), index), shape=(len(tokens), words))


def read_documents(
    x, n_values: int, counts: bool | None = None, any_length: bool = True
) -> np.ndarray:
    """Observations of a model with ``n_values`` values as (n, D) int32 tokens, -1 where there is
    none.

    ``counts`` says whether a dense array holds word counts (True) or token ids (False); None takes
    ids where they are plausible.
    """
    if counts and not is_sparse(x):
        x = dense_counts(x)
    if is_sparse(x):
        if counts is False:
            raise ValueError(
                "counts: a sparse matrix is read as word counts; got counts=False. Give token ids "
                "as a dense array."
            )
        if len(x.shape) != 2:
            raise ValueError(
                f"x: expected a sparse matrix with a row for each document; got shape {x.shape}. "
                "Reshape it."
            )
        if x.shape[1] != n_values:
            raise ValueError(
                f"x: expected counts of {n_values} words, one column each; got {x.shape[1]} "
                "columns. Check the vocabulary."
            )
    tokens = as_tokens(x, scored=False)
    if (
        counts is None
        and not is_sparse(x)
        and not is_ragged(x)
        and looks_like_counts(tokens, n_values)
    ):
        raise ValueError(
            f"x: an array with one column for each of the {n_values} values could hold token ids "
            "or word counts, and looks like counts. Say counts=True, or counts=False for ids."
        )
    check_range("x", tokens, n_values)
    if not any_length and (tokens < 0).any():
        raise ValueError(
            "x: expected observations of one length; these differ, and the model does not declare "
            "any_length. Cut them."
        )
    return tokens


def dense_counts(x) -> csr_array:
    """Word counts in an array or a data frame."""
    dense = check_integers("x", x)
    if (dense < 0).any():
        where = tuple(int(i) for i in np.argwhere(dense < 0)[0])
        raise ValueError(
            f"x: expected counts of at least 0; got {dense[where]} at index {where}. Check the "
            "counts."
        )
    return csr_array(dense)


def looks_like_counts(tokens: np.ndarray, n_values: int) -> bool:
    """As many columns as values, and mostly zeros, the same total in every row, or entries that are
    no ids.
    """
    if tokens.shape[1] != n_values:
        return False
    totals = tokens.sum(1)
    return bool(
        (tokens == 0).mean() > 0.5 or (totals == totals[0]).all() or (tokens >= n_values).any()
    )


def as_tokens(x, mask=None, scored: bool = True) -> np.ndarray:
    """Observations of a discrete model as (n, D) int32 tokens, -1 where there is none.

    ``x`` is an (n, D) array, a list of token-id lists, or a SciPy sparse matrix of counts; ``mask``
    marks the positions that exist in an array. A stack of adjacency matrices (n, N, N) is read as
    the edges of graphs. ``scored`` says whether scores are given with them, as to
    ``compare_scores``: there empty documents cannot be dropped, and elsewhere there is no mask.
    """
    if getattr(x, "ndim", 2) == 3:
        if mask is not None:
            raise ValueError(
                "mask: only an (n, D) array takes a mask; got one with adjacency matrices. Drop it."
            )
        return edges(x)
    if is_sparse(x) or is_ragged(x):
        if mask is not None:
            raise ValueError(
                "mask: only an (n, D) array takes a mask; got one with documents that carry their "
                "lengths. Drop it."
            )
        return from_counts(x, scored) if is_sparse(x) else pad(x, scored)
    if mask is not None and np.shape(mask) == np.shape(x) and np.asarray(mask).dtype == bool:
        # what stands at a position that does not exist is not read
        x = np.where(mask, to_numpy("x", x), 0)
    tokens = check_integers("x", x)
    if mask is None:
        negative = np.argwhere(tokens < 0)
        if len(negative):
            where = tuple(int(i) for i in negative[0])
            remedy = (
                "mark missing positions with mask"
                if scored
                else "give observations of different length as token-id lists"
            )
            raise ValueError(
                f"x: expected values of at least 0; got {tokens[where]} at index {where}. Recode "
                f"the values, or {remedy}."
            )
        return tokens
    mask = np.asarray(mask)
    if mask.shape != tokens.shape or mask.dtype != bool:
        raise ValueError(
            f"mask: expected booleans of x's shape {tokens.shape}; got {mask.dtype} of shape "
            f"{mask.shape}. True marks a position that the observation has."
        )
    empty = np.flatnonzero(~mask.any(axis=1))
    if len(empty):
        raise ValueError(
            f"mask: observation {int(empty[0])} has no position at all. Remove it, and its scores "
            "with it."
        )
    if (tokens[mask] < 0).any():
        raise ValueError(
            "x: a position that the mask keeps is negative. Recode the values, which start at 0."
        )
    return np.where(mask, tokens, PADDING).astype(np.int32)

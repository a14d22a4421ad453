"""Documents of any form as one padded array of token ids, -1 where a document has ended."""

from __future__ import annotations

import numpy as np

from ._validation import check_integers, to_numpy

PADDING = -1


def is_sparse(x) -> bool:
    return hasattr(x, "tocsr")


def is_ragged(x) -> bool:
    """A list or tuple of token-id sequences that differ in length."""
    return isinstance(x, (list, tuple)) and len({np.size(row) for row in x}) > 1


def pad(documents) -> np.ndarray:
    """Token-id lists of different length as an (n, D) int32 array padded with -1."""
    rows = [np.asarray(document) for document in documents]
    for index, row in enumerate(rows):
        if row.ndim != 1 or (row.size and not np.issubdtype(row.dtype, np.integer)):
            raise TypeError(
                f"x: expected each document as a list of integer token ids; document {index} is not. "
                "Map words to ids with the model's vocabulary first."
            )
        if row.size == 0:
            raise ValueError(f"x: document {index} is empty. Remove it, and its scores with it.")
        if row.min() < 0:
            raise ValueError(f"x: document {index} has the negative token id {row.min()}. Ids start at 0.")
    tokens = np.full((len(rows), max(row.size for row in rows)), PADDING, dtype=np.int32)
    for index, row in enumerate(rows):
        tokens[index, : row.size] = row
    return tokens


def pad_scores(scores, shape: tuple[int, ...]) -> np.ndarray:
    """Scores of documents of different length in the padded ``shape``, zero where a document has ended."""
    padded = np.zeros(shape)
    for index, score in enumerate(scores):
        rows = np.asarray(score, dtype=np.float64)
        if index >= shape[0] or rows.shape[1:] != shape[2:] or len(rows) > shape[1]:
            raise ValueError(
                f"scores: expected one for each token; document {index} has an array of shape {rows.shape}. Check its length."
            )
        padded[index, : len(rows)] = rows
    return padded


def from_counts(counts) -> np.ndarray:
    """Word counts (n, L), sparse or dense, as padded tokens in ascending order of the word id."""
    if is_sparse(counts):
        matrix = counts.tocsr()
        matrix.sum_duplicates()
        rows = [(matrix.indices[a:b], matrix.data[a:b]) for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
    else:
        dense = to_numpy("x", counts)
        rows = [(np.flatnonzero(row), row[row != 0]) for row in dense]
    documents = []
    for index, (words, numbers) in enumerate(rows):
        numbers = np.asarray(numbers)
        if not np.isfinite(numbers).all() or (numbers < 0).any() or (numbers != np.rint(numbers)).any():
            raise ValueError(f"x: expected non-negative integer counts; document {index} has others. Do not rescale the counts.")
        order = np.argsort(words)
        documents.append(np.repeat(np.asarray(words)[order], numbers.astype(np.int64)[order]))
    return pad(documents)


def as_tokens(x, mask=None) -> np.ndarray:
    """Observations of a discrete model as (n, D) int32 tokens, -1 where there is none.

    ``x`` is an (n, D) array, a list of token-id lists, or a SciPy sparse matrix of counts; ``mask``
    marks the positions that exist in an array.
    """
    if is_sparse(x) or is_ragged(x):
        if mask is not None:
            raise ValueError("mask: only an (n, D) array takes a mask; got one with documents that carry their lengths. Drop it.")
        return from_counts(x) if is_sparse(x) else pad(x)
    tokens = check_integers("x", x)
    if mask is None:
        negative = np.argwhere(tokens < 0)
        if len(negative):
            where = tuple(int(i) for i in negative[0])
            raise ValueError(
                f"x: expected values of at least 0; got {tokens[where]} at index {where}. "
                "Recode the values, or mark missing positions with mask."
            )
        return tokens
    mask = np.asarray(mask)
    if mask.shape != tokens.shape or mask.dtype != bool:
        raise ValueError(
            f"mask: expected booleans of x's shape {tokens.shape}; got {mask.dtype} of shape {mask.shape}. "
            "True marks a position that the observation has."
        )
    empty = np.flatnonzero(~mask.any(axis=1))
    if len(empty):
        raise ValueError(f"mask: observation {int(empty[0])} has no position at all. Remove it, and its scores with it.")
    if (tokens[mask] < 0).any():
        raise ValueError("x: a position that the mask keeps is negative. Recode the values, which start at 0.")
    return np.where(mask, tokens, PADDING).astype(np.int32)

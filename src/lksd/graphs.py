"""Graphs as observations: simple, undirected, all of N nodes, each as the 0s and 1s above the
diagonal of its adjacency matrix.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from ._validation import check_finite, to_numpy

__all__ = ["adjacency", "edges"]


def edges(adjacency) -> Int[np.ndarray, "n E"]:
    """Adjacency matrices (n, N, N) as the N (N - 1) / 2 entries above their diagonals, by rows.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> lksd.graphs.edges(path[None])
    array([[1, 0, 1]], dtype=int32)
    """
    array = check_finite("x", to_numpy("x", adjacency))
    if array.ndim != 3 or array.shape[1] != array.shape[2] or array.shape[1] < 2:
        raise ValueError(
            "x: expected adjacency matrices of shape (n, N, N) with at least 2 nodes; got "
            f"{array.shape}. Give graphs of one size."
        )
    problems = {
        "entries of 0 and 1 alone": ((array != 0) & (array != 1), "Threshold the weights first."),
        "zeros on the diagonal": (
            (array != 0) & np.eye(array.shape[1], dtype=bool),
            "Remove the loops.",
        ),
        "symmetric matrices": (
            array != np.swapaxes(array, 1, 2),
            "Directed graphs need a model of directed edges.",
        ),
    }
    for expected, (found, remedy) in problems.items():
        if found.any():
            where = tuple(int(i) for i in np.argwhere(found)[0])
            raise ValueError(
                f"x: expected adjacency matrices with {expected}; graph {where[0]} has "
                f"{array[where]:g} at {where[1:]} and {array[where[0], where[2], where[1]]:g} at "
                f"{where[:0:-1]}. {remedy}"
            )
    return array[:, *np.triu_indices(array.shape[1], 1)].astype(np.int32)


def adjacency(edges) -> Int[np.ndarray, "n N N"]:
    """The inverse of ``edges``: adjacency matrices (n, N, N) from rows of 0s and 1s.

    Examples
    --------
    >>> import lksd
    >>> lksd.graphs.adjacency([[1, 0, 1]])[0].tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """
    rows = np.asarray(edges)
    if rows.ndim != 2:
        raise ValueError(
            f"edges: expected shape (n, E); got {rows.shape}. Put one graph in each row."
        )
    count = nodes(rows.shape[1])
    matrices = np.zeros((len(rows), count, count), np.int32)
    matrices[:, *np.triu_indices(count, 1)] = rows
    return matrices + np.swapaxes(matrices, 1, 2)


def nodes(pairs: int) -> int:
    """N of graphs with this many pairs of nodes."""
    count = (1 + int(np.sqrt(1 + 8 * pairs))) // 2
    if count * (count - 1) // 2 != pairs or not pairs:
        raise ValueError(
            f"edges: expected N (N - 1) / 2 columns, one for each pair of N nodes; got {pairs}. "
            "Check the data."
        )
    return count

"""Rows of tiles of the Gram matrices where documents are compared by their words alone, on a processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .bags import Bags, block, meet, slopes, witness_values
from .tiling import Tiles, TileSums, Tiling, plus


class Problem(NamedTuple):
    """What all rows of tiles share."""

    bags: Bags
    table: Float[np.ndarray, " T"]
    contrasts: Float[np.ndarray, "C S"]
    weights: Float[np.ndarray, "n B"]
    tiling: Tiling
    sensitive: bool
    whole: bool


def ready(problem: Problem) -> Callable[[Tiles], TileSums]:
    """The function that adds up a row of tiles."""
    tiling, contrasts, weights = problem.tiling, problem.contrasts, problem.weights
    (count, models), n = contrasts.shape, tiling.n
    parts = [problem.bags.part(*tiling.edges(j)) for j in range(tiling.blocks)]

    def add_row(tiles: Tiles) -> TileSums:
        own = slice(*tiling.edges(tiles[0][0]))
        length = own.stop - own.start
        sums, squares = np.zeros((models, n)), np.zeros((count, count))
        products, matrix = np.zeros((count, *weights.shape)), np.zeros((count, length, n if problem.whole else 0))
        diagonal = np.zeros((models, length))
        found: dict[int, tuple] = {}
        for i, j in tiles:
            other, meeting = slice(*tiling.edges(j)), meet(problem.table, parts[i], parts[j])
            values = witness_values(meeting)
            blocks = block(meeting, values)
            if problem.sensitive:
                new = {i: slopes(meeting, values, i == j)}
                if i != j:
                    swapped = meeting.swapped()
                    new[j] = slopes(swapped, witness_values(swapped), False)
                for k, one in new.items():
                    found[k] = plus(found.get(k), one)
            if i == j:
                diagonal = np.einsum("sii->si", blocks).copy()
                blocks[:, np.arange(length), np.arange(length)] = 0.0
            h = np.tensordot(contrasts, blocks, 1)
            if problem.whole:
                matrix[:, :, other] = h
            flat = h.reshape(count, -1)
            sums[:, own] += blocks.sum(2)
            squares += (1 + (i != j)) * (flat @ flat.T)
            products[:, own] += h @ weights[other]
            if i != j:
                sums[:, other] += blocks.sum(1)
                products[:, other] += np.swapaxes(h, 1, 2) @ weights[own]
        return TileSums(sums, squares, products, diagonal, matrix, found)

    return add_row

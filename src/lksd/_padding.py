"""Arrays of any length in a few lengths, so that programs compiled for one serve many."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def room(n: int, least: int = 1) -> int:
    """The next of ``least`` times 1, 2, 3, 4, 6, 8, 12, 16, ...: at most half as much again is added."""
    blocks = -(-n // least)
    power = 1 << max(blocks - 1, 0).bit_length()
    return least * (3 * power // 4 if power >= 4 and blocks <= 3 * power // 4 else power)


def longer(array: np.ndarray, length: int) -> np.ndarray:
    """The array with its last row repeated up to a length, so that padding never lies far from the data."""
    return np.concatenate([array, np.repeat(array[-1:], length - len(array), 0)])


def in_parts(function: Any, arrays: tuple[np.ndarray, ...], least: int, most: int) -> Any:
    """``function`` of the rows of arrays that all have n, by programs for few lengths between ``least`` and ``most`` rows."""
    n = len(arrays[0])
    found = []
    for start in range(0, n, most):
        given = [array[start : start + most] for array in arrays]
        length = min(room(len(given[0]), least), most)
        made = function(*(longer(array, length) for array in given))
        found.append(jax.tree.map(np.asarray, made))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:n], *found)  # the last part alone is padded

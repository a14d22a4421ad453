"""Which observations scores belong to: a digest of each."""

from __future__ import annotations

import numpy as np
from jaxtyping import Real, UInt64

ODD, FIRST, SECOND = (np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
WORK = 2**22  # numbers that are mixed at a time


def row_digests(x: Real[np.ndarray, "n D"]) -> UInt64[np.ndarray, " n"]:
    """64 bits of each observation: its numbers, and where they stand. Positions after the end of a document do not count."""
    step = max(1, WORK // max(x.shape[1], 1))
    found = [np.zeros(0, np.uint64), *(digests_of(x[start : start + step]) for start in range(0, len(x), step))]
    return np.concatenate(found)


def digests_of(x: np.ndarray) -> np.ndarray:
    whole = np.issubdtype(x.dtype, np.integer)
    values = x.astype(np.int64) if whole else x.astype(np.float64) + 0.0  # which has one zero, where there are two
    places = mix(np.asarray(np.arange(1, x.shape[1] + 1, dtype=np.uint64) * ODD))
    mixed = mix(np.ascontiguousarray(values).view(np.uint64) ^ places)
    return mix(np.asarray(np.sum(np.where(x >= 0, mixed, np.uint64(0)) if whole else mixed, axis=1, dtype=np.uint64)))


def mix(bits: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64: every bit that comes in changes half of those that go out."""
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return bits ^ (bits >> np.uint64(31))


def check_observed(title: str, wanted: UInt64[np.ndarray, " n"], x: Real[np.ndarray, "m D"]) -> None:
    """Refuse observations that are not those whose digests are ``wanted``, in their order."""
    expected = f"x: expected the {len(wanted)} observations that the {title} belong to, in their order"
    if len(x) != len(wanted):
        raise ValueError(f"{expected}; got {len(x)}. Take the scores of these alone by .at(index), or estimate them anew.")
    found = row_digests(x)
    other = found != wanted
    if not other.any():
        return
    first = int(np.argmax(other))
    if np.array_equal(np.sort(found), np.sort(wanted)):
        place = int(np.argmax(wanted == found[first]))
        raise ValueError(
            f"{expected}; got the same in another order: row {first} of x is row {place} of the scores. "
            "Put x in the order of the scores, or the scores in that of x by .at(index)."
        )
    raise ValueError(
        f"{expected}; {int(other.sum())} of the rows of x differ, the first of them row {first}. Give the data as they were then, "
        "or estimate the scores anew."
    )

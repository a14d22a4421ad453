"""The likelihood of documents under LDA by left-to-right evaluation (Wallach, Murray, Salakhutdinov
and Mimno 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lksd.models import LDA

# numbers of the table (documents x particles x topics), so that it stays in a cache
AT_ONCE = 100_000
STABLE = 0.2  # standard errors of the mean by which twice the particles may move it
FEWEST, MOST = 10, 10_000


class Held(NamedTuple):
    """How much more likely documents are under one model than under another, on average."""

    difference: float
    error: float
    particles: int

    @property
    def z(self) -> float:
        return self.difference / self.error


def log_likelihoods(
    model: LDA, documents: Sequence[Sequence[int]], particles: int, seed: int
) -> np.ndarray:
    """log p of each document; those of about the same length go together."""
    found = np.zeros(len(documents))
    order = np.argsort([-len(document) for document in documents], kind="stable")
    together = max(1, AT_ONCE // (particles * len(model.concentration)))
    for start in range(0, len(order), together):
        rows = order[start : start + together]
        rng = np.random.default_rng([seed, start])
        found[rows] = left_to_right(model, [documents[row] for row in rows], particles, rng)
    return found


def left_to_right(
    model: LDA, documents: Sequence[Sequence[int]], particles: int, rng: np.random.Generator
) -> np.ndarray:
    """log of an unbiased estimate of p for each document, the longest first.

    A particle holds the topics of the words so far. The next word's probability, averaged over the
    particles, is a factor of the estimate; particles are drawn again in proportion to it, the word
    gets its topic, and one sweep of collapsed Gibbs over all words before follows. That sweep
    leaves the posterior of these words as it is, so that the product of the factors is unbiased.
    """
    prior, topics = (
        np.asarray(model.concentration),
        np.ascontiguousarray(np.asarray(model.topics).T),
    )
    lengths = np.array([len(document) for document in documents])
    z = np.zeros((len(documents), particles, lengths.max()), np.int32)
    counts = np.tile(prior, (len(documents), particles, 1))  # with the prior's
    total, each = np.zeros(len(documents)), np.arange(particles)
    for position in range(lengths.max()):
        n = int(np.sum(lengths > position))  # the first so many have a word here
        words = np.array([document[: position + 1] for document in documents[:n]])
        every, z, counts = np.arange(n)[:, None], z[:n], counts[:n]
        chance = (counts @ topics[words[:, position], :, None])[..., 0] / (prior.sum() + position)
        total[:n] += np.log(chance.mean(1))
        chosen = resample(chance, rng)
        z, counts = z[every, chosen], counts[every, chosen]
        for visited in (position, *range(position)):
            if visited < position:
                counts[every, each, z[:, :, visited]] -= 1
            weights = np.cumsum(counts * topics[words[:, visited], None], 2)
            level = rng.random((n, particles, 1)) * weights[..., -1:]
            z[:, :, visited] = np.sum(weights[..., :-1] <= level, 2, dtype=np.int32)
            counts[every, each, z[:, :, visited]] += 1
    return total


def resample(chance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Particles in proportion to their chances, by one uniform number a row (systematic
    resampling).
    """
    n, particles = chance.shape
    below = np.cumsum(chance, 1) / chance.sum(1, keepdims=True)
    levels = (rng.random((n, 1)) + np.arange(particles)) / particles
    return np.sum(below[:, None, :-1] <= levels[:, :, None], 2)


def held_out(
    models: dict[str, LDA], documents: Sequence[Sequence[int]], seed: int = 0
) -> dict[tuple[str, str], Held]:
    """Mean differences of log p for all pairs of models, the particles doubled until no difference
    moves by ``STABLE`` errors.
    """
    names, particles = list(models), FEWEST
    pairs = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]
    known = {name: log_likelihoods(models[name], documents, particles, seed) for name in names}
    while particles < MOST:
        particles *= 2
        more = {
            name: log_likelihoods(models[name], documents, particles, seed + particles)
            for name in names
        }
        found = {}
        for a, b in pairs:
            difference = more[b] - more[a]
            found[a, b] = Held(
                float(difference.mean()),
                float(difference.std(ddof=1) / np.sqrt(len(difference))),
                particles,
            )
        moved = [
            abs(one.difference - np.mean(known[b] - known[a])) / one.error
            for (a, b), one in found.items()
        ]
        if max(moved) < STABLE:
            return found
        known = more
    raise RuntimeError(
        f"{particles} particles are not enough: a mean difference moved by {max(moved):.2f} "
        "standard errors."
    )

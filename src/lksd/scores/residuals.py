"""What a regression on the latent leaves of x: noise that is small beside the spread of x shows there alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .witnesses import Unit, moments, times, unit_of

FEATURES = 48  # waves of the latent, beside the latent itself
SHARE = 4  # draws for each feature, at least
RIDGE = 1e-9, 1e-3  # of the latent itself, and of the waves


class Regression(NamedTuple):
    """x as a function psi of u: linear, and waves of random frequencies."""

    unit: Unit
    frequencies: Float[np.ndarray, "q k"]
    phases: Float[np.ndarray, " k"]
    inverse: Float[np.ndarray, "f f"]  # of the features' second moments
    coefficients: Float[np.ndarray, "f D"]

    def features(self, u) -> Float[np.ndarray, "m f"]:
        return features(self.unit(u), self.frequencies, self.phases)

    def apply(self, x, u, score, slope, own: bool):
        """x - psi(u), and the gradient in u where that is held fixed: slope + psi'(u)' score.

        The map from (x, u) to (x - psi(u), u) keeps volumes. For the draws that psi was fitted on (``own``) each has the psi of
        all others, by the formula for one observation left out, so that it is a fixed function there too.
        """
        values = self.features(u)
        rest = x - times(values, self.coefficients)
        weights = times(score, self.coefficients.T)
        if own:
            solved = times(values, self.inverse)
            free = 1 - np.sum(solved * values, 1, keepdims=True)
            weights -= solved * np.sum(score * rest, 1, keepdims=True) / free
            rest = rest / free
        width = u.shape[1]
        bent = -np.sin(times(self.unit(u), self.frequencies) + self.phases) * weights[:, 1 + width :]
        moved = (weights[:, 1 : 1 + width] + times(bent, self.frequencies.T)) / self.unit.scale
        return rest, slope + moved if slope.shape == u.shape else slope


def regression(x, u, rng: np.random.Generator) -> Regression | None:
    """Fitted by least squares; None where u has too many coordinates for so many draws."""
    m, width = u.shape
    room = m // SHARE - width - 1
    if room < 0 or not width:
        return None
    unit, count = unit_of(u), min(FEATURES, room)
    frequencies, phases = rng.normal(size=(width, count)) / np.sqrt(width), rng.uniform(0, 2 * np.pi, count)
    values = features(unit(u), frequencies, phases)
    ridge = m * np.repeat(RIDGE, (1 + width, count))
    inverse = np.linalg.inv(moments(values, values) + np.diag(ridge))
    return Regression(unit, frequencies, phases, inverse, inverse @ moments(values, x))


def features(u, frequencies, phases) -> Float[np.ndarray, "m f"]:
    return np.hstack([np.ones((len(u), 1)), u, np.cos(times(u, frequencies) + phases)])

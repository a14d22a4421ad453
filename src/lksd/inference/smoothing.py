"""Data and models blurred alike, so that scores see the weights of components that lie apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import float64, in_parts, program
from .._keys import as_keys, noise_keys
from .._validation import SEEDS, warn
from ..domains import Observations, is_estimate, kind_of
from ..kernels.radial import column_spreads
from ..models.base import float64_leaves
from ..models.composed import smoothed

# In standard deviations of each column. Without 0: where modes lie apart the models are nearly
# equal there, and resamples of such a degenerate statistic have tails that hide the other scales.
AUTO = (0.25, 0.5, 1.0)
ROWS = 1_024  # of a program
ISOLATED = 1e-3  # of a component's observations, the share that is shared with others


class Rung(NamedTuple):
    """One scale of noise: the data and the models with it."""

    x: np.ndarray
    models: list[Any]
    holdout: np.ndarray | None
    name: str  # as part of the operator's


def rungs(
    observations: Observations,
    models: dict[str, Any],
    holdout: np.ndarray | None,
    smooth: Any,
    seed: int,
) -> list[Rung]:
    """The hypothesis at every scale of noise."""
    data, given = observations.values, list(models.values())
    for name, model in models.items():
        if is_estimate(model):
            raise ValueError(
                f"smooth: expected models, which can be blurred; {name} is scores. Give the model "
                "itself."
            )
        if not model.normalised:
            raise ValueError(
                f"smooth: expected a normalised likelihood; that of {model} lacks a factor. Leave "
                "it out."
            )
    found, deviations = [], column_spreads(data if holdout is None else holdout)
    for scale in scales(smooth):
        if scale == 0:
            found.append(Rung(data, given, holdout, ""))
            continue
        sigma = scale * deviations if isinstance(smooth, str) else np.asarray(scale)
        unit = " standard deviations" if isinstance(smooth, str) else ""
        found.append(
            Rung(
                blur(data, sigma, seed, observations.ids),
                [smoothed(model, sigma) for model in given],
                None
                if holdout is None
                else blur(holdout, sigma, (seed + 1) % SEEDS, np.arange(len(holdout))),
                f", data and models blurred by {scale:g}{unit}",
            )
        )
    return found


def scales(smooth) -> tuple[float, ...]:
    if isinstance(smooth, str) and smooth == "auto":
        return AUTO
    try:
        found = np.atleast_1d(np.asarray(smooth, dtype=np.float64))
    except (ValueError, TypeError):
        found = np.array([np.nan])
    if found.ndim != 1 or not found.size or not np.isfinite(found).all() or (found < 0).any():
        raise ValueError(
            f'smooth: expected "auto", or standard deviations of at least 0; got {smooth!r}. Try '
            '"auto".'
        )
    return tuple(dict.fromkeys(found.tolist()))


@float64
def blur(x: np.ndarray, sigma: np.ndarray, seed: int, index) -> np.ndarray:
    """x + sigma * noise; an observation's noise depends on the seed and its id, and is the same at
    every scale.
    """
    return x + sigma * in_parts(
        lambda keys: _noise(keys, x.shape[1:]), (noise_keys(seed, index),), ROWS, ROWS
    )


@program
def _noise(key_data, shape: tuple[int, ...]):
    return jax.vmap(lambda key: jax.random.normal(key, shape, jnp.float64))(as_keys(key_data))


@float64
def warn_of_isolation(x, models: dict[str, Any]) -> None:
    """A warning where components of a mixture hardly share an observation: scores do not see their
    weights.
    """
    found = [name for name, model in models.items() if is_isolated(x, model)]
    if found:
        remedy = (
            ""
            if kind_of(models[found[0]]) == "directions"
            else " smooth='auto' lets the test see them."
        )
        warn(
            f"components of {' and '.join(found)} share no observations, so scores do not see "
            f"their weights.{remedy}"
        )


def is_isolated(x, model) -> bool:
    """Whether a component that has observations shares fewer than ``ISOLATED`` of them with the
    others.
    """
    if x.shape[1] != model.means.shape[1]:
        return False  # which is said elsewhere
    model = float64_leaves(model)
    shares = in_parts(lambda rows: _responsibilities(model, rows), (x,), ROWS, ROWS)
    own, shared = shares.sum(0), (shares * (1 - shares)).sum(0)
    used = own >= 1
    return bool(used.sum() > 1 and np.min(shared[used] / own[used]) < ISOLATED)


@program
def _responsibilities(model, x):
    return jax.vmap(model.responsibilities)(x)

"""Marginal scores in closed form, where a model has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .checks import shape_of
from .result import ScoreEstimate

BATCH = 64


def exact_score(model: Any) -> Callable | None:
    """The model's marginal score as a function of x: given, or the gradient of its log density; None without either."""
    if getattr(model, "marginal_score", None) is not None:
        return model.marginal_score
    if getattr(model, "log_marginal", None) is not None:
        return jax.grad(lambda x: model.log_marginal(x))
    return None


@eqx.filter_jit
def _scores(model, points):
    function: Any = exact_score(model)
    return jax.lax.map(function, points, batch_size=BATCH)


def exact_scores(model, score_of: Callable, data: np.ndarray, ids: np.ndarray, seed: int, notes: tuple[str, ...]) -> ScoreEstimate:
    points = jnp.asarray(data)
    if (shape := shape_of(f"the exact score of {model}", score_of, points[0])) != data.shape[1:]:
        raise ValueError(f"model: expected an exact score of shape {data.shape[1:]}; {model} returned {shape}.")
    score = np.asarray(_scores(model, points))
    finite = np.isfinite(score).all(1)
    if not finite.all():
        raise ValueError(
            f"model: the exact score of {model} is not finite at observation {ids[np.argmin(finite)]}. Check its parameters."
        )
    unknown = np.full(len(ids), np.nan)
    return ScoreEstimate(
        score=score,
        mcse=np.zeros_like(score),
        index=ids,
        seed=seed,
        method="exact marginal score",
        rhat=unknown,
        ess=unknown,
        acceptance=unknown,
        divergences=np.zeros(len(ids), dtype=np.int64),
        batch_means=np.zeros((len(ids), 0, 0, data.shape[1])),
        notes=notes,
    )

"""Marginal scores in closed form, where a model has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._jax import in_parts, once, program
from ..criteria.base import Additive, Losses
from ..models.base import (
    HasMarginal,
    HasMarginalRatios,
    HasMarginalScore,
    LatentVariableModel,
    density_ratios,
)
from ..models.behaviour import behaviour
from ..stein import SteinOperator
from .averages import Targets, average, operator_averages
from .lengths import EXACT_STEPS, length_groups, pad_groups
from .losses import exact_losses, join_losses, ratio_losses
from .plans import shape_of
from .result import ScoreEstimate

BATCH, FEW, MOST = 64, 16, 4_096  # observations of a step, of one with ratios, and of a program


def exact_score(model: Any) -> Callable | None:
    """The model's marginal score as a function of x: given, or the gradient of its log density;
    None without either.
    """
    if isinstance(model, HasMarginalScore):
        return model.marginal_score
    if isinstance(model, HasMarginal):
        return jax.grad(lambda x: model.log_marginal(x))
    return None


@program
def _scores(model, points):
    return jax.lax.map(partial(exact_at, model), points, batch_size=BATCH)


def has_exact_ratios(model: LatentVariableModel, length: int, wanted: bool | None) -> bool:
    """Whether the model offers exact ratios, cheaply unless they are demanded."""
    if isinstance(model, HasMarginalRatios):
        return bool(wanted) or model.exact_is_cheap(length)
    return isinstance(model, HasMarginal)


@program
def exact_ratios(
    model: Any, x: Int[Any, "n D"], values: Int[Any, "n D M"]
) -> Float[jax.Array, "n D M"]:
    def one(pair):
        point, replacements = pair
        if isinstance(model, HasMarginalRatios):
            return model.marginal_ratios(point, replacements)
        return density_ratios(model.log_marginal, point, replacements)

    return jax.lax.map(one, (x, values), batch_size=FEW)


def exact_at(model: Any, x, values=None):
    """The exact score at one observation, or the ratios at ``values`` (D, M)."""
    if values is not None:
        return exact_ratios(model, x[None], values[None])[0]
    function: Any = exact_score(model)
    return function(x)


def exact_shape(model: Any, points, *values) -> tuple[int, ...]:
    return shape_of(
        f"the exact score of {model}",
        partial(exact_at, model),
        points[0],
        *(part[0] for part in values),
    )


def check_exact(model: Any, points, values=None) -> None:
    """The exact score, or the ratios at ``values``, can be computed at the observation and has its
    shape.
    """
    given = model, jnp.asarray(points), *(() if values is None else (jnp.asarray(values),))
    look = partial(behaviour, model, points.shape[1])
    shape = once(exact_shape, given, partial(exact_shape, *given), look)
    if values is None and shape != points.shape[1:]:
        raise ValueError(
            f"model: expected an exact score of shape {points.shape[1:]}; {model} returned {shape}."
        )


def exact_parts(
    model: Any,
    data: np.ndarray,
    operators: tuple[SteinOperator, ...],
    wanted: Targets | None,
    ids: np.ndarray,
    demanded: bool | None,
    criteria: tuple[Additive, ...] = (),
) -> tuple[list[np.ndarray], list[Losses]] | None:
    """The exact scores for each operator and losses by each criterion, or None where the model has
    none (or none that is cheap, unless demanded). Losses alone where there are no operators.
    """
    ratios: list[Losses] = []
    if wanted is not None:
        if not has_exact_ratios(model, data.shape[1], demanded):
            return None
        check_exact(model, data[:1], wanted.values[:1])
        groups = length_groups(data, EXACT_STEPS)
        parts = [
            exact_group(
                model, data[group.rows, : group.length], operators, wanted.of(group), criteria
            )
            for group in groups
        ]
        scores = [
            pad_groups(groups, list(own)) for own in zip(*(one for one, _ in parts), strict=True)
        ]
        ratios = [
            join_losses(groups, each) for each in zip(*(own for _, own in parts), strict=True)
        ]
    else:
        if not isinstance(model, (HasMarginalScore, HasMarginal)):
            return None
        scores = []
        if operators:
            check_exact(model, data[:1])
            scores.append(in_parts(partial(_scores, model), (data,), BATCH, MOST))
    for score in scores:
        finite = np.isfinite(score.reshape(len(score), -1)).all(1)
        if not finite.all():
            raise ValueError(
                f"model: the exact score of {model} is not finite at observation "
                f"{ids[np.argmin(finite)]}. Check its parameters."
            )
    losses = exact_losses(criteria, model, data, ratios) if criteria else []
    return None if losses is None else (scores, losses)


def exact_group(
    model: Any,
    x: np.ndarray,
    operators: tuple[SteinOperator, ...],
    wanted: Targets,
    criteria: tuple[Additive, ...],
) -> tuple[list[np.ndarray], list[Losses]]:
    """The exact scores of discrete observations of like length, for each operator, and the losses
    that come from ratios.
    """
    every = in_parts(partial(exact_ratios, model), (x, wanted.values), FEW, MOST)
    ratios = average(every.reshape(len(x), 1, 1, -1))
    found = operator_averages(ratios, operators, wanted.first(len(operators)))
    losses = ratio_losses(criteria, x, ratios.batch_means, wanted) if criteria else []
    return [one.score for one in found], [one._replace(errors=0 * one.values) for one in losses]


def exact_estimate(scores: list[np.ndarray], several: bool, **rest) -> ScoreEstimate:
    """Of exact scores; an empty one stands for those that were not wanted."""
    n = len(rest["index"])
    unknown = np.full(n, np.nan)
    each = [
        (score, np.zeros_like(score), np.zeros((n, 0, 0, *score.shape[1:])))
        for score in scores or [np.zeros((n, 0))]
    ]
    score, mcse, batch_means = zip(*each, strict=True) if several else each[0]
    return ScoreEstimate(
        score=score,
        mcse=mcse,
        batch_means=batch_means,
        method="exact marginal score",
        rhat=unknown,
        ess=unknown,
        acceptance=unknown,
        divergences=np.zeros(n, dtype=np.int64),
        **rest,
    )

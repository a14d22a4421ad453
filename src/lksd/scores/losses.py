"""The losses of additive criteria, in closed form or from the same draws as the scores."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import fixed, in_parts, once, program
from ..criteria.base import Additive, Losses
from .averages import Averages, Targets
from .batches import Run
from .chains import Plan
from .lengths import Group, join_groups, pad_groups
from .watch import HIGHEST, NOTHING, Watch, exponents

MOST = 150  # control variates, beyond which squares are used instead of all products
BATCH, PROGRAM = 16, 4_096  # observations of a step, and of a program


class Asks(NamedTuple):
    """A criterion of a model of integers, which asks for ratios as an operator does."""

    criterion: Additive
    model: Any

    def targets(self, x: np.ndarray) -> np.ndarray | None:
        return self.criterion.targets(self.model, x)


def looks(criterion: Additive) -> bool:
    """Whether it looks at every draw, and not at scores or ratios alone."""
    return type(criterion).observe is not Additive.observe


def asks(criterion: Additive) -> bool:
    """Whether it takes ratios of probabilities alone."""
    return type(criterion).targets is not Additive.targets


def watch_of(
    criteria: Sequence[Additive],
    model: Any,
    x: Any,
    u: Any,
    plan: Plan,
    width: int,
    seen: Callable[[], Hashable] | None = None,
) -> Watch:
    """What criteria look at in every draw of the unconstrained latent; with as many control
    variates, of ``width`` reals, as the draws of the other chains can carry. What ``seen`` tells of
    the model serves to trace it once for all calls.
    """
    looking = tuple(one for one in criteria if looks(one))
    for one in criteria:
        if not looks(one) and not asks(one):
            raise ValueError(
                f"criterion: {type(one).__name__} has nothing to average over draws, and no closed "
                f"form for {model}. Give it observe(model, x, z, key, prepared)."
            )
    if not looking:
        return NOTHING
    room = (plan.chains - 1) * plan.batches * plan.batch_draws
    choices = [  # from the best to none: the degree, whether it is full, and how many there are
        *((best, True, len(exponents(width, 1, best))) for best in [HIGHEST.get(width)] if best),
        (2, True, width + width * (width + 1) // 2),
        (2, False, 2 * width),
        (1, True, width),
        (0, True, 0),
    ]
    degree, full, _ = next(
        one
        for one in choices
        if not one[0] or (width and 2 * one[2] + 4 <= room and one[2] <= max(MOST, 2 * width))
    )
    quadratic = width + width * (width + 1) // 2 if degree > 2 else 0
    watch = Watch(looking, degree, full, quadratic)

    def look(u):
        z, key = model.constrain(u), jax.random.key(0)
        return [one.observe(model, x, z, key, one.prepare(model, x, z)) for one in looking]

    found = once(watch_of, (looking, model, x, u), partial(jax.eval_shape, look, u), seen)
    for one, part in zip(looking, found, strict=True):
        if getattr(part, "ndim", None) != 1:
            raise ValueError(
                f"criterion: expected {type(one).__name__}.observe to return an array of one axis; "
                f"got {part}. Return value[None] for one number."
            )
    return replace(watch, sizes=tuple(part.shape[0] for part in found))


def exact_losses(
    criteria: Sequence[Additive], model: Any, data: np.ndarray, ratios: Sequence[Losses]
) -> list[Losses] | None:
    """Those of all criteria in closed form, where each has one; ``ratios`` are those that come
    from exact ratios.
    """
    found, left = [], list(ratios)
    for one in criteria:
        if asks(one):
            found.append(left.pop(0))
            continue
        if not has_closed_form(one, model, data[0]):
            return None
        values = in_parts(partial(_losses, one, model), (data,), BATCH, PROGRAM)
        found.append(Losses(values, np.zeros(len(values))))
    return found


def has_closed_form(criterion: Additive, model: Any, point: np.ndarray) -> bool:
    """Whether the criterion says the loss of the model without draws; of code that cannot change
    this is asked once.
    """
    given = criterion, model, jnp.asarray(point)
    look = partial(jax.eval_shape, partial(criterion.exact, model), given[2])
    found = once(has_closed_form, given, look, tuple) if fixed(given[:2]) else look()
    return found is not None


@program
def _losses(criterion, model, points):
    return jax.lax.map(partial(criterion.exact, model), points, batch_size=BATCH)


def ratio_losses(
    criteria: Sequence[Additive], x: np.ndarray, means: np.ndarray, wanted: Targets
) -> list[Losses]:
    """Of criteria that take ratios alone, from batch means (n, C, B, D M) of all ratios."""
    asking = [one for one in criteria if asks(one)]
    columns = wanted.columns[len(wanted.columns) - len(asking) :]
    shaped = means.reshape(*means.shape[:3], *wanted.values.shape[1:])
    nothing = np.zeros((*means.shape[:3], 0))
    return [
        one.evaluate(x, shaped[..., own], nothing) for one, own in zip(asking, columns, strict=True)
    ]


def chain_losses(
    criteria: Sequence[Additive],
    watch: Watch,
    data: np.ndarray,
    groups: list[Group],
    every: list[Run],
    averages: list[Averages],
    wanted: Targets | None,
) -> list[Losses]:
    """Those of all criteria from the draws of every group of observations."""
    looked = better_observed(every)
    parts = []
    for number, (group, own) in enumerate(zip(groups, averages, strict=True)):
        x = data[group.rows, : group.length]
        ratios: list[Losses] = []
        if wanted is not None:
            ratios = [
                one._replace(tails=every[number].tails)
                for one in ratio_losses(criteria, x, own.batch_means, wanted.of(group))
            ]
        observed = np.split(looked[number], np.cumsum(watch.sizes)[:-1], -1) if looked else []
        parts.append(
            [
                one.evaluate(x, own.batch_means, observed.pop(0)) if looks(one) else ratios.pop(0)
                for one in criteria
            ]
        )
    return [join_losses(groups, each) for each in zip(*parts, strict=True)]


def join_losses(groups: list[Group], parts: Sequence[Losses]) -> Losses:
    """Those of all observations, from those of every group."""
    values, errors = (
        join_groups(groups, [getattr(one, name) for one in parts]) for name in ("values", "errors")
    )
    more = [
        [own for one in parts if (own := getattr(one, name)) is not None]
        for name in ("positions", "tails")
    ]
    return Losses(values, errors, *(pad_groups(groups, own) if own else None for own in more))


def better_observed(every: list[Run]) -> list[np.ndarray]:
    """What criteria looked at, with the control variates that reduce its variance most, or none.

    On average over the observations: those of high degree can be the best at most of them, and far
    worse than none at the few whose tails the chains that they were fitted on have not seen.
    """
    plain, *others = (
        [getattr(run, name) for run in every]
        for name in ("observed", "observed_quadratic", "observed_controlled")
    )
    known = [plain, *(one for one in others if None not in one)]
    best = min(known, key=lambda one: variance_ratio(one, plain)) if None not in plain else []
    return [one.batch_means for one in best]


def variance_ratio(averages: list[Averages], plain: list[Averages]) -> float:
    """Of the means with control variates to those without, on average."""
    own, without = (
        np.concatenate([part.mcse.ravel() ** 2 for part in one]) for one in (averages, plain)
    )
    moving = without > 0
    return float(np.mean(own[moving] / without[moving])) if moving.any() else 1.0


def loss_fields(criteria: Sequence[Additive], losses: list[Losses]) -> dict[str, Any]:
    """As fields of a ``ScoreEstimate``."""
    return {
        "criteria": tuple(one.name for one in criteria),
        "losses": np.stack([one.values for one in losses], 1),
        "loss_errors": np.stack([one.errors for one in losses], 1),
        "loss_positions": next(
            (one.positions for one in losses if one.positions is not None), None
        ),
        "loss_tails": next((one.tails for one in losses if one.tails is not None), None),
    }

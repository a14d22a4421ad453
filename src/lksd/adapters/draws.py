"""Scores from posterior draws that any other program made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import float64
from .._text import reason_of
from .._validation import check_finite, check_reals, column_names, noted, to_numpy, warn
from ..domains.reals import check_support
from ..scores.averages import average
from ..scores.convergence import (
    LEAST_DRAWS,
    disagreement,
    have_mixed,
    unconverged_warning,
    worst_rhat_and_ess,
)
from ..scores.plans import BATCHES
from ..scores.result import ScoreEstimate, row_digests
from ._files import as_arrays, first_of, read_draws

# chains that are still where they began, at more than this share of the observations
UNUSABLE_RHAT, UNUSABLE_SHARE = 1.5, 0.05
FEW = 100  # effective draws below which, at as many observations, a warning is given
CHUNK = 16  # observations at a time


@noted
@float64
def from_draws(
    log_likelihood: Callable,
    draws: Any,
    x,
    *,
    variables: str | Sequence[str] | None = None,
    chains: bool | None = None,
    support: Any = None,
) -> ScoreEstimate:
    """Marginal scores from posterior draws of the latents of each observation, by Stan or any other
    program.

    The score at x is the mean of grad_x log p(x | z) over draws of z given x. R-hat and the
    effective sample size are computed here: draws that have not converged are refused, doubtful
    ones warned of.

    Parameters
    ----------
    log_likelihood : function of one observation and its latent
        log p(x | z) with every term that depends on x, written in ``jax.numpy``.
    draws
        An array (draws, n, ...) or (chains, draws, n, ...), a dict of them, ArviZ
        ``InferenceData``, an xarray ``DataTree`` or ``Dataset`` with dimensions chain and draw, or
        a list of n files, one for each observation (.npy, .npz, .csv as CmdStan writes them, .nc),
        or n lists of files, one for each chain. The latent that the function gets is an array where
        ``draws`` or ``variables`` name one, else a dict.
    x : (n, D) array
    variables : str or list of str, optional
        Which variables of several to take; default: all that have one value for each observation.
    chains : bool, optional
        Whether the first axis is chains; needed only where the shape fits both.
    support : str, pair of bounds, or one of these for each column, optional
        Where observations can lie: "real", "positive", "unit", "simplex" or bounds; see
        ``LatentVariableModel``.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np, lksd
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(20, 3))
    >>> z = x / 2 + rng.normal(size=(4, 500, 20, 3)) / np.sqrt(2)  # z ~ N(0, I), x | z ~ N(z, I)
    >>> scores = lksd.adapters.from_draws(lambda x, z: -jnp.sum((x - z) ** 2) / 2, z, x)
    >>> bool(np.abs(scores.score + x / 2).max() < 0.1)
    True
    """
    if not callable(log_likelihood):
        raise TypeError(
            f"log_likelihood: expected a function of x and z; got {type(log_likelihood).__name__}. "
            "Write it in jax.numpy."
        )
    data = check_reals("x", x)
    domain = check_support("log_likelihood", support, data, np.arange(len(data)))
    latents = latents_of(draws, len(data), variables, chains)
    scores, traces = conditional_scores(log_likelihood, data, latents)
    finite = np.isfinite(scores).all((1, 2, 3)) & np.isfinite(traces).all((1, 2, 3))
    if not finite.all():
        raise ValueError(
            "log_likelihood: expected finite values at every draw; those of observation "
            f"{int(np.argmin(finite))} are not ({int((~finite).sum())} observations). Check the "
            "order of the draws, and that z is on the scale that the function takes."
        )
    rhat, ess = worst_rhat_and_ess(traces)
    check_usable(rhat, traces)
    n, count, length, dim = scores.shape
    batches = min(max(-(-BATCHES // count), 1), length)
    size = length // batches
    means = scores[:, :, length - batches * size :].reshape(n, count, batches, size, dim).mean(3)
    converged = have_mixed(rhat, ess, count * length) & (disagreement(means) <= 1)
    warn_of_doubt(converged, rhat, ess)
    return ScoreEstimate(
        score=scores.mean((1, 2)),
        mcse=average(means).mcse,
        batch_means=means,
        index=np.arange(n),
        seed=0,
        method=f"given draws, {count} chain{'s' if count > 1 else ''} of {length}",
        rhat=rhat,
        ess=ess,
        acceptance=np.full(n, np.nan),
        divergences=np.zeros(n, dtype=np.int64),
        support=domain,
        converged=converged,
        observed=row_digests(data),
        columns=column_names(x),
    )


def latents_of(
    draws: Any, n: int, variables: str | Sequence[str] | None, chains: bool | None
) -> Any:
    """Draws as an array, or a dict of arrays, of shape (n, chains, draws, ...)."""
    if isinstance(draws, (list, tuple)) and draws and isinstance(first_of(draws), (str, Path)):
        if len(draws) != n:
            raise ValueError(
                f"draws: expected {n} files, one for each observation in x; got {len(draws)}. "
                "Check the list."
            )
        draws, chains = read_draws(draws), True
    if hasattr(draws, "posterior"):
        draws = draws.posterior
    if hasattr(draws, "children") and "posterior" in draws:
        draws = draws["posterior"]
    if hasattr(draws, "data_vars"):
        draws, chains = as_arrays(draws), True
    elif isinstance(draws, Mapping) is False:
        if variables is not None:
            raise ValueError(
                "variables: expected with named draws only; these are one array. Leave it out."
            )
        return with_axes("draws", draws, n, chains)
    return chosen(draws, n, variables, chains)


def chosen(
    draws: Mapping[str, Any], n: int, variables: str | Sequence[str] | None, chains: bool | None
) -> Any:
    if isinstance(variables, str):
        return chosen(draws, n, [variables], chains)[variables]
    arrays = {str(name): np.asarray(values) for name, values in draws.items()}
    if variables is None:
        names = [name for name, values in arrays.items() if n in values.shape[1:3]] or list(arrays)
    else:
        names = list(variables)
        if unknown := [name for name in names if name not in arrays]:
            raise ValueError(
                f"variables: expected some of {', '.join(arrays)}; got {', '.join(unknown)}. Check "
                "the names."
            )
    found = {name: with_axes(f"draws of {name!r}", arrays[name], n, chains) for name in names}
    lengths = {name: values.shape[1:3] for name, values in found.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"draws: expected as many chains and draws of every variable; got {lengths}. Take them "
            "from one run."
        )
    return found


def with_axes(name: str, given: Any, n: int, chains: bool | None) -> np.ndarray:
    """One variable's draws with axes (n, chains, draws, ...)."""
    array = to_numpy(name, given)
    without, with_chains = array.shape[1:2] == (n,), array.shape[2:3] == (n,)
    if chains is None and without and with_chains:
        raise ValueError(
            f"{name}: shape {array.shape} could be (draws, n, ...) or (chains, draws, n, ...), "
            f"with n = {n}. Say chains=True or False."
        )
    chains = with_chains if chains is None else chains
    if not (with_chains if chains else without):
        raise ValueError(
            f"{name}: expected shape (draws, {n}, ...) or (chains, draws, {n}, ...), as x has {n} "
            f"observations; got {array.shape}. Move the axes, or check that the draws belong to x."
        )
    array = array if chains else array[None]
    if array.shape[1] < LEAST_DRAWS:
        raise ValueError(
            f"{name}: expected at least {LEAST_DRAWS} draws a chain, to judge them; got "
            f"{array.shape[1]}. Draw more."
        )
    check_finite(name, array)
    return np.moveaxis(array.astype(np.float64) if array.dtype.kind == "f" else array, 2, 0)


def conditional_scores(
    log_likelihood: Callable, x: np.ndarray, latents
) -> tuple[np.ndarray, np.ndarray]:
    """grad_x log p(x | z) (n, chains, draws, D), and the log likelihood and the norm of the score
    for R-hat.
    """

    def one(point, z):
        value, score = jax.value_and_grad(log_likelihood)(point, z)
        return score, jnp.stack([value, jnp.linalg.norm(score)])

    def observation(inputs):
        point, z = inputs
        return jax.vmap(jax.vmap(lambda one_z: one(point, one_z)))(z)

    first = jax.tree.map(lambda leaf: leaf[0, 0, 0], latents)
    try:
        shape = jax.eval_shape(log_likelihood, x[0], first).shape
    except Exception as error:
        shapes = jax.tree.map(np.shape, first)
        raise ValueError(
            f"log_likelihood: it fails at an observation of shape {x.shape[1:]} and a latent of "
            f"shape {shapes} ({reason_of(error)}). Check it against the draws."
        ) from error
    if shape != ():
        raise ValueError(
            f"log_likelihood: expected one number; got shape {shape}. Sum over its terms."
        )
    every = jax.jit(lambda points, z: jax.lax.map(observation, (points, z), batch_size=CHUNK))(
        jnp.asarray(x), latents
    )
    return np.asarray(every[0]), np.asarray(every[1])


def check_usable(rhat: np.ndarray, traces: np.ndarray) -> None:
    """Refused where chains never move, or where too many have not met."""
    still = (np.ptp(traces, axis=2) == 0).any(1).all(-1)  # one chain is enough
    if still.any():
        raise ValueError(
            f"draws: those of observation {int(np.argmax(still))} never move. Check that they are "
            "posterior draws."
        )
    if np.mean(rhat > UNUSABLE_RHAT) > UNUSABLE_SHARE:
        worst = int(np.nanargmax(rhat))
        raise ValueError(
            f"draws: expected chains that agree; R-hat is {rhat[worst]:.2f} for observation "
            f"{worst} and above {UNUSABLE_RHAT} for {np.mean(rhat > UNUSABLE_RHAT):.0%} of the "
            "observations. Run them longer, or check the order of chains and draws."
        )


def warn_of_doubt(converged: np.ndarray, rhat: np.ndarray, ess: np.ndarray) -> None:
    """By the rule that chains of this library follow."""
    if not converged.all():
        warn(unconverged_warning(converged, rhat, ess, np.arange(len(rhat)), "Run them longer."))
    elif np.mean(ess < FEW) > UNUSABLE_SHARE:
        least = int(np.argmin(ess))
        warn(
            f"the draws of observation {least} are worth {ess[least]:.0f} independent ones; run "
            "the chains longer."
        )

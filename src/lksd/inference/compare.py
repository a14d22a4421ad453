"""One call from models and data to the answer."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from .._validation import LksdWarning, check_choice, check_reals
from ..kernels import IMQ, Kernel, PerCoordinate
from ..models import LatentVariableModel
from ..samplers import NUTS
from ..scores import ScoreEstimate, estimate_scores
from ..stein import Langevin, score_slopes
from .comparison import compare_scores
from .goodness_of_fit import goodness_of_fit_scores
from .results import ComparisonResult, Diagnostics, GoodnessOfFitResult

NOISE_ROWS = 1_000  # observations against which the share of MCMC noise is measured
NOISY = 0.2
PAPER = {"sampler": NUTS(), "warmup": 200, "draws": 500, "chains": 1, "exact": False, "control_variates": "none"}


def compare(
    x,
    p,
    q,
    *,
    kernel=None,
    operator=None,
    alternative: str = "greater",
    alpha: float = 0.05,
    variance: str = "jackknife",
    calibration: str = "auto",
    sampler=None,
    warmup: int | None = None,
    draws: int | None = None,
    chains: int | None = None,
    exact: bool | None = None,
    index=None,
    preset: str | None = None,
    seed: int = 0,
    batch_size: int | None = None,
) -> ComparisonResult:
    """Test H0: P fits at least as well as Q, for two latent variable models.

    Parameters
    ----------
    x : (n, D) array
        Independent observations that neither model was fitted on.
    p, q : models or ScoreEstimates
    kernel : kernel or list of kernels, optional
        Default: ``PerCoordinate.median(x)``, its scales from ``x``.
    preset : "paper", optional
        Everything as in the paper: NUTS with 500 draws after 200, plain means, IMQ with the median scale, normal threshold.

    The other parameters are those of ``compare_scores`` and ``estimate_scores``.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> rng = np.random.default_rng(0)
    >>> weight = rng.random((5, 2))
    >>> x = rng.normal(size=(100, 2)) @ weight.T + rng.normal(size=(100, 5))
    >>> p, q = lksd.models.PPCA(weight, 2.0), lksd.models.PPCA(weight, 1.0)
    >>> lksd.compare(x, p, q).reject
    True
    """
    if operator is not None and operator != "langevin" and not isinstance(operator, Langevin):
        raise ValueError(f"operator: expected 'langevin' for models of continuous data; got {operator!r}. Leave it out.")
    sampling = {"sampler": sampler, "warmup": warmup, "draws": draws, "chains": chains, "exact": exact}
    if preset is not None:
        check_choice("preset", preset, ["paper"])
        sampling = PAPER | {name: value for name, value in sampling.items() if value is not None}
        kernel, calibration = kernel or IMQ.median(x), "normal" if calibration == "auto" else calibration
    scores = [
        as_scores(model, x, name, index=index, seed=seed, batch_size=batch_size, **sampling) for model, name in ((p, "p"), (q, "q"))
    ]
    kernel = default_kernel(x) if kernel is None else kernel
    result = compare_scores(
        x,
        scores[0].score,
        scores[1].score,
        kernel,
        alternative=alternative,
        alpha=alpha,
        variance=variance,
        calibration=calibration,
        seed=seed,
    )
    first = kernel[0] if isinstance(kernel, (list, tuple)) else kernel
    return replace(result, diagnostics=diagnose(check_reals("x", x), scores, first, result))


def goodness_of_fit(
    x,
    model,
    *,
    kernel=None,
    alpha: float = 0.05,
    sampler=None,
    warmup=None,
    draws=None,
    chains=None,
    exact=None,
    index=None,
    seed: int = 0,
    batch_size=None,
) -> GoodnessOfFitResult:
    """Test H0: the data come from the model; parameters as in ``compare``."""
    scores = as_scores(
        model,
        x,
        "model",
        sampler=sampler,
        warmup=warmup,
        draws=draws,
        chains=chains,
        exact=exact,
        index=index,
        seed=seed,
        batch_size=batch_size,
    )
    return goodness_of_fit_scores(x, scores.score, default_kernel(x) if kernel is None else kernel, alpha=alpha, seed=seed)


def as_scores(model, x, name: str, **options) -> ScoreEstimate:
    if isinstance(model, ScoreEstimate):
        return model
    if not isinstance(model, LatentVariableModel):
        raise TypeError(f"{name}: expected a lksd.models.LatentVariableModel or a ScoreEstimate; got {model!r}. Give an instance.")
    return estimate_scores(model, x, **options)


def default_kernel(x) -> Kernel:
    """A kernel for each coordinate at its own median scale; radial where a column is mostly constant."""
    try:
        return PerCoordinate.median(x)
    except ValueError:
        return IMQ.median(x)


def diagnose(x: np.ndarray, scores: list[ScoreEstimate], kernel, result: ComparisonResult) -> Diagnostics:
    """How well the chains mixed, and which share of the test's variance is their noise."""

    def worst(values, pick) -> float | None:
        known = np.concatenate([value[np.isfinite(value)] for value in values])
        return float(pick(known)) if len(known) else None

    share = noise_share(x, scores, kernel, result)
    if share is not None and share > NOISY:
        warnings.warn(f"MCMC noise makes {share:.0%} of the test's variance; raise draws.", LksdWarning, stacklevel=3)
    return Diagnostics(
        method_p=scores[0].method,
        method_q=scores[1].method,
        rhat=worst([one.rhat for one in scores], np.max),
        ess=worst([one.ess for one in scores], np.min),
        divergences=int(sum(one.divergences.sum() for one in scores)),
        noise_share=share,
    )


def noise_share(x: np.ndarray, scores: list[ScoreEstimate], kernel, result: ComparisonResult) -> float | None:
    """mean_i 4 Var(g_i' score_i) / v with g_i the slope of h_1 in the score of i, from the batch means."""
    if not result.standard_error > 0 or all(one.batch_means.shape[1] == 0 for one in scores):
        return None
    rows = np.arange(len(x))
    if len(x) > NOISE_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(len(x), NOISE_ROWS, replace=False))
    noise = np.zeros(len(rows))
    for one in scores:
        if one.batch_means.shape[1] > 0:
            slopes = score_slopes(Langevin(), kernel, x[rows], one.score[rows])
            projected = np.einsum("nkd,nd->nk", one.batch_means[rows], slopes)
            noise += projected.var(axis=1, ddof=1) / projected.shape[1]
    return float(4 * noise.mean() / (len(x) * result.standard_error**2))

"""One call from models and data to the answer."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._progress import progress_wanted
from .._validation import LksdWarning, check_choice, check_reals
from ..kernels import IMQ, Kernel, PerCoordinate
from ..models import LatentVariableModel
from ..samplers import NUTS
from ..scores import ScoreEstimate, estimate_scores, takes_gradients
from ..stein import Langevin
from .comparison import compare_scores
from .diagnosis import chain_quality, diagnose
from .goodness_of_fit import goodness_of_fit_scores
from .results import ComparisonResult, GoodnessOfFitResult

UNEVEN = 100  # ratio of column scales that is reported
PAPER = {"warmup": 200, "draws": 500, "chains": 1, "exact": False, "control_variates": "none"}


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
    initial=None,
    index=None,
    holdout=None,
    standardise: bool = False,
    preset: str | None = None,
    seed: int = 0,
    batch_size: int | None = None,
    progress: bool | None = None,
) -> ComparisonResult:
    """Test H0: P fits at least as well as Q, for two latent variable models.

    Parameters
    ----------
    x : (n, D) array
        Independent observations that neither model was fitted on.
    p, q : models or ScoreEstimates
    kernel : kernel or list of kernels, optional
        Default: ``PerCoordinate.median(x)``, its scales from ``x``, or from ``holdout`` if that is given.
    holdout : (m, D) array, optional
        Other observations, from which to take the scales of the default kernel.
    standardise : bool
        Divide the columns of ``x`` by their standard deviations, for columns in different units.
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
        calibration = "normal" if calibration == "auto" else calibration
    options = sampling | {"initial": initial, "index": index, "seed": seed, "batch_size": batch_size}
    with progress_wanted(progress):
        scores = [as_scores(model, x, name, options, paper=preset is not None) for model, name in ((p, "p"), (q, "q"))]
        prepared = prepare(x, scores, kernel, holdout, standardise, paper=preset is not None)
        result = compare_scores(
            prepared.x,
            prepared.scores[0],
            prepared.scores[1],
            prepared.kernel,
            alternative=alternative,
            alpha=alpha,
            variance=variance,
            calibration=calibration,
            seed=seed,
        )
        diagnostics = diagnose(prepared.x, prepared.scores, first(prepared.kernel), prepared.units, scores, result)
    notes = [f"{role}: {note}" for role, one in zip("PQ", scores, strict=True) for note in one.notes]
    return replace(result, diagnostics=diagnostics, notes=(*result.notes, *notes, *prepared.notes))


def goodness_of_fit(
    x,
    model,
    *,
    kernel=None,
    alpha: float = 0.05,
    sampler=None,
    warmup: int | None = None,
    draws: int | None = None,
    chains: int | None = None,
    exact: bool | None = None,
    initial=None,
    index=None,
    holdout=None,
    standardise: bool = False,
    seed: int = 0,
    batch_size: int | None = None,
    progress: bool | None = None,
) -> GoodnessOfFitResult:
    """Test H0: the data come from the model; parameters as in ``compare``."""
    options = {"sampler": sampler, "warmup": warmup, "draws": draws, "chains": chains, "exact": exact}
    options |= {"initial": initial, "index": index, "seed": seed, "batch_size": batch_size}
    with progress_wanted(progress):
        scores = as_scores(model, x, "model", options)
        prepared = prepare(x, [scores], kernel, holdout, standardise)
        result = goodness_of_fit_scores(prepared.x, prepared.scores[0], prepared.kernel, alpha=alpha, seed=seed)
    return replace(result, diagnostics=chain_quality([scores]), notes=(*scores.notes, *prepared.notes))


def as_scores(model, x, name: str, options: dict, paper: bool = False) -> ScoreEstimate:
    if isinstance(model, ScoreEstimate):
        return model
    if not isinstance(model, LatentVariableModel):
        raise TypeError(f"{name}: expected a lksd.models.LatentVariableModel or a ScoreEstimate; got {model!r}. Give an instance.")
    if paper and options.get("sampler") is None and takes_gradients(model, x):
        options = options | {"sampler": NUTS()}
    return estimate_scores(model, x, **options)


class Prepared(NamedTuple):
    """What the test on scores takes."""

    x: np.ndarray
    scores: list[np.ndarray]
    kernel: Any
    units: np.ndarray  # what the columns were divided by
    notes: tuple[str, ...]


def prepare(x, scores: list[ScoreEstimate], kernel, holdout, standardise: bool, paper: bool = False) -> Prepared:
    """The data and scores in the units of the test, and the kernel on them."""
    data, given, notes = check_reals("x", x), [one.score for one in scores], []
    spread, units = data.std(0), np.ones(data.shape[1])
    source = data if holdout is None else check_reals("holdout", holdout)
    if source.shape[1:] != data.shape[1:]:
        raise ValueError(f"holdout: expected {data.shape[1]} columns as in x; got {source.shape[1]}. Give data of the same kind.")
    if standardise:
        if not spread.all():
            raise ValueError(f"standardise: column {int(np.argmin(spread))} of x is constant and has no scale. Drop it.")
        units = spread
        data, source, given = data / units, source / units, [score * units for score in given]
        notes.append("columns are divided by their standard deviations; the hypothesis is about data in these units.")
    elif (ratio := spread.max() / spread[spread > 0].min(initial=np.inf)) > UNEVEN:
        notes.append(f"columns differ in scale by a factor of {ratio:.0f}, and the largest dominate; consider standardise=True.")
        warnings.warn(f"x: {notes[-1]}", LksdWarning, stacklevel=3)
    if kernel is None:
        kernel = IMQ.median(source) if paper else default_kernel(source)
        if holdout is not None:
            notes.append(f"the kernel's scales come from a holdout of {len(source)} observations.")
    return Prepared(data, given, kernel, units, tuple(notes))


def default_kernel(x) -> Kernel:
    """A kernel for each coordinate at its own median scale; radial where a column is mostly constant."""
    try:
        return PerCoordinate.median(x)
    except ValueError:
        return IMQ.median(x)


def first(kernel):
    return kernel[0] if isinstance(kernel, (list, tuple)) else kernel

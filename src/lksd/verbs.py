"""The verbs: each reads its options, passes the door, and leaves the rest to its ending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from ._keywords import (
    CompareKeywords,
    CompareScoresKeywords,
    FitScoresKeywords,
    GoodnessOfFitKeywords,
    PointwiseKeywords,
    RankKeywords,
    RankPointwiseKeywords,
    RankScoresKeywords,
    verb,
    verb_with,
)
from .domains.reals import row_names
from .engines import opened
from .inference.comparison import conclude_comparison, conclude_losses
from .inference.goodness_of_fit import conclude_fit
from .inference.hypotheses import given_family
from .inference.losses import read_losses
from .inference.mmd import check_samples
from .inference.ranking import conclude_ranking, rank_losses
from .inference.verdicts import (
    beside_the_ksd,
    compare_by_criteria,
    rank_by_criteria,
    ranked_beside,
)
from .named import Named, check_names
from .options import Options
from .problem import Findings, Problem
from .results import ComparisonResult
from .results.base import as_settings
from .results.fit import GoodnessOfFitResult
from .results.ranking import RankResult


@verb
def compare(
    x: Any,
    p: Any,
    q: Any = None,
    *,
    names: Sequence[str] | None = None,
    criterion: Any = "auto",
    also: Any = "auto",
    kernel: Any = None,
    operator: Any = None,
    also_mmd: bool = False,
    preset: str | None = None,
    check: bool = True,
    **keywords: Unpack[CompareKeywords],
) -> ComparisonResult:
    """Which of two latent variable models fits the data better, and how sure is that?

    Parameters
    ----------
    x : (n, D) array
        Independent observations that neither model was fitted on. For topic models also token-id
        lists, word counts (a SciPy sparse matrix, or a dense array with ``counts=True``), or
        words: as lists, or as the columns of a data frame with ``counts=True``. With words the
        models may have different vocabularies, see ``lksd.adapters.share_vocabulary``.
    p, q : LatentVariableModel or ScoreEstimate
        The models, or their scores at ``x`` where these are already estimated. A dict of two
        models by their names in the place of both, ``{"2 factors": p, "10 factors": q}``, names
        them in the answer.
    names : two strings, optional
        What P and Q are called in the answer.
    criterion : name or object of lksd.criteria
        What decides. "auto" is the log score where both models have exact and complete densities,
        else the Fisher score (real data) or the conditional score (integers), else the kernel Stein
        discrepancy: by the types of the models alone. "ksd" is the paper's.
    also : name, object, or tuple of them, optional
        Criteria that stand beside it; their p-values are corrected among themselves, and do not
        change the verdict. "auto" is the kernel Stein discrepancy; () for none.
    kernel : kernel or list of kernels, optional
        Default for real data: ``Standardised.median(x)``, the scales from ``x``, or from
        ``holdout`` if that is given; for integers
        ``BagOfWords.median(x, n_values)`` where the models are exchangeable, else ``Hamming()``.
    operator : name, operator or tuple of them, optional
        Default for integers: "difference" and "barker" together, for documents "barker" alone,
        with the defaults of ``discrete_operators``.
    also_mmd : bool
        Also run the relative MMD on 2,000 samples (n, if that is more) from each model, together
        with the kernel Stein discrepancy, and correct for both: ``result.mmd``, or that of the
        result ``beside``.
    preset : "paper", optional
        Everything as in the paper: plain means, normal threshold; NUTS (the exchange algorithm for
        ``TruncatedPPCA``) with 500 draws after 200 and IMQ with the median scale, or 20 sweeps of
        Gibbs after 80 and the difference operator with one witness for each position, IMQ with
        scale 1 on the bag of words.
    check : bool
        Whether to test each model that is not of this library and has ``sample``: its scores, at
        observations that it simulates, must fit these (Stein's identity). One that does not fit
        itself is reported by a warning and a note.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> rng = np.random.default_rng(0)
    >>> weight = rng.random((5, 2))
    >>> x = rng.normal(size=(100, 2)) @ weight.T + rng.normal(size=(100, 5))
    >>> p, q = lksd.models.PPCA(weight, 2.0), lksd.models.PPCA(weight, 1.0)
    >>> lksd.compare(x, {"noise 2": p, "noise 1": q}).favours
    'noise 1'
    """
    options, named = Options.read(compare, keywords), Named.pair(p, q, names)
    if also_mmd:
        check_samples(named.by(named.arguments), options)
    problem = Problem.read(
        x, named, options, kernel, operator, preset, check, criterion=criterion, also=also
    )
    with opened(options.run.engine, options.run.progress) as engine:
        findings = problem.findings(engine)
        if problem.choice.primary.name == "ksd":
            result = conclude_comparison(findings, problem.options, engine, problem, also_mmd)
            if problem.choice.beside:
                result = beside_the_ksd(result, findings, problem)
        else:
            result = compare_by_criteria(findings, engine, problem, also_mmd)
    chosen = {"p": named.models[0], "q": named.models[1], "criterion": criterion, "also": also}
    chosen |= {"kernel": kernel, "operator": operator}
    chosen |= {"also_mmd": also_mmd, "preset": preset, "check": check}
    settings = as_settings(chosen | problem.options.of(compare))
    return named.name(replace(result, labels=problem.observations.labels, settings=settings))


@verb
def rank(
    x: Any,
    models: Any,
    *,
    criterion: Any = "auto",
    also: Any = "auto",
    kernel: Any = None,
    operator: Any = None,
    preset: str | None = None,
    check: bool = True,
    **keywords: Unpack[RankKeywords],
) -> RankResult:
    """Rank latent variable models by how close they are to the data, with p-values for all pairs
    at once.

    Parameters
    ----------
    x : (n, D) array
        Independent observations that no model was fitted on, in any form that ``compare`` takes.
    models : dict of LatentVariableModel or ScoreEstimate, or list of (name, model)
        At least two models of the same data, by their names.
    criterion, also, kernel, operator, preset, check
        As in ``compare``.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> rng = np.random.default_rng(0)
    >>> weight = rng.random((5, 2))
    >>> x = rng.normal(size=(100, 2)) @ weight.T + rng.normal(size=(100, 5))
    >>> models = {f"noise {s}": lksd.models.PPCA(weight, s) for s in (1.0, 1.5, 2.0)}
    >>> lksd.rank(x, models).confidence_set
    ('noise 1.0',)
    """
    options = Options.read(rank, keywords).two_sided()
    named = Named.several(models)
    problem = Problem.read(
        x, named, options, kernel, operator, preset, check, criterion=criterion, also=also
    )
    with opened(options.run.engine, options.run.progress) as engine:
        findings = problem.findings(engine)
        if problem.choice.primary.name == "ksd":
            result = conclude_ranking(findings, named.names, problem.options, engine, problem)
            result = ranked_beside(result, findings, problem)
        else:
            result = rank_by_criteria(findings, engine, problem)
    chosen = {"models": list(named.names), "criterion": criterion, "also": also}
    chosen |= {"kernel": kernel, "operator": operator}
    chosen |= {"preset": preset, "check": check}
    return replace(result, settings=as_settings(chosen | problem.options.of(rank)))


@verb
def goodness_of_fit(
    x: Any,
    model: Any,
    *,
    criterion: Any = "ksd",
    kernel: Any = None,
    operator: Any = None,
    check: bool = True,
    **keywords: Unpack[GoodnessOfFitKeywords],
) -> GoodnessOfFitResult:
    """Test H0: the data come from the model.

    Parameters
    ----------
    x : (n, D) array
        Independent observations that the model was not fitted on, in any form that ``compare``
        takes.
    model : LatentVariableModel or ScoreEstimate
    criterion : "ksd" or KSD
        A discrepancy that is zero for the true model; others only order models.
    kernel, check
        As in ``compare``; one kernel.
    operator : name or operator, optional
        One operator; "difference" for integers.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> lksd.goodness_of_fit(x, lksd.models.PPCA(np.ones((3, 1)), 2.0)).reject
    True
    """
    options, named = Options.read(goodness_of_fit, keywords), Named.single(model)
    problem = Problem.read(
        x, named, options, kernel, operator, check=check, single=True, criterion=criterion
    )
    with opened(options.run.engine, options.run.progress) as engine:
        (part,) = problem.findings(engine).values()
        result = conclude_fit(part, options, engine, problem)
    chosen = {"model": model, "criterion": criterion, "kernel": kernel}
    chosen |= {"operator": operator, "check": check}
    settings = as_settings(chosen | options.of(goodness_of_fit))
    return replace(result, labels=problem.observations.labels, settings=settings)


@verb_with(alternative="greater")
def compare_scores(
    x: Any,
    score_p: Any,
    score_q: Any,
    kernel: Any,
    *,
    operator: Any = None,
    mask: Any = None,
    names: Sequence[str] | None = None,
    **keywords: Unpack[CompareScoresKeywords],
) -> ComparisonResult:
    """Test H0: P fits at least as well as Q, from the scores of both models at the data.

    Parameters
    ----------
    x : (n, D) array, data frame, list of token-id lists, or sparse counts
        Independent observations that neither model was fitted on. Counts are read as documents
        whose tokens stand in ascending order of the word id; scores follow that order.
    score_p, score_q : arrays
        The models' scores at ``x`` in the shape that ``operator`` says; a tuple of them where
        several operators are given.
    kernel : kernel, function k(x, y), or a list of them
        Several kernels or operators are tested together, and p-values corrected for that.
    operator : operator, name, or tuple of them
        Default: Langevin, for continuous data. A name means a shared witness and the values in
        their own order; scores of ``estimate_scores`` belong to its ``.operator``, so give that.
    mask : (n, D) boolean array, optional
        False where an observation lacks a position (discrete operators).
    names : two strings, optional
        What P and Q are called in the answer.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel = lksd.kernels.IMQ.median(x)
    >>> result = lksd.compare_scores(x, -(x - 1), -x, kernel)  # P = N(1, I), Q = N(0, I)
    >>> result.reject, result.difference > 0
    (True, True)
    """
    options, named = Options.read(compare_scores, keywords), Named.pair(score_p, score_q, names)
    family = given_family(x, named.models, ("score_p", "score_q"), kernel, operator, mask)
    with opened(options.run.engine, options.run.progress) as engine:
        result = conclude_comparison({"": Findings(family)}, options, engine)
    settings = as_settings({"kernel": kernel, "operator": operator} | options.of(compare_scores))
    return named.name(replace(result, labels=row_names(x), settings=settings))


@verb
def compare_pointwise(
    loss_p: Any,
    loss_q: Any = None,
    *,
    names: Sequence[str] | None = None,
    **keywords: Unpack[PointwiseKeywords],
) -> ComparisonResult:
    """Which of two models fits better, from losses that add up over the observations?

    The losses may come from anywhere: minus the log predictive densities of ArviZ, the denoising
    losses of a diffusion model, CRPS. The smaller mean is the better.

    Parameters
    ----------
    loss_p, loss_q : (n,) arrays
        The loss of each observation under each model, at data that neither model was fitted on. A
        dict of two in the place of both names the models.
    names : two strings, optional
        What P and Q are called in the answer.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=200)
    >>> absolute = {"median 0": np.abs(x), "median 1": np.abs(x - 1)}
    >>> lksd.compare_pointwise(absolute, alternative="two-sided").favours
    'median 0'
    """
    options, named = Options.read(compare_pointwise, keywords), Named.pair(loss_p, loss_q, names)
    arguments = named.names if named.arguments != ("p", "q") else ("loss_p", "loss_q")
    losses, labels = read_losses(named.by(arguments))
    result = conclude_losses(losses, options)
    settings = as_settings(options.of(compare_pointwise))
    return named.name(replace(result, labels=labels, settings=settings))


@verb
def rank_pointwise(losses: Any, **keywords: Unpack[RankPointwiseKeywords]) -> RankResult:
    """Rank models by losses that add up over the observations, with p-values for all pairs at once.

    Parameters
    ----------
    losses : dict of (n,) arrays, or list of (name, array)
        The loss of each observation under each model; see ``compare_pointwise``.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=200)
    >>> lksd.rank_pointwise({f"median {m}": np.abs(x - m) for m in (0, 1, 2)}).confidence_set
    ('median 0',)
    """
    options = Options.read(rank_pointwise, keywords).two_sided()
    named = check_names("losses", losses)
    result = rank_losses(read_losses(named)[0], tuple(named), options)
    return replace(result, settings=as_settings(options.of(rank_pointwise)))


@verb
def rank_scores(
    x: Any,
    scores: Any,
    kernel: Any,
    *,
    operator: Any = None,
    mask: Any = None,
    **keywords: Unpack[RankScoresKeywords],
) -> RankResult:
    """Rank models by how close they are to the data, from their scores at the data.

    All ordered pairs of models are tested together: that one fits at least as well as the other.

    Parameters
    ----------
    x, kernel, operator, mask
        As in ``compare_scores``.
    scores : dict of arrays, or list of (name, array)
        Each model's scores at ``x`` by its name; tuples of arrays where several operators are
        given.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> scores = {"far": -(x - 1), "near": -(x - 0.5), "right": -x}
    >>> result = lksd.rank_scores(x, scores, lksd.kernels.IMQ.median(x))
    >>> result.names, result.confidence_set
    (('right', 'near', 'far'), ('right',))
    """
    options = Options.read(rank_scores, keywords).two_sided()
    named = check_names("scores", scores)
    family = given_family(x, tuple(named.values()), tuple(named), kernel, operator, mask)
    with opened(options.run.engine, options.run.progress) as engine:
        result = conclude_ranking({"": Findings(family)}, tuple(named), options, engine)
    settings = as_settings({"kernel": kernel, "operator": operator} | options.of(rank_scores))
    return replace(result, settings=settings)


@verb
def goodness_of_fit_scores(
    x: Any,
    scores: Any,
    kernel: Any,
    *,
    operator: Any = None,
    mask: Any = None,
    **keywords: Unpack[FitScoresKeywords],
) -> GoodnessOfFitResult:
    """Test H0: the data come from the model, from its scores at the data.

    The null distribution of n KSD^2 is that of a degenerate U-statistic; it is approximated by the
    bootstrap sum_{i != j} (w_i - 1)(w_j - 1) H_ij / (n - 1), w multinomial (Arcones and Giné 1992).

    Parameters
    ----------
    x, kernel, operator, mask
        As in ``compare_scores``; one kernel and one operator.
    scores : array
        The model's scores at ``x``.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel = lksd.kernels.IMQ.median(x)
    >>> lksd.goodness_of_fit_scores(x, -(x - 1), kernel).reject  # P = N(1, I)
    True
    """
    options = Options.read(goodness_of_fit_scores, keywords)
    family = given_family(x, (scores,), ("scores",), kernel, operator, mask)
    with opened(options.run.engine, options.run.progress) as engine:
        result = conclude_fit(Findings(family), options, engine)
    chosen = {"kernel": kernel, "operator": operator}
    settings = as_settings(chosen | options.of(goodness_of_fit_scores))
    return replace(result, settings=settings)

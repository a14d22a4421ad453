"""One call from models and data to the answer."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from .._compile import one_call
from .._progress import progress_wanted
from .._validation import check_choice, noted
from ..engines import opened
from ..results.comparison import ComparisonResult
from ..results.fit import GoodnessOfFitResult
from ..results.records import as_settings
from ..scores import ScoreEstimate
from ..scores.checkpoint import as_checkpoint
from ..scores.identity import check_identities
from .beside_mmd import check_samples, mmd_test
from .comparison import decide, verdict
from .contrasts import Options, studentise
from .coordinates import common_domain
from .deciding import deciding_words
from .diagnosis import diagnose
from .doubts import Case
from .goodness_of_fit import hypothesis_of, judge_fit
from .hypotheses import Hypothesis, hypotheses
from .influence import contribution_notes, row_doubts
from .matching import is_called, matched
from .preparation import (
    as_scores,
    check_enough,
    check_roles,
    common_operators,
    describes_integers,
    papers_options,
    placed,
    prepare,
    read_all,
)
from .smoothing import rungs, warn_of_isolation
from .unconverged import Made, chain_doubts


@noted
@one_call
def compare(
    x,
    p,
    q,
    *,
    kernel=None,
    operator=None,
    alternative: str = "greater",
    alpha: float = 0.05,
    margin: float = 0.0,
    variance: str = "auto",
    calibration: str = "auto",
    correction: str = "max-t",
    pairs: int | None = None,
    also_mmd: bool = False,
    sampler=None,
    warmup: int | None = None,
    draws: int | None = None,
    chains: int | None = None,
    exact: bool | None = None,
    unbiased: bool = False,
    smooth=None,
    initial=None,
    index=None,
    holdout=None,
    standardise: bool = False,
    counts: bool | None = None,
    drop_empty: bool = False,
    preset: str | None = None,
    check: bool = True,
    seed: int = 0,
    batch_size: int | None = None,
    engine=None,
    checkpoint=None,
    progress: bool | None = None,
) -> ComparisonResult:
    """Test H0: P fits at least as well as Q, for two latent variable models.

    The parameters that are not described here are those of ``compare_scores`` and ``estimate_scores``.

    Parameters
    ----------
    x : (n, D) array
        Independent observations that neither model was fitted on. For topic models also token-id lists, word counts
        (a SciPy sparse matrix, or a dense array with ``counts=True``), or words: as lists, or as the columns of a data frame
        with ``counts=True``. With words the models may have different vocabularies, see ``lksd.adapters.share_vocabulary``.
    p, q : LatentVariableModel or ScoreEstimate
        The models, or their scores at ``x`` where these are already estimated.
    kernel : kernel or list of kernels, optional
        Default for real data: ``PerCoordinate.median(x)``, for one column ``IMQ.median(x)``, the scales from ``x``, or from
        ``holdout`` if that is given; for integers ``BagOfWords.median(x, n_values)`` where the models are exchangeable, else
        ``Hamming()``.
    operator : name, operator or tuple of them, optional
        Default for integers: "difference" and "barker" together, with the defaults of ``discrete_operators``.
    also_mmd : bool
        Also run the relative MMD on 2,000 samples (n, if that is more) from each model, and correct for both: ``result.mmd``.
    holdout : (m, D) array, optional
        Other observations, from which to take the scales of the default kernel.
    standardise : bool
        Divide the columns of ``x`` by their standard deviations, for columns in different units.
    drop_empty : bool
        Leave out documents without words, or without any that the models know, instead of refusing them. A note names them;
        ``contributions`` has an entry for each that is left, ``kept`` the row in which it stood in ``x``, and ``documents()`` and
        the report number them by that row.
    smooth : "auto", number or sequence of numbers, optional
        Standard deviations of Gaussian noise to add to the data and, in law, to the models: scores then see the weights of
        components that lie apart. Each is a hypothesis of its own, and all are tested together (max-T). "auto" takes 1/4, 1/2
        and 1 standard deviations of each column.
    pairs : int, optional
        For n too large for all pairs of observations: take at least so many; see ``compare_scores``.
    check : bool
        Whether to test each model that is not of this library and has ``sample``: its scores, at observations that it simulates,
        must fit these (Stein's identity). One that does not fit itself is reported by a warning and a note.
    preset : "paper", optional
        Everything as in the paper: plain means, normal threshold; NUTS (the exchange algorithm for ``TruncatedPPCA``) with 500
        draws after 200 and IMQ with the median scale, or 20 sweeps of Gibbs after 80 and the difference operator with one
        witness for each position, IMQ with scale 1 on the bag of words.

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
    paper = preset is not None
    check_roles({"p": p, "q": q})
    check_enough(x, pairs)
    read, (p, q) = read_all(x, [p, q], counts, drop_empty)
    (p, q), index, untied = matched(read.x, {"P": p, "Q": q}, counts, read.index_of(index))
    x = read.x
    if also_mmd:
        check_samples({"p": p, "q": q}, margin, smooth, pairs)
    sampling = {"sampler": sampler, "warmup": warmup, "draws": draws, "chains": chains, "exact": exact}
    if paper:
        check_choice("preset", preset, ["paper"])
        sampling = papers_options(sampling, describes_integers(p))
        calibration = "normal" if calibration == "auto" else calibration
        variance = "jackknife" if variance == "auto" else variance
    wanted = Options(alternative, alpha, margin, variance, calibration, correction, seed, pairs).checked()
    options = sampling | {"initial": initial, "counts": counts, "index": index, "seed": seed, "batch_size": batch_size}
    options |= {"unbiased": unbiased}
    if unbiased and operator is None and not isinstance(p, ScoreEstimate) and describes_integers(p):
        operator = "difference"  # of which alone there are unbiased scores
    operators, kept = common_operators([p, q], operator, paper), as_checkpoint(checkpoint)
    domain = common_domain(x, {"P": p, "Q": q}, kernel, smooth)
    checked = {"P": p, "Q": q} if check and not domain.weighted else {}
    check_identities(checked, x, operators, coordinates=domain.coordinates, **options)
    with opened(engine) as place, progress_wanted(progress):
        if smooth is None:
            warn_of_isolation(x, {"P": p, "Q": q})
        family, made = [], {}
        for rung in rungs(x, {"p": p, "q": q}, holdout, smooth, wanted.seed, index):
            scores = [
                as_scores(model, rung.x, operators, options | placed(place, kept, role + rung.name), paper, role)
                for role, model in zip("PQ", rung.models, strict=True)
            ]
            scores, name = domain.scores(rung.x, scores), rung.name + domain.name
            apart = domain.data("holdout", rung.holdout, x)
            prepared = prepare(domain.data("x", rung.x), scores, kernel, apart, standardise, counts, paper)
            titles = ("scores of P", "scores of Q")
            found = hypotheses(prepared.x, prepared.scores, titles, prepared.kernel, prepared.operators, prepared.mask)
            family += [one._replace(smoothing=name) for one in found]
            made[name] = Made(scores, prepared)
        tests = studentise(family, wanted, place, sensitive=True)
        result, shown = decide(tests, wanted, mmd_test([p, q], prepared, domain, wanted) if also_mmd else None)

        def by_scores(family: list[Hypothesis]) -> ComparisonResult:
            return decide(studentise(family, wanted, place), wanted)[0]

        case = Case(cache(lambda: by_scores(family) if also_mmd else result), family, by_scores, verdict)
        doubt = chain_doubts(case, "PQ", made).also(row_doubts(case, x, scores[0].index))
        scores, prepared = made[shown.hypothesis.smoothing]
        number = next(i for i, one in enumerate(prepared.operators) if one is shown.hypothesis.operator)
        quality = diagnose(shown.hypothesis, number, prepared.units, scores, result.standard_error, shown.sums.sensitivity)
        words = deciding_words(shown, [p, q])
    notes = [
        *read.notes,
        *untied,
        *domain.notes,
        *(f"{role}: {note}" for role, one in zip("PQ", scores, strict=True) for note in one.notes),
    ]
    chosen = {"kernel": kernel, "operator": operator, "also_mmd": also_mmd, "holdout": holdout, "standardise": standardise}
    chosen |= {"preset": preset, "smooth": smooth, "drop_empty": drop_empty, "check": check}
    settings = as_settings({"p": p, "q": q} | chosen | wanted._asdict() | options)
    notes = [*result.notes, *notes, *prepared.notes, *contribution_notes(shown.rows)]
    return doubt.applied(
        replace(result, diagnostics=doubt.of(quality), words=words, kept=read.rows, notes=tuple(notes), settings=settings)
    )


@noted
@one_call
def goodness_of_fit(
    x,
    model,
    *,
    kernel=None,
    operator=None,
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
    counts: bool | None = None,
    drop_empty: bool = False,
    check: bool = True,
    seed: int = 0,
    batch_size: int | None = None,
    engine=None,
    checkpoint=None,
    progress: bool | None = None,
) -> GoodnessOfFitResult:
    """Test H0: the data come from the model; parameters as in ``compare``, with one operator ("difference" for discrete data)."""
    check_roles({"model": model})
    check_enough(x)
    read, (model,) = read_all(x, [model], counts, drop_empty)
    (model,), index, untied = matched(read.x, {"the model": model}, counts, read.index_of(index))
    x = read.x
    options = {"sampler": sampler, "warmup": warmup, "draws": draws, "chains": chains, "exact": exact}
    options |= {"initial": initial, "counts": counts, "index": index, "seed": seed, "batch_size": batch_size}
    if operator is None and describes_integers(model):
        operator = "difference"
    if isinstance(model, ScoreEstimate) and len(model.operators) > 1:
        found = [number for number, one in enumerate(model.operators) if is_called(one, operator)]
        model = model.only(found[0]) if found else model
    elif isinstance(model, ScoreEstimate):
        operator = None
    operators = common_operators([model], operator, paper=False)
    if len(operators) > 1:
        raise ValueError(f"operator: expected one for a goodness-of-fit test; got {len(operators)}. Test them one by one.")
    domain, kept = common_domain(x, {"the model": model}, kernel), as_checkpoint(checkpoint)
    checked = {"": model} if check and not domain.weighted else {}
    check_identities(checked, x, operators, coordinates=domain.coordinates, **options)
    with opened(engine) as place, progress_wanted(progress):
        (scores,) = domain.scores(x, [as_scores(model, x, operators, options | placed(place, kept), paper=False)])
        prepared = prepare(domain.data("x", x), [scores], kernel, domain.data("holdout", holdout, x), standardise, counts)
        family = hypothesis_of(prepared.x, prepared.scores[0][0], prepared.kernel, prepared.operators[0], prepared.mask)

        def test(family: list[Hypothesis]) -> GoodnessOfFitResult:
            return judge_fit(family[0], alpha, seed, place)

        result = test(family)
        case = Case(lambda: result, family, test, lambda one: one.reject)
        doubt = chain_doubts(case, ("the model",), {"": Made([scores], prepared)}).also(row_doubts(case, x, scores.index))
        quality = diagnose(family[0], 0, prepared.units, [scores], result.null_deviation / result.n)
    chosen = {"kernel": kernel, "operator": operator, "holdout": holdout, "standardise": standardise, "alpha": alpha}
    chosen |= {"drop_empty": drop_empty, "check": check}
    settings = as_settings({"model": model} | chosen | options)
    about_rows = contribution_notes(result.contributions[None])
    notes = (*read.notes, *untied, *domain.notes, *scores.notes, *prepared.notes, *about_rows)
    name = result.operator + domain.name
    return doubt.applied(replace(result, operator=name, diagnostics=doubt.of(quality), notes=notes, settings=settings))

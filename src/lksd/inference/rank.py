"""One call from several models and data to their ranking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._compile import one_call
from .._progress import progress_wanted
from .._validation import noted
from ..engines import opened
from ..results.ranking import RankResult
from ..results.records import as_settings
from ..scores import ScoreEstimate
from ..scores.checkpoint import as_checkpoint
from ..scores.identity import check_identities
from .contrasts import Options, studentise
from .coordinates import common_domain
from .diagnosis import chain_quality
from .doubts import Case
from .hypotheses import Hypothesis, hypotheses
from .influence import contribution_notes, row_doubts
from .matching import matched
from .preparation import as_scores, check_enough, check_roles, common_operators, placed, prepare, read_all
from .ranking import best_of, check_names, rank_all, ranking_settings
from .unconverged import Made, chain_doubts


@noted
@one_call
def rank(
    x,
    models,
    *,
    kernel=None,
    operator=None,
    alpha: float = 0.05,
    margin: float = 0.0,
    variance: str = "auto",
    calibration: str = "auto",
    correction: str = "max-t",
    pairs: int | None = None,
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
) -> RankResult:
    """Rank latent variable models by how close they are to the data, with p-values for all pairs at once.

    The parameters that are not described here are those of ``compare``.

    Parameters
    ----------
    x : (n, D) array
        Independent observations that no model was fitted on, in any form that ``compare`` takes.
    models : dict of LatentVariableModel or ScoreEstimate, or list of (name, model)
        At least two models of the same data, by their names.

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
    wanted = Options("two-sided", alpha, margin, variance, calibration, correction, seed, pairs).checked()
    named = check_names("models", models)
    check_roles(named)
    check_enough(x, pairs)
    read, given = read_all(x, list(named.values()), counts, drop_empty)
    x = read.x
    given, index, untied = matched(x, dict(zip(named, given, strict=True)), counts, read.index_of(index))
    named = dict(zip(named, given, strict=True))
    options = {"sampler": sampler, "warmup": warmup, "draws": draws, "chains": chains, "exact": exact}
    options |= {"initial": initial, "counts": counts, "index": index, "seed": seed, "batch_size": batch_size}
    operators, kept = common_operators(list(named.values()), operator, paper=False), as_checkpoint(checkpoint)
    domain = common_domain(x, named, kernel)
    checked = named if check and not domain.weighted else {}
    check_identities(checked, x, operators, coordinates=domain.coordinates, **options)
    with opened(engine) as place, progress_wanted(progress):
        scores = {name: scores_of(name, model, x, operators, options | placed(place, kept, name)) for name, model in named.items()}
        own, apart = domain.scores(x, list(scores.values())), domain.data("holdout", holdout, x)
        prepared = prepare(domain.data("x", x), own, kernel, apart, standardise, counts)
        titles = tuple(f"scores of {name}" for name in named)
        family = hypotheses(prepared.x, prepared.scores, titles, prepared.kernel, prepared.operators, prepared.mask)
        family = [one._replace(smoothing=domain.name) for one in family]

        def test(family: list[Hypothesis]) -> RankResult:
            return rank_all(studentise(family, wanted, place), tuple(named), wanted)[0]

        tests = studentise(family, wanted, place)
        result = rank_all(tests, tuple(named), wanted)[0]
        case = Case(lambda: result, family, test, lambda one: frozenset(one.better))
        doubt = chain_doubts(case, tuple(named), {domain.name: Made(own, prepared)})
        doubt = doubt.also(row_doubts(best_of(case), x, own[0].index))
    quality = {name: doubt.of(chain_quality([one]), name) for name, one in scores.items()}
    notes = [
        *read.notes,
        *untied,
        *domain.notes,
        *(f"{name}: {note}" for name, one in scores.items() for note in one.notes),
    ]
    chosen = {"models": list(named), "kernel": kernel, "operator": operator, "holdout": holdout, "standardise": standardise}
    chosen |= {"drop_empty": drop_empty, "check": check}
    answer = replace(
        result,
        diagnostics=tuple(quality[name] for name in result.names),
        notes=(*result.notes, *notes, *prepared.notes, *contribution_notes(np.concatenate([one.rows for one in tests]))),
        settings=ranking_settings(chosen, wanted) | as_settings(options),
    )
    return doubt.applied(answer)


def scores_of(name: str, model, x, operators, options) -> ScoreEstimate:
    """The model's scores; what is wrong is said with its name."""
    try:
        return as_scores(model, x, operators, options, paper=False, name=name)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error

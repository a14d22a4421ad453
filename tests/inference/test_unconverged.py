"""Observations whose chains have not converged: the answer without them, and when there is none."""

from dataclasses import replace

import ksd
import numpy as np
import pytest

import lksd
from lksd.models import PPCA

N = 80


def problem():
    """Data of Q, and the scores of P and Q: exact, with two chains that agree."""
    rng = np.random.default_rng(0)
    weight = rng.random((4, 1))
    x = rng.normal(size=(N, 1)) @ weight.T + rng.normal(size=(N, 4))
    found = [lksd.estimate_scores(PPCA(weight, noise), x) for noise in (1.4, 1.0)]
    noise = 1e-3 * rng.normal(size=(N, 2, 10, 4))
    return x, *(
        replace(one, batch_means=one.score[:, None, None] + noise, converged=np.ones(N, bool))
        for one in found
    )


def failing(scores, row, factor):
    """Scores of which one is wrong, and said not to have converged."""
    changed = {"score": scores.score.copy(), "batch_means": scores.batch_means.copy()}
    for part in changed.values():
        part[row] *= factor
    return replace(scores, converged=np.arange(N) != row, **changed)


def test_one_observation_is_named_with_the_answer_without_it():
    x, p, q = problem()
    result = ksd.compare(x, failing(p, 7, 1.01), q)
    (found,) = result.diagnostics.unconverged
    given = [one.at(np.delete(one.index, 7)) for one in (p, q)]
    without = ksd.compare(np.delete(x, 7, 0), *given, kernel=lksd.kernels.Standardised.median(x))
    assert (found.model, found.observations, found.n) == ("P", (7,), N)
    assert (found.statistic, found.pvalue) == pytest.approx(
        (without.statistic, without.pvalue), rel=1e-9
    )
    assert found.reject == without.reject == result.reject
    assert result.withheld is None
    assert (
        "chains of P have not converged at observation 7 (1 of 80); without it the statistic is "
        in str(result)
    )


@pytest.mark.filterwarnings("ignore:MCMC noise:lksd.LksdWarning")
def test_a_verdict_that_one_observation_turns_is_withheld():
    x, p, q = problem()
    assert ksd.compare(x, p, q).reject
    result = ksd.compare(x, p, failing(q, 7, 40.0))
    assert not result.reject
    assert result.withheld.startswith(
        "the answer depends on observation 7, where the chains of Q have not converged: p = 0."
    )
    assert result.sentence == f"Withheld: {result.withheld}"
    assert result.diagnostics.withheld == result.withheld


@pytest.mark.filterwarnings("ignore:MCMC noise:lksd.LksdWarning")
def test_a_verdict_that_single_chains_would_turn_is_withheld():
    x, p, q = problem()
    means = q.batch_means.copy()
    means[7, 0] += 30.0
    means[7, 1] -= 30.0  # the average of both chains is as before
    doubtful = replace(q, batch_means=means, converged=np.arange(N) != 7)
    ends = (
        "observation 7, where the chains of {} have not converged: single chains there have scores "
        "that would turn it."
    )
    kernel = lksd.kernels.PerCoordinate.median(x)
    found = ksd.compare(x, p, doubtful, kernel=kernel)
    assert found.withheld == "the answer depends on " + ends.format("Q")
    ranked = ksd.rank(x, {"wide": p, "right": doubtful}, kernel=kernel)
    assert ranked.withheld == "the answer depends on " + ends.format("right")
    assert not ranked.reject
    assert (ranked.better, set(ranked.confidence_set)) == ((), {"wide", "right"})
    several = ksd.rank(
        x,
        {"wide": p, "right": doubtful},
        kernel=[lksd.kernels.IMQ.median(x), lksd.kernels.Gaussian.median(x)],
    )
    assert [one.withheld for one in several.tests] == [several.withheld] * 2
    fit = lksd.goodness_of_fit(x, doubtful)
    assert [(one.model, one.observations) for one in fit.diagnostics.unconverged] == [
        ("the model", (7,))
    ]


@pytest.mark.parametrize(("count", "withheld"), [(1, False), (2, True)])
def test_many_observations_are_doubt_everywhere(count, withheld):
    x, p, q = problem()
    result = ksd.compare(x, replace(p, converged=np.arange(N) >= count), q)
    assert (result.withheld is not None) == withheld
    assert result.reject != withheld


def test_a_verdict_needs_observations_that_are_left():
    x, p, q = problem()
    result = ksd.compare(x, replace(p, converged=np.arange(N) < 2), q)
    assert result.diagnostics.unconverged[0].pvalue is None
    assert "too few are left" in str(result)
    assert not result.reject

"""The paper's experiments on continuous models, with chains against exact scores (Section 4.1)."""

import warnings

import ksd
import numpy as np
import pytest
from scipy import stats
from test_compare import problem

import lksd
from lksd.kernels import IMQ
from lksd.samplers import MALA, NUTS, BoxStart, NormalStart


def ppca(n, delta_p, delta_q, trial):
    return problem(n, delta_p, delta_q, dim=100, latent=10, seed=trial)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 300])
@pytest.mark.parametrize(
    ("name", "deltas"), [("Problem 1", (1.0, 1.0 + 1e-5)), ("Problem 2", (2.0, 1.0))]
)
def test_chains_decide_as_exact_scores_do(name, deltas, n):
    exact = sampled = 0
    for trial in range(200):
        x, p, q = ppca(n, *deltas, trial)
        exact += ksd.compare(x, p, q, kernel=IMQ.median(x), calibration="normal", seed=trial).reject
        sampled += ksd.compare(x, p, q, preset="paper", seed=trial).reject
    print(
        f"\n{name} | n = {n} | exact scores {exact / 200:.3f} | the paper's chains "
        f"{sampled / 200:.3f}"
    )
    assert stats.fisher_exact([[exact, 200 - exact], [sampled, 200 - sampled]]).pvalue > 0.01
    assert (
        name != "Problem 1"
        or stats.binomtest(sampled, 200, 0.05, alternative="greater").pvalue > 0.001
    )


def slow_mala(n, warmup, draws, trials=20):
    """Type-I errors with a slow sampler for P, begun far from the posterior, and a good
    one for Q.
    """
    rejected = 0
    for trial in range(trials):
        x, p, q = ppca(n, 1.0, 1.0 + 1e-5, trial)
        chain = {
            "exact": False,
            "control_variates": "none",
            "chains": 1,
            "warmup": warmup,
            "draws": draws,
            "seed": trial,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lksd.LksdWarning)  # of poor mixing, which is the point
            slow = MALA(step_size=1e-4 * 10 ** (-1 / 3))
            score_p = lksd.estimate_scores(
                p, x, sampler=slow, initial=NormalStart(np.ones(10)), **chain
            )
            score_q = lksd.estimate_scores(
                q, x, sampler=NUTS(), initial=BoxStart(-2.0, 2.0), **chain
            )
            rejected += ksd.compare(
                x, score_p, score_q, kernel=IMQ.median(x), calibration="normal"
            ).reject
    return rejected / trials


@pytest.mark.slow
def test_a_slow_sampler_breaks_the_level_and_many_draws_mend_it():
    rates = {(t, m): slow_mala(100, t, m) for t, m in ((50, 1), (200, 1), (200, 1000))}
    print(f"\nslow MALA, n = 100, rejections by (t, m): {rates}")
    assert rates[50, 1] > 0.9
    assert rates[200, 1] > 0.9
    assert rates[200, 1000] < 0.3

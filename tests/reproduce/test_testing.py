"""The tests of a trial, from Gram matrices that they share, against the calls that users make."""

import numpy as np
import pytest

import lksd
from lksd.kernels import IMQ, BagOfWords, PerCoordinate
from lksd.models import LDA
from lksd.reproduce import testing
from lksd.reproduce.experiment import Task
from lksd.reproduce.testing import Scored, run_tests

SIZES, SEED, ALPHA = (30, 50), 7, 0.05
WORDS = 20


def real_trial(methods, **options):
    """Normal models with means 0.4, 0.3 and 0.0 on normal data."""
    x = np.random.default_rng(0).normal(size=(50, 3))
    means = {"a": (0.4, 0.0), "b": (0.3, 0.0), "same": (0.0, 0.0)}
    scored = {
        (mean, role): Scored((mean - x + 0.01 * role,))
        for mean in (0.4, 0.3, 0.0)
        for role in (1, 2)
    }
    task = Task(0, SEED, SIZES, methods, tuple(means), (ALPHA,))
    found = run_tests(
        task,
        x,
        pairs=means.__getitem__,
        score=lambda kind, mean, role, pair: (scored[mean, role], 0.0),
        kernel=lambda name: IMQ(2.0),
        **options,
    )
    return (
        x,
        {case: (scored[p, 1].parts[0], scored[q, 2].parts[0]) for case, (p, q) in means.items()},
        found,
    )


@pytest.mark.parametrize("limit", [1_000, 1])
def test_tests_of_a_trial_are_those_of_compare_scores(limit, monkeypatch):
    monkeypatch.setattr(testing, "BOOTSTRAP_LIMIT", limit)
    x, scores, found = real_trial(("lksd-imq", "calibrated-imq", "ours"))
    for one in found:
        kernel = PerCoordinate.median(x[: one.n]) if one.method == "ours" else IMQ(2.0)
        calibration = "normal" if one.method == "lksd-imq" else "auto"
        p, q = scores[one.case]
        expected = lksd.compare_scores(
            x[: one.n], p[: one.n], q[: one.n], kernel, calibration=calibration, seed=SEED
        )
        assert one.statistic == pytest.approx(expected.statistic, rel=1e-9)
        assert one.pvalue == pytest.approx(expected.pvalue, abs=1e-6)
        assert one.reject == expected.reject


def test_variances_are_those_of_compare_scores():
    kinds = ("jackknife", "ustat", "vstat", "regularised")
    x, scores, found = real_trial(
        tuple(f"{kind}-imq" for kind in kinds), judged=lambda kind: (kind, "normal")
    )
    for one in found:
        p, q = scores[one.case]
        expected = lksd.compare_scores(
            x[: one.n],
            p[: one.n],
            q[: one.n],
            IMQ(2.0),
            variance=one.method.partition("-")[0],
            calibration="normal",
            seed=SEED,
        )
        assert one.statistic == pytest.approx(expected.statistic, rel=1e-9, nan_ok=True)
        assert one.pvalue == pytest.approx(expected.pvalue, abs=1e-9)


def test_two_operators_and_the_mmd_are_those_of_compare():
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(WORDS, 0.3), 2)
    p, q = LDA(np.full(2, 1.0), topics), LDA(np.full(2, 0.1), topics)
    x = rng.integers(0, WORDS, (50, 6)).astype(np.int32)
    operators, kernel = lksd.discrete_operators(p, q), BagOfWords(IMQ(), WORDS)
    scored = {
        role: Scored(lksd.estimate_scores(model, x, operator=operators).part("score"), operators)
        for role, model in ((1, p), (2, q))
    }
    samples = {role: rng.integers(0, WORDS, (60, 6)).astype(np.int32) for role in (1, 2)}
    task = Task(0, SEED, SIZES, ("ours", "mmd-imq", "together-imq"), ("",), (ALPHA,))
    found = run_tests(
        task,
        x,
        pairs=lambda case: ("p", "q"),
        score=lambda kind, label, role, pair: (scored[role], 0.0),
        sample=lambda label, role, count: samples[role][:count],
        count=lambda kind, n: n + 10,
        kernel=lambda name: kernel,
        default="imq",
    )
    for one in found:
        n = one.n
        mmd = lksd.relative_mmd(x[:n], samples[1][: n + 10], samples[2][: n + 10], kernel)
        of_p, of_q = (tuple(part[:n] for part in scored[role].parts) for role in (1, 2))
        both = lksd.compare_scores(x[:n], of_p, of_q, kernel, operator=operators, seed=SEED)
        if one.method == "mmd-imq":
            assert one.statistic == pytest.approx(mmd.statistic, rel=1e-9)
        elif one.method == "ours":
            assert one.statistic == pytest.approx(
                max(test.statistic for test in both.tests), rel=1e-9
            )
            assert one.pvalue == pytest.approx(both.pvalue, abs=1e-6)
        else:
            smaller = min((*both.tests, mmd), key=lambda result: result.pvalue)
            assert one.statistic == pytest.approx(smaller.statistic, rel=1e-9)
            assert one.pvalue > smaller.pvalue  # corrected for both


def test_means_of_losses_are_those_of_compare_pointwise():
    rng = np.random.default_rng(2)
    losses = {name: rng.gamma(2.0, size=50) + shift for name, shift in (("p", 0.3), ("q", 0.0))}
    task = Task(0, SEED, SIZES, ("fisher",), ("",), (ALPHA,))
    found = run_tests(
        task,
        rng.normal(size=(50, 3)),
        pairs=lambda case: ("p", "q"),
        score=lambda kind, name, role, pair: (Scored((losses[name],)), 0.0),
        kernel=lambda name: IMQ(2.0),
    )
    for one in found:
        expected = lksd.compare_pointwise(
            losses["p"][: one.n], losses["q"][: one.n], alternative="greater", seed=SEED
        )
        assert one.statistic == pytest.approx(expected.statistic, rel=1e-12)
        assert one.pvalue == expected.pvalue

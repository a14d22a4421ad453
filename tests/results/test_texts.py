"""The words of results and reports."""

import numpy as np
import pytest

import lksd
from lksd.kernels import IMQ
from lksd.report.page import ranking_page, report_page
from lksd.statistics.nulls import Bootstrap, Conservative, Edgeworth, Steadied

X = np.random.default_rng(0).normal(size=(60, 2))
THREE = "the largest of three (bootstrap with 1,999 resamples, Edgeworth, normal)"


def test_null_distributions_in_words():
    expansion = Edgeworth(-0.0629, -0.0627)
    corrected = Conservative((Bootstrap.of(np.arange(1_999.0)), expansion))
    assert (str(Edgeworth()), str(expansion), str(corrected)) == ("normal", "Edgeworth", THREE)
    assert str(Conservative((expansion,))) == "the larger of two (Edgeworth, normal)"
    assert str(Steadied(corrected, 1.0, 0.0)) == f"the larger of two (normal; for U itself {THREE})"
    for null in (expansion, corrected, Steadied(corrected, 1.0, 0.0)):
        assert null.details == "Edgeworth with a = -0.0629, c = -0.0627"
    assert Edgeworth().details == ""


def test_a_report_says_what_its_parts_are():
    rejected = lksd.compare_scores(X, -(X - 1), -X, IMQ(2.0))
    page = report_page(rejected)
    assert f"p-value  {THREE}" in str(rejected)
    assert f"The p-value comes from: {THREE}, Edgeworth with a = " in page
    for heading in (
        "Observations that favour Q most",
        "Power of a replication",
        "Reproduce this result",
    ):
        assert f">{heading}</h" in page
    assert "<summary>Full output</summary>" in rejected._repr_html_()
    undecided = lksd.compare_scores(X, -(X - 0.3), -X, IMQ(2.0), alpha=0.001)
    assert "<h2>Sample size needed</h2>" in report_page(undecided)


@pytest.mark.parametrize("margin", [0.0, 0.01])
def test_a_ranking_says_what_is_tested(margin):
    ranked = lksd.rank_scores(X, {"a": -X, "b": -(X - 1), "c": -X / 2}, IMQ(2.0), margin=margin)
    by = (
        "the squared discrepancy of A exceeds that of B by at most 0.01"
        if margin
        else "A fits at least as well as B"
    )
    assert ranked.question == f"H0, for every ordered pair (A, B): {by}"
    assert "p-values: the largest of three (joint bootstrap, Edgeworth, normal)" in str(ranked)
    page = " ".join(ranking_page(ranked, "").split())
    assert (
        "Adjusted p tests whether any other model fits better, corrected for all pairs (max-T)."
        in page
    )
    assert "Models with adjusted p above 0.05 form the confidence set. Selective p" in page


def test_the_part_of_the_chains_in_words():
    quality = lksd.Diagnostics("HMC", "HMC", 1.01, 200.0, 0, noise_share=0.0123, start_shift=0.04)
    assert str(quality).splitlines()[-1] == (
        "MCMC error accounts for 1.23% of the variance of the difference; the chains' starting "
        "points shift T by at most 0.04."
    )
    alone = lksd.Diagnostics("HMC", None, 1.01, 200.0, 0, noise_share=0.0123)
    assert (
        str(alone).splitlines()[-1]
        == "MCMC error accounts for 1.23% of the variance of the statistic."
    )

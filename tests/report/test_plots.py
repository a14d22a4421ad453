"""Plots of results: what they show, and when they refuse."""

from dataclasses import replace

import ksd
import matplotlib
import numpy as np
import pytest

import lksd
from lksd.report.plots import escape_formulas, null_density, plot_null

matplotlib.use("Agg")
import matplotlib.pyplot as plt

X = np.random.default_rng(0).normal(size=(80, 3))


def result(shift=0.6, **options):
    return lksd.compare_scores(X, -(X - shift), -X, lksd.kernels.IMQ(3.0), **options)


def sampled():
    weight = np.ones((3, 1))
    models = (lksd.models.PPCA(weight, 2.0), lksd.models.PPCA(weight, 1.0))
    return ksd.compare(X, *models, exact=False, draws=40, warmup=20)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_the_forest_shows_both_models_and_their_difference():
    one = result()
    ax = one.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["P - Q", "Q", "P"]
    points = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(points, [one.difference, one.ksd_q, one.ksd_p])
    _, given = plt.subplots()
    assert one.plot(given) is given


def test_plots_call_the_models_and_observations_by_their_names():
    one = replace(
        result().with_names(("two: $2$", "ten")), labels=tuple(f"patient {i}" for i in range(80))
    )
    ax = one.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        r"two: \$2\$ - ten",
        "ten",
        r"two: \$2\$",
    ]
    assert ax.get_title(loc="left").startswith(r"ten fits better than two: \$2\$ (p")
    ax = one.plot_contributions()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "for ten",
        r"for two: \$2\$",
    ]
    assert ax.get_ylabel() == r"adds to two: \$2\$ - ten"
    row = int(np.argmax(one.contributions))
    assert ax.texts[0].get_text().startswith(f"{row} patient {row}\n")
    assert not result().plot_contributions().texts
    undecided = result(shift=0.01).with_names(("a:b", "c"))
    assert undecided.plot().get_title(loc="left").startswith("Undecided (p")
    assert "a:b" in undecided.plot().get_title(loc="left")


def test_contributions_are_all_shown_and_few_points_drawn():
    ax = result().plot_contributions()
    assert ax.get_xlim()[1] > 80
    many = np.random.default_rng(0).normal(size=(3_000, 1))
    large = lksd.compare_scores(
        many, -(many - 1), -many, lksd.kernels.IMQ(1.0), calibration="normal"
    )
    assert (
        max(len(c.get_paths()[0].vertices) for c in large.plot_contributions().collections) < 1_000
    )


def test_diagnostics_show_every_observation():
    one = sampled()
    left, right = one.plot_diagnostics()
    for ax, values in ((left, one.diagnostics.rhats), (right, one.diagnostics.esses)):
        assert values.shape == (80,)
        assert sum(patch.get_height() for patch in ax.patches) == 80
    assert one.diagnostics.rhat == one.diagnostics.rhats.max()
    with pytest.raises(ValueError, match="no chains were run"):
        result().plot_diagnostics()


def test_the_power_curve_passes_through_the_required_size():
    one = result(shift=0.3)
    wanted = one.required_n(0.8)
    assert one.power(wanted) >= 0.8 > one.power(wanted - 1)
    ax = one.plot_power()
    assert any(np.allclose(line.get_xdata(), [wanted]) for line in ax.lines)
    with pytest.raises(ValueError, match="no sample size rejects"):
        lksd.compare_scores(X, -X, -(X - 1), lksd.kernels.IMQ(3.0)).plot_power()
    with pytest.raises(ValueError, match="n: expected an integer of at least 4; got 2"):
        one.power(2)


@pytest.mark.parametrize(
    "options",
    [{}, {"calibration": "edgeworth"}, {"calibration": "normal", "alternative": "two-sided"}],
)
def test_the_null_is_a_density(options):
    one = result(**options)
    edges, heights = null_density(one.null)
    assert np.sum(heights * np.diff(edges)) == pytest.approx(1, abs=0.01)
    assert plot_null(one).get_xlabel().startswith("difference")
    with pytest.raises(ValueError, match="no standard error"):
        plot_null(result(shift=0.0))


def test_words_are_no_formulas():
    assert escape_formulas("$x$\x1b[31m") == r"\$x\$\x1b[31m"

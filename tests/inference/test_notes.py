"""Whatever a run warns of is in its result, its file and its report."""

import warnings

import ksd
import numpy as np
import pytest

import lksd
from lksd.kernels import IMQ
from lksd.samplers import MALA


def warned(call):
    """The result, and the messages of all warnings without the name of the model they are about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    messages = [str(one.message) for one in caught if issubclass(one.category, lksd.LksdWarning)]
    assert messages
    return result, messages


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    weight = rng.random((10, 3))
    x = rng.normal(size=(60, 3)) @ weight.T + rng.normal(size=(60, 10))
    perturbed = weight.copy()
    perturbed[0, 0] += 3
    return x, lksd.models.PPCA(perturbed, 1.0), lksd.models.PPCA(weight, 1.0)


def slow_scores(x, model):
    """Of chains that have hardly left their starting points, too short for R-hat to tell."""
    sampler = MALA(step_size=1e-5)
    return lksd.estimate_scores(
        model, x, exact=False, sampler=sampler, warmup=10, draws=20, control_variates="none"
    )


@pytest.mark.parametrize("verb", ["compare", "rank", "goodness_of_fit"])
def test_every_warning_is_a_note(verb, problem, tmp_path):
    x, p, q = problem
    units = np.where(np.arange(10) == 9, 1e3, 1.0)  # columns of very different scale
    p, q = (lksd.models.PPCA(units[:, None] * one.weight, 1.0) for one in (p, q))
    x = x * units
    calls = {
        "compare": lambda: ksd.compare(x, p, q, kernel=IMQ(20.0)),
        "rank": lambda: ksd.rank(x, {"a": p, "b": q}, kernel=IMQ(20.0)),
        "goodness_of_fit": lambda: lksd.goodness_of_fit(x, p, kernel=IMQ(20.0)),
    }
    result, messages = warned(calls[verb])
    assert any("columns differ in scale" in message for message in messages)
    for message in messages:
        assert message in result.notes
    result.to_json(path := tmp_path / "result.json")
    assert lksd.load_result(path).notes == result.notes
    if hasattr(result, "to_html"):
        result.to_html(page := tmp_path / "report.html")
        assert "columns differ in scale" in page.read_text()


def test_goodness_of_fit_warns_of_starting_points_as_compare_does(problem):
    x, p, q = problem
    for result, messages in (
        warned(lambda: ksd.compare(x, slow_scores(x, p), q, kernel=IMQ(20.0))),
        warned(lambda: lksd.goodness_of_fit(x, slow_scores(x, p), kernel=IMQ(20.0))),
    ):
        assert any("began at different points still differ" in message for message in messages)
        assert result.diagnostics.start_shift > 0.5
    good = lksd.goodness_of_fit(x, p, exact=False, kernel=IMQ(20.0))
    assert good.diagnostics.start_shift < 0.01
    assert good.diagnostics.noise_share < 0.01


def test_the_report_does_not_praise_chains_that_were_warned_of(problem, tmp_path):
    x, p, q = problem
    result, _ = warned(lambda: ksd.compare(x, slow_scores(x, p), q, kernel=IMQ(20.0)))
    result.to_html(page := tmp_path / "report.html")
    assert "mixed well enough" not in page.read_text()
    assert "Chains that started at different points differ" in page.read_text()
    ksd.compare(x, p, q, exact=False).to_html(page)
    assert "mixed well enough" in page.read_text()


def test_scores_keep_the_warnings_of_their_chains(problem, tmp_path):
    x, p, q = problem
    options = {
        "exact": False,
        "sampler": MALA(step_size=1e-4),
        "warmup": 10,
        "draws": 200,
        "control_variates": "none",
    }
    scores, messages = warned(lambda: lksd.estimate_scores(p, x, **options))
    assert scores.notes[-1:] == tuple(messages)
    scores.save(path := tmp_path / "scores.npz")
    result, _ = warned(lambda: ksd.compare(x, lksd.load_scores(path), q))
    assert f"P: {messages[0]}" in result.notes

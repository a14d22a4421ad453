"""Text, files and intervals of the results."""

import json
import math
import re
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

import lksd
from lksd._text import pvalue_text
from lksd.kernels import IMQ, Gaussian
from lksd.results.base import decode, encode
from lksd.results.details import short_labels


def comparison(n=60, **options):
    x = np.random.default_rng(0).normal(size=(n, 2))
    return lksd.compare_scores(
        x, -(x - options.pop("shift", 0.5)), -x, options.pop("kernel", IMQ(2.0)), **options
    )


RESULTS = {
    "bootstrap": comparison,
    "normal": lambda: comparison(calibration="normal"),
    "edgeworth": lambda: comparison(calibration="edgeworth"),
    "family": lambda: comparison(kernel=[IMQ(1.0), Gaussian(2.0)]),
    "identical": lambda: comparison(shift=0.0),
    "mmd": lambda: lksd.relative_mmd(*np.random.default_rng(1).normal(size=(3, 30, 2)), IMQ()),
    "fit": lambda: lksd.goodness_of_fit_scores(np.arange(8.0), -np.arange(8.0), IMQ()),
}


@pytest.mark.parametrize("name", RESULTS)
def test_json_round_trip(name, tmp_path):
    result = RESULTS[name]()
    path = tmp_path / "result.json"
    text = result.to_json(path)
    loaded = lksd.load_result(path)
    assert type(loaded) is type(result)
    assert loaded.to_json() == text
    assert str(loaded) == str(result)
    record = json.loads(text)
    assert record["result"]["seed"] == 0
    assert set(record["versions"]) >= {"lksd", "jax", "numpy", "python"}


class Marked(NamedTuple):
    """Fields with the names of what the encoding makes of other things."""

    rows: Any
    array: Any
    float: Any
    integers: Any


def test_fields_of_any_name_are_read_back():
    inner = Marked(rows=(1, "a"), array=math.inf, float=2.5, integers=None)
    found = decode(
        json.loads(json.dumps(encode(Marked(inner, -math.inf, (inner,), (2, 3))))),
        {"Marked": Marked},
    )
    assert found == Marked(inner, -math.inf, (inner,), (2, 3))
    arrays = Marked(np.eye(2), np.array([1.0, np.inf]), np.arange(3), np.arange(4).reshape(2, 2))
    for given, read in zip(
        arrays, decode(json.loads(json.dumps(encode(arrays))), {"Marked": Marked}), strict=True
    ):
        np.testing.assert_array_equal(read, given, strict=True)


def test_a_field_that_would_hide_the_type_of_its_record_is_refused():
    with pytest.raises(ValueError, match="a field called 'record'"):
        encode(NamedTuple("Hidden", [("record", int)])(1))


@pytest.mark.parametrize("value", [{}, {"float": "1", "rows": []}, {"other": 1}])
def test_an_entry_of_no_known_form_is_refused(value):
    with pytest.raises(ValueError, match="expected a record, an array or a number"):
        decode(value, {})


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"schema": 1, "result": {"record": "Nothing"}}',
        '{"schema": 99, "result": {}}',
    ],
)
def test_a_file_that_is_no_result(content, tmp_path):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"other\.json"):
        lksd.load_result(path)


def test_sentences():
    assert comparison(shift=1.0).sentence.startswith("Q fits better than P (p = 0.00")
    assert "indistinguishable" in comparison(shift=0.0).sentence
    x = np.random.default_rng(0).normal(size=(60, 2))
    reverse = lksd.compare_scores(x, -x, -(x - 1.0), IMQ(2.0))
    assert reverse.sentence.startswith("P fits better than Q (p = 0.00")
    assert (reverse.reject, reverse.favours) == (False, "P")
    assert f"(reverse: p = {reverse.pvalue_reverse:.4f})" in str(reverse)
    both = lksd.compare_scores(x, -x, -(x - 1.0), IMQ(2.0), alternative="two-sided")
    assert both.sentence.startswith("P fits better than Q")
    undecided = lksd.compare_scores(x, -(x - 0.25), -x, IMQ(2.0), alpha=0.001)
    assert undecided.sentence.startswith("Undecided (p = 0.32 for Q, 0.68 for P): a new sample of ")
    assert f"{undecided.required_n(0.8):,.0f}" in undecided.sentence
    behind = lksd.compare_scores(x, -x, -(x - 0.25), IMQ(2.0), alpha=0.001)
    assert behind.required_n(0.8) == math.inf  # for Q, which is the worse
    assert f"a new sample of {undecided.required_n(0.8):,.0f} would settle it" in behind.sentence
    margin = lksd.compare_scores(x, -x, -(x - 0.25), IMQ(2.0), margin=0.01)
    assert margin.sentence.startswith("Undecided whether one fits better by more than 0.01 (p = 0.")
    assert 0.5 < margin.pvalue < 1


DIFFERENCE, BARKER = "Difference(9 values, shared witness)", "Barker(9 values, shared witness)"


def family_of(*found, alpha=0.05, alternative="greater", **options):
    """A result of several hypotheses with these operators, statistics, p-values and reverse
    p-values.
    """
    one = comparison(shift=0.3, alternative=alternative, alpha=alpha)
    tests = tuple(
        replace(
            one,
            operator=operator,
            statistic=t,
            estimate=t * one.standard_error,
            pvalue=p,
            pvalue_reverse=r,
        )
        for operator, t, p, r in found
    )
    p, r = (min(getattr(test, name) for test in tests) for name in ("pvalue", "pvalue_reverse"))
    return replace(tests[0], tests=tests, pvalue=p, pvalue_reverse=r, **options)


def test_tests_that_disagree():
    disputed = family_of((DIFFERENCE, 3.1, 0.003, 1.0), (BARKER, -2.2, 0.98, 0.0331))
    assert disputed.disputed
    assert disputed.favours is None
    said = (
        "The tests disagree: Difference says that Q fits better (p = 0.0030), Barker that P does "
        "(p = 0.0331)."
    )
    assert disputed.sentence == said
    both = family_of(
        (DIFFERENCE, 3.1, 0.006, 0.006), (BARKER, -2.2, 0.0499, 0.0499), alternative="two-sided"
    )
    assert both.sentence == said.replace("0.0030", "0.0060").replace("0.0331", "0.0499")
    agreed = family_of((DIFFERENCE, 3.1, 0.003, 1.0), (BARKER, -1.0, 0.9, 0.2))
    assert agreed.sentence == "Q fits better than P (p = 0.0030)."
    backwards = family_of((DIFFERENCE, 1.1, 0.2, 0.9), (BARKER, -3.0, 0.99, 0.002))
    assert (backwards.favours, backwards.sentence) == ("P", "P fits better than Q (p = 0.0020).")


@pytest.mark.parametrize(
    ("pairs", "labels"),
    [
        ([("Barker(9 values)", "IMQ(1)"), ("Gibbs(9 values)", "IMQ(1)")], ["Barker", "Gibbs"]),
        (
            [("Langevin", "PerCoordinate(IMQ(1), IMQ(2))"), ("Langevin", "IMQ(2)")],
            ["PerCoordinate", "IMQ"],
        ),
        ([("Langevin", "IMQ(1)"), ("Langevin", "IMQ(2)")], ["IMQ(1)", "IMQ(2)"]),
        ([("A(1)", "IMQ(1)"), ("B(1)", "IMQ(2)")], ["A with IMQ(1)", "B with IMQ(2)"]),
        ([("A(1), blurred by 0.5", "IMQ(1)"), ("A(1)", "IMQ(1)")], ["A, blurred by 0.5", "A"]),
    ],
)
def test_short_names_tell_tests_apart(pairs, labels):
    assert short_labels(pairs) == labels


@pytest.mark.parametrize("name", ["bootstrap", "family", "fit"])
def test_a_verdict_can_be_withheld(name, tmp_path):
    result = replace(RESULTS[name](), withheld="3 chains have not converged.", reject=False)
    assert result.sentence == "Withheld: 3 chains have not converged."
    assert result.sentence in str(result)
    assert result.sentence in result._repr_html_()
    assert getattr(result, "favours", None) is None
    assert f"{pvalue_text(result.pvalue)} (withheld)" in str(result)
    if name == "family":
        assert {row[3] for row in result.hypotheses.rows} == {"withheld"}
    assert json.loads(result.to_json(tmp_path / "result.json"))["sentence"] == result.sentence
    assert lksd.load_result(tmp_path / "result.json").withheld == result.withheld


@pytest.mark.parametrize("name", RESULTS)
def test_files_without_the_newer_fields_can_be_read(name, tmp_path):
    result, path = RESULTS[name](), tmp_path / "result.json"
    text = result.to_json()
    text = re.sub(r',\s*"checksum": "\w+"', "", text.replace('"schema": 4', '"schema": 3'))
    for field in ("pvalue_reverse", "withheld"):
        text = re.sub(rf'"{field}": [^,}}]+,\s*', "", text)
    path.write_text(text)
    loaded = lksd.load_result(path)
    assert (loaded.pvalue, loaded.reject, loaded.withheld) == (result.pvalue, result.reject, None)
    assert loaded.sentence == result.sentence or not result.reject
    assert getattr(loaded, "pvalue_reverse", None) is None
    str(loaded)


def test_intervals_agree_with_two_sided_decisions():
    x = np.random.default_rng(3).normal(size=(40, 2))
    for shift in np.linspace(-0.6, 0.6, 9):
        result = lksd.compare_scores(
            x, -(x - shift), -(x + 0.3), IMQ(2.0), alternative="two-sided", alpha=0.1
        )
        low, high = result.confidence_interval(0.9)
        assert result.reject == (not low <= 0 <= high)


def test_required_n_interval_and_power():
    result = comparison(shift=0.3, n=100)
    low, high = result.required_n_interval(0.8)
    assert low <= result.required_n(0.8) <= high
    assert result.required_n(0.5) < result.required_n(0.95)


@pytest.mark.slow
def test_required_n_reaches_its_power():
    """From a large pilot, the predicted size gives about the predicted power."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1_000, 2))
    kernel = IMQ(2.0)
    n = int(lksd.compare_scores(x, -(x - 0.45), -(x + 0.2), kernel).required_n(0.8))
    rejected = 0
    for index in range(500):
        y = rng.normal(size=(n, 2))
        rejected += lksd.compare_scores(y, -(y - 0.45), -(y + 0.2), kernel, seed=index).reject
    print(f"\nrequired n = {n}: power {rejected / 500:.3f} for a target of 0.8")
    assert stats.binomtest(rejected, 500, 0.70, alternative="less").pvalue > 0.001
    assert stats.binomtest(rejected, 500, 0.90, alternative="greater").pvalue > 0.001


def test_results_are_frozen():
    with pytest.raises(AttributeError):
        comparison().pvalue = 0.0


def test_plot(tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    axes = comparison().plot()
    axes.figure.savefig(tmp_path / "plot.png")
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["P - Q", "Q", "P"]
    assert math.isfinite(axes.get_xlim()[0])
    mpl.pyplot.close(axes.figure)

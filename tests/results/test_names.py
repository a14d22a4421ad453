"""Models and observations are called by their names, where they have some."""

import re
from dataclasses import replace

import numpy as np
import pytest

import lksd
from lksd.kernels import IMQ, Gaussian

X = np.random.default_rng(0).normal(size=(40, 2))
NAMES = ("2 factors", "10 factors")


def compared(shift=1.0, kernel=None, **options):
    kernel = IMQ(2.0) if kernel is None else kernel
    return lksd.compare_scores(X, -(X - shift), -X, kernel, calibration="normal", **options)


def said(result):
    return f"{result}\n{result.sentence}\n{result.question}\n{result._repr_html_()}"


RESULTS = {
    "one": compared,
    "undecided": lambda: compared(0.02),
    "other way": lambda: lksd.compare_scores(X, -X, -(X - 1.0), IMQ(2.0), calibration="normal"),
    "margin": lambda: compared(margin=0.01),
    "two-sided": lambda: compared(alternative="two-sided"),
    "several": lambda: compared(kernel=[IMQ(1.0), Gaussian(2.0)]),
    "mmd": lambda: lksd.relative_mmd(X, X + 0.5, X[::-1] * 1.1, IMQ()),
}


@pytest.mark.parametrize("name", RESULTS)
def test_named_models_are_called_so_and_nothing_else_differs(name):
    plain = RESULTS[name]()
    named = replace(plain, names=NAMES) if name == "mmd" else plain.with_names(NAMES)
    text = said(named)
    assert not re.search(r"\b[PQ]\b", text)
    back = text.replace("10 factors", "Q").replace("2 factors", "P")
    # but for the width of the columns
    assert re.sub(r"[ -]+", " ", back) == re.sub(r"[ -]+", " ", said(plain))
    assert named.favours == (plain.favours and dict(zip("PQ", NAMES, strict=True))[plain.favours])


def test_what_was_tested_together_has_the_names_too():
    named = RESULTS["several"]().with_names(NAMES)
    assert named.favours == "10 factors"
    assert [row[3] for row in named.hypotheses.rows] == ["10 factors"] * 2
    assert all(one.names == NAMES for one in named.tests)
    with pytest.raises(ValueError, match="names: expected two, of P and of Q; got 'PQ'"):
        named.with_names("PQ")


def test_tests_that_disagree_name_the_models():
    one = compared(0.1)
    one, other = (
        replace(one, statistic=t, pvalue=p, pvalue_reverse=1 - p, operator=o)
        for t, p, o in ((3, 0.01, "A"), (-3, 0.99, "B"))
    )
    disputed = replace(one, tests=(one, other)).with_names(NAMES)
    assert disputed.sentence == (
        "The tests disagree: A says that 10 factors fits better (p = 0.0100), B that 2 factors "
        "does (p = 0.0100)."
    )


def test_the_scores_are_said_to_be_whose():
    quality = lksd.Diagnostics("exact", "exact", None, None, 0)
    assert "scores P exact\nscores Q exact" in str(replace(compared(), diagnostics=quality))
    assert "scores of 2 factors: exact\nscores of 10 factors: exact" in str(
        replace(compared(), diagnostics=quality).with_names(NAMES)
    )


def test_names_and_labels_are_kept_in_files(tmp_path):
    labels = tuple(f"patient {i}" for i in range(len(X)))
    named = replace(RESULTS["several"]().with_names(NAMES), labels=labels)
    fitted = replace(lksd.goodness_of_fit_scores(X, -X, IMQ()), labels=labels)
    for result in (named, fitted):
        text = result.to_json(tmp_path / "result.json")
        loaded = lksd.load_result(tmp_path / "result.json")
        assert loaded.labels == labels
        assert loaded.to_json() == text
    assert lksd.load_result(tmp_path / "result.json").labels == labels
    assert named.documents(3) == RESULTS["several"]().documents(3)  # by row, whatever the labels
    replace(named, labels=labels[1:]).to_json(tmp_path / "damaged.json")
    with pytest.raises(ValueError, match="the labels are not those of n observations"):
        lksd.load_result(tmp_path / "damaged.json")


def test_a_report_takes_other_names(tmp_path):
    path = tmp_path / "report.html"
    compared().with_names(NAMES).to_html(path)
    assert "Does 10 factors fit the data better than 2 factors?" in path.read_text()
    compared().with_names(NAMES).to_html(path, names=("small", "large"))
    assert "Does large fit the data better than small?" in path.read_text()
    assert "factors" not in path.read_text()

"""Rankings by several operators: what they say together, and where they contradict each other."""

from dataclasses import replace

import jax
import ksd
import numpy as np
import pytest

import lksd
from lksd.inference.ranking import together
from lksd.kernels import IMQ


def test_tests_that_disagree_name_no_model_the_best():
    """Blurred topics against no topics at all: Barker sees that there are topics, Difference that
    they are blurred.
    """
    rng = np.random.default_rng(0)
    right = rng.dirichlet(np.full(30, 0.2), 4)
    keys = jax.random.split(jax.random.key(0), 150)
    documents = np.asarray(
        jax.vmap(lambda key: lksd.models.LDA(np.full(4, 0.1), right).sample(key, 10)[1])(keys)
    ).tolist()
    one = lksd.models.LDA(np.ones(1), 0.9 * right.mean(0, keepdims=True) + 0.1 / 30)
    four = lksd.models.LDA(np.full(4, 0.1), 0.5 * right + 0.5 / 30)
    both = lksd.discrete_operators(one, four)
    found = ksd.rank(documents, {"one": one, "four": four}, operator=both, draws=60, warmup=40)
    difference, barker = found.tests
    assert (difference.confidence_set, barker.confidence_set) == (("one",), ("four",))
    p, r = difference.pvalue, barker.pvalue
    assert found.sentence in (
        f"The tests disagree: Difference says that one fits better than four (p = {p:.4f}), Barker "
        f"that four does (p = {r:.4f}).",
        f"The tests disagree: Barker says that four fits better than one (p = {r:.4f}), Difference "
        f"that one does (p = {p:.4f}).",
    )
    assert set(found.confidence_set) == {"one", "four"}
    assert set(found.disputed[0]) == {"one", "four"}
    assert not found.reject
    assert [row[-2] for row in found.summary.rows] == ["disputed", "disputed"]
    compared = ksd.compare(documents, one, four, operator=both, draws=60, warmup=40)
    assert compared.disputed
    assert not compared.reject


def family_of(*relations, first=("a", "a"), names=("a", "b", "c", "d")):
    """Rankings by two operators, from what each shows, {(better, worse): p}; ``first`` are the
    models that come out best.
    """
    x = np.random.default_rng(0).normal(size=(20, 1))
    scores = {name: -x + number for number, name in enumerate(names)}
    base = lksd.rank_scores(x, scores, IMQ(1.0), calibration="normal")
    results = []
    for shown, best, operator in zip(relations, first, ("A(1)", "B(1)"), strict=True):
        order = sorted(names, key=lambda name: (name != best, name))
        pvalues = np.ones((len(names), len(names)))
        for (better, worse), p in shown.items():
            pvalues[order.index(worse), order.index(better)] = p
        smallest = float(pvalues.min())
        results.append(
            replace(
                base,
                names=tuple(order),
                pvalues=pvalues,
                pvalue=smallest,
                reject=smallest <= 0.05,
                operator=operator,
                statistic=0.0,
            )
        )
    return results


def verdict(*relations, **options):
    results = family_of(*relations, **options)
    found = [together(shown, results) for shown in results]
    assert len({frozenset(one.confidence_set) for one in found}) == 1  # whichever table is shown
    return found[0]


ALL_WORSE = {("a", "b"): 0.01, ("a", "c"): 0.01, ("a", "d"): 0.01}
FAMILIES = {
    "one says it, the other nothing": ((ALL_WORSE, {}), "a", True, "a fits best (level 0.05)."),
    "what is worse by the other operator is not the best": (
        (ALL_WORSE, {("b", "a"): 0.02}),
        "ab",
        True,
        "The tests disagree: A says that a fits better than b (p = 0.0100), B that b does (p = "
        "0.0200).",
    ),
    "a dispute among the worse ones": (
        (ALL_WORSE | {("b", "c"): 0.03}, {("c", "b"): 0.03}),
        "a",
        True,
        "a fits best (level 0.05).",
    ),
    "nothing but a dispute": (
        ({("c", "d"): 0.04}, {("d", "c"): 0.001}),
        "abcd",
        False,
        "The tests disagree: B says that d fits better than c (p = 0.0010), A that c does (p = "
        "0.0400).",
    ),
    "a circle": (
        ({("a", "b"): 0.01, ("b", "c"): 0.01}, {("c", "a"): 0.01, ("a", "d"): 0.01}),
        "abc",
        True,
        "The tests disagree on the order of a, b and c.",
    ),
    "nothing": (
        ({}, {}),
        "abcd",
        False,
        "a comes out best, but no model is shown to be worse than another (p = 1.00).",
    ),
    "one that is the first of none": (
        ({("b", "c"): 0.01}, {("c", "a"): 0.01, ("b", "d"): 0.01}),
        "b",
        True,
        "Only b is not shown to be worse than another (level 0.05).",
    ),
    "some are left": (
        ({("a", "b"): 0.01}, {}),
        "acd",
        True,
        "a comes out best; 3 of 4 models are not shown to be worse than another: a, c and d.",
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_sentence_follows_the_table_of_all_tests(name):
    relations, kept, reject, sentence = FAMILIES[name]
    found = verdict(*relations)
    assert found.confidence_set == tuple(kept)
    assert found.reject == reject
    assert found.sentence == sentence
    assert found.pvalue == min([1.0, *(p for shown in relations for p in shown.values())])
    assert set(found.better) == {pair for shown in relations for pair in shown}


def test_without_a_model_that_all_tests_put_first_none_comes_out_best():
    found = verdict({}, {}, first=("a", "b"))
    assert found.sentence == "No model is shown to be worse than another (p = 1.00)."


def test_a_ranking_can_be_withheld(tmp_path):
    result = replace(family_of({}, {})[0], withheld="chains of b have not converged.", reject=False)
    assert result.sentence == "Withheld: chains of b have not converged."
    result.to_html(tmp_path / "report.html")
    assert result.sentence in (tmp_path / "report.html").read_text()


def test_a_ranking_that_is_withheld_shows_nothing_as_decided(tmp_path):
    """Neither in its properties nor in what is printed, in a notebook or in the report."""
    decided = verdict({("a", "b"): 0.01, ("c", "d"): 0.01}, {("b", "a"): 0.02})
    assert (len(decided.better), decided.disputed, decided.confidence_set) == (
        3,
        (("a", "b"),),
        ("a", "b", "c"),
    )
    assert "withheld" not in str(decided)
    result = replace(decided, withheld="chains of b have not converged.", reject=False)
    assert (result.better, result.disputed, result.confidence_set) == ((), (), ("a", "b", "c", "d"))
    assert not result.shown_worse.any()
    assert {row[-1] for row in result.summary.rows} == {"withheld"}
    assert {row[1] for row in result.hypotheses.rows} == {"withheld"}
    result.to_html(tmp_path / "report.html")
    for text in (str(result), result._repr_html_(), (tmp_path / "report.html").read_text()):
        for kind in ("adjusted p", "selective p", "smallest p"):
            assert f"{kind} (withheld)" in text
    assert "Adjusted p-values (withheld)" in (tmp_path / "report.html").read_text()

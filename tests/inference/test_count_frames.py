"""Counts in data frames, whose columns are words: they are matched to the words of the models."""

import ksd
import numpy as np
import pandas
import polars
import pytest
from scipy import sparse

import lksd
from lksd.models import LDA

RNG = np.random.default_rng(0)
WORDS = ["kernel", "stein", "topic", "model", "latent", "score", "test", "chain"]
P, Q = (LDA(np.full(2, a), RNG.dirichlet(np.full(8, 0.5), 2), WORDS) for a in (0.3, 3.0))
COUNTS = RNG.poisson(0.8, (30, 8)) + np.eye(8, dtype=int)[np.arange(30) % 8]
TURNED = [5, 2, 7, 0, 1, 6, 3, 4]
FRAMES = {
    "pandas": lambda counts, words: pandas.DataFrame(counts, columns=words),
    "polars": lambda counts, words: polars.DataFrame(np.asarray(counts), schema=list(words)),
    "sparse pandas": lambda counts, words: pandas.DataFrame.sparse.from_spmatrix(
        sparse.csr_matrix(counts), columns=words
    ),
}


def turned(words=WORDS):
    return COUNTS[:, TURNED], [words[i] for i in TURNED]


@pytest.mark.parametrize("name", FRAMES)
def test_columns_are_matched_to_the_vocabulary(name):
    """In whatever order they are; the answer is that of an array in the order of the vocabulary."""
    frame = FRAMES[name](*turned())
    wanted = ksd.compare(COUNTS, P, Q, counts=True)
    found = ksd.compare(frame, P, Q, counts=True)
    assert (found.statistic, found.pvalue, found.notes) == (
        wanted.statistic,
        wanted.pvalue,
        wanted.notes,
    )
    assert found.words.top() == wanted.words.top()
    fits = [lksd.goodness_of_fit(x, P, counts=True) for x in (frame, COUNTS)]
    assert fits[0].ksd == fits[1].ksd
    ranks = [ksd.rank(x, {"p": P, "q": Q}, counts=True) for x in (frame, COUNTS)]
    np.testing.assert_array_equal(ranks[0].ksd, ranks[1].ksd)
    scores = [lksd.estimate_scores(P, x, counts=True).part("score") for x in (frame, COUNTS)]
    for one, other in zip(*scores, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", FRAMES)
def test_words_that_the_models_do_not_know_are_left_out_and_said(name):
    """As those of documents that are lists of words."""
    counts, words = turned()
    more = np.column_stack([counts, RNG.poisson(1.0, 30), np.zeros(30, int), RNG.poisson(1.0, 30)])
    frame = FRAMES[name](more, [*words, "zebra", "never", "yak"])
    found = ksd.compare(frame, P, Q, counts=True)
    texts = [np.repeat([*words, "zebra", "never", "yak"], row).tolist() for row in more]
    ordered = [
        sorted(text, key=lambda word: WORDS.index(word) if word in WORDS else 9) for text in texts
    ]
    wanted = ksd.compare(ordered, P, Q)
    said = (
        f"{more[:, 8:].sum()} of {more.sum()} words (2 different) are not in the models' "
        "vocabulary and are left out."
    )
    assert said in found.notes
    assert said in wanted.notes
    assert (found.statistic, found.pvalue) == (wanted.statistic, wanted.pvalue)


def test_words_without_a_column_do_not_occur():
    counts = COUNTS.copy()
    counts[:, [2, 5]] = 0
    counts[:, 0] += 1
    rest = [i for i in TURNED if i not in (2, 5)]
    found = ksd.compare(
        pandas.DataFrame(counts[:, rest], columns=[WORDS[i] for i in rest]), P, Q, counts=True
    )
    assert found.statistic == ksd.compare(counts, P, Q, counts=True).statistic
    assert (
        "2 of the 8 words in the models' vocabulary have no column, and are taken not to occur."
        in found.notes
    )


def test_models_of_different_words_get_one_vocabulary():
    other = LDA(Q.concentration, Q.topics, [*WORDS[::-1][:-1], "bayes"])
    frame = pandas.DataFrame(
        np.column_stack([COUNTS[:, TURNED], COUNTS[:, 0]]), columns=[*turned()[1], "bayes"]
    )
    texts = [np.repeat(frame.columns, row).tolist() for row in frame.to_numpy()]
    found, wanted = (
        ksd.compare(frame, P, other, counts=True),
        ksd.compare(texts, P, other),
    )
    assert found.notes == wanted.notes
    assert found.statistic == pytest.approx(wanted.statistic, rel=1e-9)


def test_documents_without_known_words():
    counts, words = turned()
    counts = np.column_stack([counts, np.zeros(30, int)])
    counts[[3, 11]] = 0
    counts[3, -1] = 4
    frame = pandas.DataFrame(counts, columns=[*words, "zebra"])
    with pytest.raises(
        ValueError, match=r"document 3 \(counting from 0\): none of its 4 words .*drop_empty=True"
    ):
        ksd.compare(frame, P, Q, counts=True)
    found = ksd.compare(frame, P, Q, counts=True, drop_empty=True)
    kept = np.delete(np.arange(30), [3, 11])
    np.testing.assert_array_equal(found.kept, kept)
    assert found.statistic == ksd.compare(COUNTS[kept], P, Q, counts=True, index=kept).statistic
    np.testing.assert_array_equal(
        lksd.estimate_scores(P, frame, counts=True, drop_empty=True).index, kept
    )


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (
            [f"column_{i}" for i in range(8)],
            {"counts": True},
            "vocabulary of 8 words, such as 'kernel'; none of 8 is",
        ),
        ([*WORDS[:7], "kernel"], {"counts": True}, "'kernel' occurs twice"),
        (WORDS, {}, r"have the names of words, such as 'kernel'.*Say counts=True"),
        ([*WORDS[:5], "a", "b", "c"], {}, "have the names of words"),
    ],
)
def test_columns_that_cannot_be_matched_are_refused(columns, options, said):
    frame = pandas.DataFrame(COUNTS, columns=columns)
    for call in (
        lksd.estimate_scores,
        lambda p, x, **options: ksd.compare(x, p, Q, **options),
    ):
        with pytest.raises(ValueError, match=said):
            call(P, frame, **options)


@pytest.mark.parametrize("value", [-1.0, 0.5, np.nan])
@pytest.mark.parametrize("column", ["kernel", "zebra"])
@pytest.mark.parametrize("name", FRAMES)
def test_what_is_no_count_is_refused(name, column, value):
    counts = COUNTS.astype(float)
    counts[4, 0] = value
    frame = FRAMES[name](counts, [column, *WORDS[1:]])
    with pytest.raises(ValueError, match="x: expected"):
        ksd.compare(frame, P, Q, counts=True)


def test_scores_that_are_already_estimated_have_no_words():
    scores = [
        lksd.estimate_scores(one, COUNTS, counts=True, operator=lksd.discrete_operators(P, Q))
        for one in (P, Q)
    ]
    assert ksd.compare(pandas.DataFrame(COUNTS), *scores, counts=True).n == 30
    with pytest.raises(ValueError, match="beside scores that are already estimated"):
        ksd.compare(FRAMES["pandas"](*turned()), *scores, counts=True)


def test_names_that_are_no_words_and_models_without_words_are_read_by_position():
    wanted = ksd.compare(COUNTS, P, Q, counts=True).statistic
    assert ksd.compare(pandas.DataFrame(COUNTS), P, Q, counts=True).statistic == wanted
    silent = [LDA(one.concentration, one.topics) for one in (P, Q)]
    assert (
        ksd.compare(
            pandas.DataFrame(COUNTS, columns=list("abcdefgh")), *silent, counts=True
        ).statistic
        == wanted
    )
    ids = pandas.DataFrame(RNG.integers(0, 8, (30, 3)), columns=["first", "second", "model"])
    assert ksd.compare(ids, P, Q).statistic == ksd.compare(ids.to_numpy(), P, Q).statistic

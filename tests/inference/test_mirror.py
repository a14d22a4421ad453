"""Named in the other order, two models get the mirrored answer: the letters P and Q exchanged, and
nothing else.
"""

import re
from itertools import cycle, islice

import jax
import ksd
import numpy as np
import pytest

from lksd.kernels import IMQ
from lksd.models import LDA, PPCA, GaussianMixture

WORDS = 15


def factors(rng):
    """Two models of the right loadings, more or less, with other noise."""
    weight = rng.normal(size=(4, 2))
    x = rng.normal(size=(60, 2)) @ weight.T + rng.normal(size=(60, 4))
    p, q = (
        PPCA(weight + rng.normal(0, rng.uniform(0, 0.5), weight.shape), rng.uniform(0.7, 1.6))
        for _ in range(2)
    )
    return x, p, q


def mixtures(rng):
    means = rng.normal(0, 2, (3, 2))
    x = means[rng.integers(0, 3, 60)] + rng.normal(size=(60, 2))
    covariances = np.stack([np.eye(2)] * 3)
    p, q = (
        GaussianMixture(
            rng.dirichlet(np.full(3, 5.0)), means + rng.normal(0, 0.4, (3, 2)), covariances
        )
        for _ in range(2)
    )
    return x, p, q


def topics(rng):
    """Topics that are blurred, and topics that are all the same: on such pairs the operators are
    apt to disagree.
    """
    right = rng.dirichlet(np.full(WORDS, 0.2), 3)
    truth = LDA(np.full(3, 0.1), right)
    keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), 60)
    documents = np.asarray(jax.vmap(lambda key: truth.sample(key, 8)[1])(keys)).tolist()
    share = rng.uniform(0, 0.6)
    blurred, alike = (
        (1 - share) * right + share / WORDS,
        0.9 * right.mean(0) + 0.1 / WORDS + 0 * right,
    )
    models = [LDA(np.full(3, rng.uniform(0.1, 0.6)), one) for one in (blurred, alike)]
    p, q = (models[number] for number in rng.permutation(2))
    return documents, p, q


OPTIONS = (
    {},
    {"alternative": "two-sided"},
    {"also_mmd": True},
    {"margin": 0.02},
    {"calibration": "normal", "alternative": "two-sided", "margin": 0.01},
    {"also_mmd": True, "alternative": "two-sided"},
    {"calibration": "edgeworth", "correction": "bonferroni", "alpha": 0.1},
)
FAMILIES = (factors, mixtures, topics)


def pairs(count, seed):
    """Random pairs of all families, under all the options in turn; real data also with
    two kernels, documents with two operators.
    """
    for number, options in enumerate(islice(cycle(OPTIONS), count)):
        family = FAMILIES[number % len(FAMILIES)]
        several = {"kernel": [IMQ(1.0), IMQ(8.0)]} if number % 2 else {}
        if family is topics:
            several = {"operator": ("difference", "barker")}
        yield *family(np.random.default_rng([seed, number])), options | several


def swapped(sentence):
    return re.sub(r"\b[PQ]\b", lambda letter: {"P": "Q", "Q": "P"}[letter.group()], sentence)


def assert_mirrored(one, other):
    """Everything that a result tells of P, the other tells of Q."""
    assert other.sentence == swapped(one.sentence)
    assert (other.pvalue, other.pvalue_reverse) == (one.pvalue_reverse, one.pvalue)
    assert other.favours == (one.favours and swapped(one.favours))
    np.testing.assert_allclose(other.difference, -one.difference, rtol=1e-9)
    np.testing.assert_allclose(other.standard_error, one.standard_error, rtol=1e-9)
    if not one.margin:
        np.testing.assert_allclose(other.statistic, -one.statistic, rtol=1e-9)
    low, high = one.confidence_interval()
    np.testing.assert_allclose(other.confidence_interval(), (-high, -low), rtol=1e-9)


def assert_comparisons_mirrored(one, other):
    assert_mirrored(one, other)
    assert other.disputed == one.disputed
    assert (other.kernel, other.operator) == (one.kernel, one.operator)
    found = (other.ksd_p, other.ksd_q, other.ksd_p_error, other.ksd_q_error)
    np.testing.assert_allclose(
        found, (one.ksd_q, one.ksd_p, one.ksd_q_error, one.ksd_p_error), rtol=1e-9
    )
    np.testing.assert_allclose(
        other.contributions,
        -one.contributions,
        rtol=1e-7,
        atol=1e-12 * np.abs(one.contributions).max(),
    )
    if one.mmd is not None:
        assert_mirrored(one.mmd, other.mmd)
    if one.words is not None:
        np.testing.assert_array_equal(other.words.ids, one.words.ids)
        np.testing.assert_allclose(
            other.words.contributions, -one.words.contributions, rtol=1e-6, atol=1e-12
        )
    for mine, yours in zip(one.tests, other.tests, strict=True):
        assert_comparisons_mirrored(mine, yours)


def check(count, seed):
    seen = {"P": 0, "Q": 0, "undecided": 0, "disputed": 0}
    for x, p, q, options in pairs(count, seed):
        one, other = (
            ksd.compare(x, p, q, **options),
            ksd.compare(x, q, p, **options),
        )
        assert_comparisons_mirrored(one, other)
        if one.alternative == "greater":
            assert one.reject == (one.favours == "Q")
        seen["disputed" if one.disputed else one.favours or "undecided"] += 1
    return seen


@pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
def test_exchanged_models_get_the_exchanged_sentence():
    seen = check(21, seed=0)
    assert all(seen.values()), seen


def test_models_of_other_words_share_one_vocabulary_in_either_order():
    documents, p, q = topics(np.random.default_rng(3))
    words = [f"w{number}" for number in range(WORDS)]
    turned = LDA(q.concentration, np.asarray(q.topics)[:, ::-1], words[::-1])
    named = [[words[token] for token in document] for document in documents]
    known = LDA(p.concentration, p.topics, words)
    one, other = (
        ksd.compare(named, known, turned),
        ksd.compare(named, turned, known),
    )
    assert_comparisons_mirrored(one, other)
    assert other.words.names == one.words.names
    by_id = ksd.compare(documents, p, q)
    np.testing.assert_allclose(one.difference, by_id.difference, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
def test_a_hundred_pairs():
    seen = check(105, seed=1)
    print(f"\nmirrored sentences: {seen}")
    assert all(seen.values())

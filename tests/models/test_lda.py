"""LDA: densities, simulation and exact ratios against sums over all topics of all words."""

import itertools

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import oracles
import pytest
from scipy import stats

import lksd
from lksd.models import LDA
from lksd.models.base import float64_leaves

CONCENTRATION = np.array([0.3, 0.8, 0.5])
TOPICS = np.array([[0.5, 0.3, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.05, 0.6, 0.1]])
MODEL = LDA(CONCENTRATION, TOPICS)
WORDS = TOPICS.shape[1]


def all_values(x):
    """Every replacement of every word."""
    return np.broadcast_to(np.arange(WORDS, dtype=np.int32), (len(x), WORDS))


def ratios(document):
    """p(x with x_d -> v) / p(x) by enumeration."""
    here = oracles.lda_mass(CONCENTRATION, TOPICS, document)
    moved = [
        [
            oracles.lda_mass(CONCENTRATION, TOPICS, [*document[:d], v, *document[d + 1 :]])
            for v in range(WORDS)
        ]
        for d in range(len(document))
    ]
    return np.array(moved) / here


@pytest.mark.parametrize("document", [(0,), (1, 3), (0, 0, 2), (3, 1, 2, 0), (2, 2, 2, 1)])
def test_exact_ratios_equal_enumeration(document):
    x = np.array(document, dtype=np.int32)
    with jax.enable_x64(True):
        found = float64_leaves(MODEL).marginal_ratios(jnp.asarray(x), jnp.asarray(all_values(x)))
        padded = np.array([*document, -1, -1], dtype=np.int32)
        longer = float64_leaves(MODEL).marginal_ratios(
            jnp.asarray(padded), jnp.asarray(all_values(padded))
        )
    np.testing.assert_allclose(found, ratios(document), rtol=1e-12)
    np.testing.assert_allclose(longer[: len(x)], ratios(document), rtol=1e-12)


def test_densities_and_rao_blackwellised_ratios_equal_enumeration():
    """Averaged over the enumerated posterior, plain and averaged ratios are the exact ones."""
    document = (0, 3, 2)
    x, values = jnp.asarray(document, jnp.int32), jnp.asarray(all_values(document))
    with jax.enable_x64(True):
        model = float64_leaves(MODEL)
        every = [jnp.asarray(z, jnp.int32) for z in itertools.product(range(3), repeat=3)]
        joint = np.exp([float(model.log_prior(z) + model.log_likelihood(x, z)) for z in every])
        at = model.at(x, values)
        plain = np.array([at.likelihood_ratios(x, values, z) for z in every])
        averaged = np.array([at.averaged_ratios(x, values, z) for z in every])
    np.testing.assert_allclose(
        joint.sum(), oracles.lda_mass(CONCENTRATION, TOPICS, document), rtol=1e-12
    )
    posterior = joint / joint.sum()
    for kind in (plain, averaged):
        np.testing.assert_allclose(np.tensordot(posterior, kind, 1), ratios(document), rtol=1e-12)
    spread = [
        np.tensordot(posterior, kind**2, 1) - ratios(document) ** 2 for kind in (plain, averaged)
    ]
    assert (spread[1] <= spread[0] + 1e-12).all()
    assert spread[1].sum() < spread[0].sum() / 2


def test_a_sweep_keeps_the_posterior():
    """Topics from the enumerated posterior, one sweep, and the same law again (chi-square)."""
    document, count = (0, 3, 2), 40_000
    x, rng = jnp.asarray(document, jnp.int32), np.random.default_rng(0)
    every = np.array(list(itertools.product(range(3), repeat=3)), dtype=np.int32)
    with jax.enable_x64(True):
        model = float64_leaves(MODEL)
        log_joint = jax.vmap(lambda z: model.log_prior(z) + model.log_likelihood(x, z))(
            jnp.asarray(every)
        )
        posterior = np.asarray(jax.nn.softmax(log_joint))
        start = jnp.asarray(every[rng.choice(len(every), count, p=posterior)])
        after = jax.jit(jax.vmap(lambda key, z: model.gibbs(key, x, z)))(
            jax.random.split(jax.random.key(1), count), start
        )
    seen = np.bincount(np.asarray(after) @ [9, 3, 1], minlength=27)
    assert stats.chisquare(seen, count * posterior).pvalue > 1e-4
    assert np.mean(np.asarray(after) != np.asarray(start)) > 0.2


def test_sampled_documents_follow_the_model():
    count = 20_000
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), count)
        z, x = jax.jit(jax.vmap(lambda key: MODEL.sample(key, 2)))(keys)
    pairs = [(a, b) for a in range(WORDS) for b in range(WORDS)]
    expected = [count * oracles.lda_mass(CONCENTRATION, TOPICS, pair) for pair in pairs]
    assert (
        stats.chisquare(np.bincount(np.asarray(x) @ [WORDS, 1], minlength=16), expected).pvalue
        > 1e-4
    )
    same = float(np.mean(z[:, 0] == z[:, 1]))
    total = CONCENTRATION.sum()
    exact = np.sum(CONCENTRATION * (CONCENTRATION + 1)) / (total * (total + 1))
    assert abs(same - exact) < 5 * np.sqrt(exact * (1 - exact) / count)


def test_words_without_probability_are_never_sampled():
    topics = np.array([[0.0, 0.5, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])
    _, x = LDA([1.0, 1.0], topics).sample(jax.random.key(0), 500)
    assert set(np.unique(x)) == {1, 2, 3}


def test_mean_word_probabilities():
    np.testing.assert_allclose(
        MODEL.value_probabilities(), CONCENTRATION @ TOPICS / CONCENTRATION.sum()
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LDA([1.0, 1.0], TOPICS), r"expected concentration \(K,\) and topics \(K, L\)"),
        (
            lambda: LDA([1.0, 1.0, 0.0], TOPICS),
            "concentration: expected positive numbers; the smallest is 0",
        ),
        (
            lambda: LDA(CONCENTRATION, 2 * TOPICS),
            "topics: expected rows that sum to 1; row 0 sums to 2",
        ),
        (
            lambda: LDA(CONCENTRATION, TOPICS - 0.06),
            "topics: expected probabilities; the smallest is -0.01",
        ),
        (
            lambda: LDA(CONCENTRATION, np.where(TOPICS == 0.5, np.nan, TOPICS)),
            "topics: expected finite numbers",
        ),
        (
            lambda: LDA(CONCENTRATION, TOPICS, ["a", "b"]),
            "vocabulary: expected 4 words, one a column of topics; got 2",
        ),
        (lambda: LDA(CONCENTRATION, TOPICS, "abcd"), "vocabulary: expected a sequence of strings"),
    ],
)
def test_bad_models(build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build()


def test_from_gensim():
    from gensim.corpora import Dictionary
    from gensim.models import LdaModel

    texts = [
        ["kernel", "stein", "test"],
        ["topic", "model", "word"],
        ["stein", "kernel", "model"],
    ] * 5
    dictionary = Dictionary(texts)
    trained = LdaModel(
        [dictionary.doc2bow(text) for text in texts],
        2,
        dictionary,
        alpha="auto",
        passes=5,
        random_state=0,
    )
    model = lksd.adapters.from_gensim(trained)
    np.testing.assert_allclose(model.topics, trained.get_topics(), atol=1e-6)
    np.testing.assert_allclose(model.concentration, trained.alpha)
    assert model.vocabulary.words[dictionary.token2id["stein"]] == "stein"
    without = LdaModel([[(0, 1), (1, 2)], [(2, 1), (3, 1)]], num_topics=2, passes=5)
    assert lksd.adapters.from_gensim(without).vocabulary is None
    with pytest.raises(TypeError, match=r"expected a gensim.models.LdaModel; got dict"):
        lksd.adapters.from_gensim({})
    with pytest.raises(
        ValueError, match=r"a word for each of the model's ids 0 \.\. 5; got 3 words, or other ids"
    ):
        lksd.adapters.from_gensim(trained, Dictionary(texts[:1]))


@pytest.mark.parametrize(("count", "length"), [(200, 40), (150, 120), (100, 1_300), (2_000, 5_000)])
def test_every_model_size_has_a_cost(count, length):
    """In numbers that overflow a double by far, by logarithms."""
    model = LDA(np.ones(count), np.full((count, 2), 0.5))
    assert not model.exact_is_cheap(length)
    wanted = (count - 1) * np.log(length + 1.0) + np.log(length) + np.log(count)
    found = model.exact_cost(length)
    np.testing.assert_allclose(found.bit_length() * np.log(2), wanted, atol=np.log(2))


def test_models_of_ordinary_size_get_an_answer():
    rng = np.random.default_rng(0)
    p, q = (LDA(np.full(200, 0.1), rng.dirichlet(np.ones(50), 200)) for _ in range(2))
    x = rng.integers(0, 50, (20, 40))
    assert ksd.compare(x, p, q, warmup=2, draws=4).n == 20
    with pytest.raises(
        ValueError,
        match="200 topics and documents of 40 words has more than 134,217,728 coefficients",
    ):
        lksd.estimate_scores(p, x, exact=True)

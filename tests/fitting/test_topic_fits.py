"""Topic models by each trainer: topics that were planted, and words that were not seen."""

import importlib.util

import numpy as np
import pytest
from left_to_right import log_likelihoods
from scipy.sparse import csr_array

from lksd._vocabulary import Vocabulary
from lksd.fitting import TRAINERS, fit_topics, topic_trainer, topics
from lksd.models import LDA

WORDS = [f"word{number:02d}" for number in range(30)]
EVERY = Vocabulary((*WORDS, "unseen", "never"))
BLOCKS = np.kron(np.eye(3), np.full((1, 10), 0.1))


def corpus(count: int, length: int = 30, seed: int = 0) -> list[list[int]]:
    """Documents of three topics that share no word."""
    rng = np.random.default_rng(seed)
    chances = [rng.dirichlet(np.full(3, 0.2)) @ BLOCKS for _ in range(count)]
    return [rng.choice(30, length, p=one).tolist() for one in chances]


IDS = corpus(90)
TEXTS = [[WORDS[number] for number in document] for document in IDS]


@pytest.mark.parametrize("trainer", TRAINERS)
def test_planted_topics_are_found(trainer):
    """Every topic has nine tenths of its mass on the words of one of the three, and held-out
    documents are more likely than under the frequencies of all words.
    """
    model = fit_topics(TEXTS, 3, 0, EVERY, trainer=trainer).model
    assert model.vocabulary == EVERY
    np.testing.assert_allclose(model.topics.sum(1), 1, rtol=1e-9)
    mass = model.topics[:, :30] @ (BLOCKS.T > 0)
    assert sorted(mass.argmax(1)) == [0, 1, 2]
    assert (mass.max(1) > 0.9).all()
    held = corpus(20, seed=1)
    frequencies = (np.bincount(np.concatenate(IDS), minlength=32) + 1) / (90 * 30 + 32)
    gain = log_likelihoods(model, held, 20, 0) - [np.log(frequencies[one]).sum() for one in held]
    assert gain.mean() > 3 * gain.std() / np.sqrt(20)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_words_that_were_not_seen(trainer):
    model = fit_topics(TEXTS, 2, 0, EVERY, trainer=trainer).model
    unseen = model.topics[:, 30:]
    assert (unseen > 0).all()
    # exactly the smallest of the topic
    np.testing.assert_array_equal(unseen, np.repeat(model.topics.min(1, keepdims=True), 2, 1))
    assert model.note == (
        "2 of 32 words are unknown to the model and have a small probability in every topic."
    )


@pytest.mark.parametrize("trainer", TRAINERS)
def test_the_seed_says_it_all(trainer):
    before = np.random.get_state()[1].copy()  # noqa: NPY002  (nobody may change it)
    one, same, other = (fit_topics(IDS, 4, seed, trainer=trainer).model for seed in (0, 0, 2**40))
    np.testing.assert_array_equal(one.topics, same.topics)
    np.testing.assert_array_equal(one.concentration, same.concentration)
    assert (one.topics != other.topics).any()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_forms_of_documents():
    """Words, ids, padded ids and counts give the same digits, where the words stand in order."""
    in_order = [sorted(one) for one in IDS]
    counts = csr_array([np.bincount(one, minlength=32) for one in in_order])
    padded = np.full((90, 33), -1)
    padded[:, :30] = in_order
    texts = [[WORDS[number] for number in one] for one in in_order]
    by_words = fit_topics(texts, 3, 0, EVERY).model
    for given, options in (
        (in_order, {"n_values": 32}),
        (padded, {"n_values": 32}),
        (counts, {}),
        (in_order, {"vocabulary": EVERY}),
        (in_order, {"vocabulary": EVERY.words}),
    ):
        found = fit_topics(given, 3, 0, **options).model
        np.testing.assert_array_equal(found.topics, by_words.topics)
        assert found.vocabulary == (EVERY if "vocabulary" in options else None)
    assert fit_topics(texts, 3, 0).model.vocabulary == Vocabulary(tuple(WORDS))


def test_one_topic_is_the_frequencies():
    """The mean over the chain's states, all of which are the same."""
    model = fit_topics(IDS, 1, 0).model
    counts = np.bincount(np.concatenate(IDS), minlength=30) + topics.WORD_PRIOR
    np.testing.assert_allclose(model.topics[0], counts / counts.sum(), rtol=1e-5)


def test_the_first_trainer_that_is_installed(monkeypatch):
    assert list(TRAINERS) == ["tomotopy", "gensim", "scikit-learn"]
    found, lacking = importlib.util.find_spec, []
    monkeypatch.setattr(topics, "find_spec", lambda name: None if name in lacking else found(name))
    for name, module in (("tomotopy", "tomotopy"), ("gensim", "gensim"), ("scikit-learn", "")):
        assert topic_trainer() == name
        lacking.append(module)


def test_stopping_early_is_said(monkeypatch):
    monkeypatch.setattr(topics, "MOST_PASSES", 2)
    assert fit_topics(IDS, 3, 0, trainer="scikit-learn").notes == (
        "variational Bayes stopped after 2 passes without converging",
    )


BAD = {
    "no topics": ((IDS, 0, 0), {}, "count: expected an integer of at least 1; got 0"),
    "many topics": (([[0, 1], [1]], 4, 0), {}, "at most 3 topics.*got 4"),
    "an empty document": (([[0], []], 1, 0), {}, r"document 1 \(counting from 0\) is empty"),
    "empty words": (([["a"], []], 1, 0), {}, r"document 1 \(counting from 0\) is empty"),
    "no documents": (([], 1, 0), {}, "train: expected documents; got none"),
    "an unknown word": (
        ([["a"], ["b"]], 1, 0),
        {"vocabulary": ["a", "c"]},
        r"document 1 .*expected words of the vocabulary; 'b' is none of its 2 words",
    ),
    "a large id": ((IDS, 2, 0), {"n_values": 20}, "expected word ids from 0 to 19; got 29"),
    "a negative id": (([[0, -3]], 1, 0), {}, "document 0 .*word ids from 0 on"),
    "numbers": (([[0.5, 1.0]], 1, 0), {}, "document 0 .*word ids from 0 on"),
    "words and ids": (([["a"], [1]], 1, 0), {}, "document 1 .*1 is none of its"),
    "one word": (([[0, 0], [0]], 1, 0), {}, "expected at least two different words"),
    "trainer": ((IDS, 2, 0), {"trainer": "mallet"}, "trainer: expected one of 'tomotopy'"),
    "seed": ((IDS, 2, -1), {}, "seed: expected an integer of at least 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    given, options, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        fit_topics(*given, **options)


def test_the_model_is_an_lda():
    assert type(fit_topics(IDS, 2, 0).model) is LDA

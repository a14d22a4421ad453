"""gensim's and tomotopy's topic models against ours, and models of different words on one
vocabulary.
"""

import json
import subprocess
import sys

import ksd
import numpy as np
import pytest
import tomotopy
from gensim.corpora import Dictionary
from gensim.models import AuthorTopicModel, LdaModel, LdaMulticore

import lksd
from lksd.adapters import from_gensim, from_tomotopy, share_vocabulary
from lksd.models import LDA

RNG = np.random.default_rng(0)
WORDS = [f"word{i}" for i in range(12)]
TEXTS = [
    [WORDS[i] for i in RNG.choice(12, 10, p=RNG.dirichlet(np.full(12, 0.4)))] for _ in range(40)
]
HELD_OUT = [[WORDS[i] for i in RNG.integers(12, size=4 + number % 4)] for number in range(16)]


MULTICORE = """
import json, sys
from gensim.corpora import Dictionary
from gensim.models import LdaMulticore
texts = json.load(sys.stdin)
dictionary = Dictionary(texts)
bags = [dictionary.doc2bow(text) for text in texts]
LdaMulticore(bags, num_topics=2, id2word=dictionary, random_state=0, workers=1).save(sys.argv[1])
"""


def multicore_model(folder):
    """Trained in a process of its own, since it forks."""
    path = folder / "multicore.model"
    subprocess.run(
        [sys.executable, "-c", MULTICORE, path], input=json.dumps(TEXTS), text=True, check=True
    )
    return LdaMulticore.load(str(path))


def gensim_model(kind, texts, **options):
    dictionary = Dictionary(texts)
    bags = [dictionary.doc2bow(text) for text in texts]
    return kind(bags, num_topics=2, id2word=dictionary, random_state=0, passes=2, **options)


def tomotopy_model(texts, **options):
    model = tomotopy.LDAModel(k=2, seed=0, **options)
    for text in texts:
        model.add_doc(text)
    model.train(30, workers=1)
    return model


@pytest.mark.parametrize(
    ("convert", "trained", "parameters"),
    [
        (
            from_gensim,
            lambda _: gensim_model(LdaModel, TEXTS, alpha="auto"),
            lambda m: (m.alpha, m.get_topics(), m.id2word.values()),
        ),
        (from_gensim, multicore_model, lambda m: (m.alpha, m.get_topics(), m.id2word.values())),
        (
            from_tomotopy,
            lambda _: tomotopy_model(TEXTS, rm_top=1),
            lambda m: (m.alpha, [m.get_topic_word_dist(k) for k in range(2)], m.used_vocabs),
        ),
    ],
    ids=["LdaModel", "LdaMulticore", "tomotopy"],
)
def test_scores_are_those_of_our_lda(convert, trained, parameters, tmp_path):
    source = trained(tmp_path)
    model = convert(source)
    concentration, topics, words = parameters(source)
    topics = np.array(topics, dtype=np.float64)
    native = LDA(concentration, topics / topics.sum(1, keepdims=True))
    ids = {str(word): number for number, word in enumerate(words)}
    documents = [[ids[word] for word in text if word in ids] for text in HELD_OUT]
    ours, same = lksd.estimate_scores(model, HELD_OUT), lksd.estimate_scores(native, documents)
    for a, b in zip(ours.score, same.score, strict=True):
        np.testing.assert_array_equal(a, b)


P = LDA([0.5, 0.5], [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]], ["a", "b", "c"])
Q = LDA([0.5, 0.5], [[0.5, 0.4, 0.1], [0.25, 0.5, 0.25]], ["c", "d", "b"])


def test_one_vocabulary():
    p, q = share_vocabulary(P, Q)
    assert p.vocabulary.words == q.vocabulary.words == ("a", "b", "c", "d")
    np.testing.assert_allclose(
        p.topics, np.array([[0.6, 0.3, 0.1, 0.1], [0.2, 0.2, 0.6, 0.2]]) / [[1.1], [1.2]]
    )
    np.testing.assert_allclose(
        q.topics, np.array([[0.1, 0.1, 0.5, 0.4], [0.25, 0.25, 0.25, 0.5]]) / [[1.1], [1.25]]
    )
    assert "1 of 4 words are unknown to the model" in p.note
    smoothed = share_vocabulary(P, Q, smoothing=0.01)[0]
    np.testing.assert_allclose(smoothed.topics[:, 3], 0.01 / 1.01)
    assert share_vocabulary(P, P) == (P, P)


def test_compare_takes_words_of_models_with_different_vocabularies():
    documents = [["a", "b", "c", "d", "e"][: 3 + number % 3] for number in range(12)]
    result = ksd.compare(documents, P, Q)
    p, q = share_vocabulary(P, Q)
    same = ksd.compare(
        [["abcd".index(word) for word in text if word != "e"] for text in documents], p, q
    )
    assert result.statistic == same.statistic
    notes = "\n".join(result.notes)
    assert (
        "4 of 48 words (1 different) are not in the models' vocabulary and are left out." in notes
    )
    assert "P: 1 of 4 words are unknown to the model" in notes
    assert "Q: 1 of 4 words are unknown to the model" in notes


def test_two_corpora_and_two_packages():
    p, q = (
        from_tomotopy(tomotopy_model(TEXTS[:20])),
        from_gensim(gensim_model(LdaModel, [*TEXTS[20:], ["new", "words"]])),
    )
    result = ksd.compare(HELD_OUT, p, q, exact=True)
    assert np.isfinite(result.statistic)
    assert any("P: 2 of 14 words are unknown" in note for note in result.notes)


WEIGHTED = tomotopy_model(TEXTS, tw=tomotopy.TermWeight.IDF)
UNTRAINED = tomotopy.LDAModel(k=2)
UNTRAINED.add_doc(["a", "b"])
BAD = {
    "no word in common": (
        lambda: share_vocabulary(P, LDA([1.0], [[0.5, 0.5]], ["x", "y"])),
        ValueError,
        "words in common; of 3, 2",
    ),
    "no word in common, in compare": (
        lambda: ksd.compare([["a", "x"]] * 4, P, LDA([1.0], [[0.5, 0.5]], ["x", "y"])),
        ValueError,
        "expected topic models with words in common",
    ),
    "ids of different vocabularies": (
        lambda: ksd.compare([[0, 1]] * 4, P, Q),
        ValueError,
        r"word 0 is 'a' in one and 'c' in the other. Give the documents as words, or "
        r".*share_vocabulary\(p, q\)",
    ),
    "without words": (
        lambda: share_vocabulary(P, LDA([1.0], [[0.5, 0.5]])),
        TypeError,
        "with their vocabularies",
    ),
    "one model": (lambda: share_vocabulary(P), ValueError, "at least two; got 1"),
    "smoothing": (
        lambda: share_vocabulary(P, Q, smoothing=0.0),
        ValueError,
        "smoothing: .*got 0.0",
    ),
    "words without a vocabulary": (
        lambda: lksd.estimate_scores(LDA([1.0], [[0.5, 0.5]]), [["a"]] * 4),
        ValueError,
        "no model has a vocabulary",
    ),
    "text instead of words": (
        lambda: lksd.estimate_scores(P, ["a b"] * 4),
        TypeError,
        "got text, 'a b'. Split it into words",
    ),
    "unknown words alone": (
        lambda: lksd.estimate_scores(P, [["a"], ["zebra", "yak"]] * 2),
        ValueError,
        r"document 1 \(counting from 0\): none of its 2 words",
    ),
    "weighted words": (
        lambda: from_tomotopy(WEIGHTED),
        ValueError,
        r"weights them \(tw=IDF\), so that it is no distribution",
    ),
    "untrained": (lambda: from_tomotopy(UNTRAINED), ValueError, "it has not been trained"),
    "another model of tomotopy": (
        lambda: from_tomotopy(tomotopy.HDPModel()),
        TypeError,
        "got HDPModel",
    ),
    "another model of gensim": (
        lambda: from_gensim(
            AuthorTopicModel(
                [[(0, 1)]], author2doc={"a": [0]}, num_topics=2, id2word={0: "b", 1: "c"}
            )
        ),
        TypeError,
        "got AuthorTopicModel",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()

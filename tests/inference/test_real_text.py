"""Topic models of abstracts: no undisputed sentence contradicts held-out likelihood (slow)."""

import arxiv
import ksd
import left_to_right
import numpy as np
import pytest

import lksd
from lksd.models import LDA
from lksd.reproduce.problems.arxiv import abstracts

TOPICS = (5, 20, 100)
TRAINING, HELD_OUT, SHORTEST, RARE = 2_500, 120, 50, 2
CLEAR = 3  # standard errors


def split_of(number: int) -> tuple[list[list[str]], list[list[str]]]:
    """Abstracts to train on, and others of some length; texts that occur twice are taken once."""
    texts = list(dict.fromkeys(tuple(words) for _, words in abstracts(arxiv.ABSTRACTS)))
    shuffled = [list(texts[i]) for i in np.random.default_rng(number).permutation(len(texts))]
    others = [words for words in shuffled[TRAINING:] if len(words) >= SHORTEST]
    return shuffled[:TRAINING], others[:HELD_OUT]


def by_tomotopy(training: list[list[str]], topics: int, seed: int, sweeps: int = 1_000) -> LDA:
    tomotopy = pytest.importorskip("tomotopy")
    model = tomotopy.LDAModel(k=topics, min_cf=RARE, seed=seed)
    for words in training:
        model.add_doc(words)
    model.train(sweeps, workers=1)
    return lksd.adapters.from_tomotopy(model)


def by_gensim(training: list[list[str]], topics: int, seed: int) -> LDA:
    from gensim.corpora import Dictionary
    from gensim.models import LdaModel

    dictionary = Dictionary(training)
    bags = [dictionary.doc2bow(words) for words in training]
    model = LdaModel(bags, topics, dictionary, passes=10, alpha="auto", random_state=seed)
    return lksd.adapters.from_gensim(model)


@pytest.mark.slow
@pytest.mark.skipif(
    not arxiv.ABSTRACTS.exists(), reason=f"the abstracts are not at {arxiv.ABSTRACTS}"
)
@pytest.mark.parametrize("split", range(5))
@pytest.mark.parametrize("train", [by_tomotopy, by_gensim])
def test_no_undisputed_sentence_contradicts_held_out_likelihood(train, split):
    """Neither on the documents nor with one of them twice, which must not blind an operator."""
    training, texts = split_of(split)
    models = {str(count): train(training, count, split) for count in TOPICS}
    vocabulary = models["5"].vocabulary
    models = {name: model.over(vocabulary) for name, model in models.items()}
    numbers = {word: number for number, word in enumerate(vocabulary.words)}
    x = [[numbers[word] for word in words if word in numbers] for words in texts]
    wrong = []
    for (a, b), held in left_to_right.held_out(models, x).items():
        operators = lksd.discrete_operators(models[a], models[b])
        for documents, said in ((x, "once"), ([*x, x[0]], "one twice")):
            p, q = (
                lksd.estimate_scores(models[name], documents, operator=operators) for name in (a, b)
            )
            result = ksd.compare(documents, p, q)
            print(
                f"{a} or {b} topics, {said}: {held.difference:.2f} +- {held.error:.2f} nats. "
                f"{result.sentence}"
            )
            if (
                result.favours
                and abs(held.z) > CLEAR
                and result.favours != ("Q" if held.z > 0 else "P")
            ):
                wrong.append((a, b, said, held.z))
    assert not wrong

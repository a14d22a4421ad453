"""Topic models by the first trainer that is installed: tomotopy, gensim or scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._documents import checked_counts, is_sparse, numbered
from .._validation import check_choice, check_size
from .._vocabulary import Vocabulary, as_vocabulary, is_words
from ..adapters._packages import needed
from ..adapters.fitted import from_gensim, from_lda, from_tomotopy
from ..models import LDA
from .base import Fit, check_how_many, seed_of_package, steady

SWEEPS, BURN_IN = 500, 100  # of collapsed Gibbs; the prior of topics is learned after the burn-in
STATES, APART = 20, 25  # of the chain, and the sweeps between them, over which topics are averaged
PRIOR, WORD_PRIOR = 0.1, 0.05  # of topics in a document, as learning begins; of words in a topic
PASSES, MOST_PASSES = 30, 100  # of variational Bayes over the documents


def topic_trainer() -> str:
    """The package that trains topic models here: the first of ``TRAINERS`` that is installed."""
    modules = {"scikit-learn": "sklearn"}
    return next(name for name in TRAINERS if find_spec(modules.get(name, name)))


def fit_topics(
    train: Any,
    count: int,
    seed: int,
    vocabulary: Vocabulary | Sequence[str] | None = None,
    n_values: int | None = None,
    trainer: str | None = None,
) -> Fit:
    """Latent Dirichlet allocation, in which words that ``train`` lacks have a small probability.

    Parameters
    ----------
    train : list of documents
        Each a list of words, or of word ids; or word ids as an array, with -1 where a document has
        ended, or word counts as a SciPy sparse matrix.
    count : int
        How many topics.
    seed : int
    vocabulary : Vocabulary or sequence of str, optional
        All words that a document may have, in the order of their ids; default: those of ``train``.
    n_values : int, optional
        How many ids there are where nothing names their words; default: the largest and 1.
    trainer : str, optional
        tomotopy, gensim or scikit-learn; default: ``topic_trainer()``.
    """
    name = check_choice("trainer", topic_trainer() if trainer is None else trainer, TRAINERS)
    documents, words, size = read_documents(train, as_vocabulary(vocabulary), n_values)
    total = sum(map(len, documents))
    count = check_how_many(count, total, "topics", "as many as the documents have words")
    with steady():
        model, notes = TRAINERS[name](documents, count, seed_of_package(seed))
    model = model.over(Vocabulary(tuple(map(str, range(size)))))
    return Fit(LDA(model.concentration, model.topics, words, model.unknown), notes)


# ------------------------------------------------------------- documents


def read_documents(
    train: Any, vocabulary: Vocabulary | None, n_values: int | None
) -> tuple[list[np.ndarray], Vocabulary | None, int]:
    """The word ids of each document, their words where they are known, and how many there are."""
    if is_sparse(train):
        n_values = train.shape[1] if n_values is None else n_values
        train = listed(train)
    given = list(train)
    if is_words(given):
        if vocabulary is None:
            found = {word for one in given for word in one}
            vocabulary = Vocabulary(tuple(sorted(word for word in found if isinstance(word, str))))
        ids = {word: number for number, word in enumerate(vocabulary.words)}
        documents = [ids_of_words(number, one, ids) for number, one in enumerate(given)]
    else:
        documents = [ids_of(number, one) for number, one in enumerate(given)]
    if not documents:
        raise ValueError("train: expected documents; got none. Check the data.")
    for number, one in enumerate(documents):
        if not one.size:
            raise ValueError(f"train: {numbered(number)} is empty. Leave it out.")
    used = np.unique(np.concatenate(documents))
    if len(used) < 2:
        raise ValueError(
            "train: expected at least two different words; the documents repeat one. Check the "
            "data."
        )
    largest = int(used[-1])
    size = largest + 1 if n_values is None else check_size("n_values", n_values)
    size = size if vocabulary is None else len(vocabulary.words)
    if largest >= size:
        raise ValueError(
            f"train: expected word ids from 0 to {size - 1}; got {largest}. Recode them, or give "
            "all words."
        )
    return documents, vocabulary, size


def listed(counts: Any) -> list[np.ndarray]:
    """The word ids of each document from a sparse matrix of counts."""
    matrix = checked_counts(counts)
    each = np.repeat(matrix.indices, matrix.data.astype(np.int64))
    return np.split(each, np.cumsum(matrix.sum(1).astype(np.int64))[:-1])


def ids_of_words(number: int, document: Any, ids: dict[str, int]) -> np.ndarray:
    try:
        return np.array([ids[word] for word in document], np.int64)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"train: {numbered(number)}: expected words of the vocabulary; "
            f"{next(word for word in document if word not in ids)!r} is none of its {len(ids)} "
            "words. Give all words, or leave it out."
        ) from error


def ids_of(number: int, document: Any) -> np.ndarray:
    found = np.asarray(document)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu") or (found < -1).any():
        raise ValueError(
            f"train: {numbered(number)}: expected a list of words, or of word ids from 0 on; got "
            "something else. Mend it, or leave it out."
        )
    return found[found >= 0].astype(np.int64)


# ------------------------------------------------------------- trainers: the words are ids as texts


def by_tomotopy(documents: list[np.ndarray], count: int, seed: int) -> tuple[LDA, tuple[str, ...]]:
    """Collapsed Gibbs in one thread, which learns the prior of topics; the topics are the mean over
    the chain's last states.
    """
    tomotopy = needed("fit_topics", "tomotopy", "tomotopy")
    trained = tomotopy.LDAModel(k=count, alpha=PRIOR, eta=WORD_PRIOR, seed=seed)
    trained.burn_in = BURN_IN
    for document in documents:
        trained.add_doc(list(map(str, document.tolist())))
    one_thread = {"workers": 1, "parallel": tomotopy.ParallelScheme.NONE}
    trained.train(SWEEPS, **one_thread)
    states = [from_tomotopy(trained)]
    while len(states) < STATES:
        trained.train(APART, **one_thread)
        states.append(from_tomotopy(trained))
    last = states[-1]
    return LDA(last.concentration, np.mean([one.topics for one in states], 0), last.vocabulary), ()


def by_gensim(documents: list[np.ndarray], count: int, seed: int) -> tuple[LDA, tuple[str, ...]]:
    """Variational Bayes in one process, which learns the prior of topics."""
    models = needed("fit_topics", "gensim.models", "topics")
    counts, words = counts_of(documents)
    bags = [
        list(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        for row in (counts[[number]] for number in range(counts.shape[0]))
    ]
    trained = models.LdaModel(
        bags,
        count,
        dict(enumerate(words)),
        passes=PASSES,
        alpha="auto",
        eta=WORD_PRIOR,
        eval_every=None,
        random_state=seed,
    )
    return from_gensim(trained), ()


def by_sklearn(documents: list[np.ndarray], count: int, seed: int) -> tuple[LDA, tuple[str, ...]]:
    """Variational Bayes with one prior for all topics."""
    decomposition = needed("fit_topics", "sklearn.decomposition", "sklearn")
    counts, words = counts_of(documents)
    trained = decomposition.LatentDirichletAllocation(
        count,
        learning_method="batch",
        max_iter=MOST_PASSES,
        topic_word_prior=WORD_PRIOR,
        evaluate_every=5,
        perp_tol=1.0,  # of perplexities of hundreds or thousands
        random_state=seed,
    ).fit(counts)
    said = f"variational Bayes stopped after {MOST_PASSES} passes without converging"
    return from_lda(trained, words), (said,) if trained.n_iter_ == MOST_PASSES else ()


def counts_of(documents: list[np.ndarray]) -> tuple[csr_array, list[str]]:
    """Counts of the words that occur, and these words."""
    words, columns = np.unique(np.concatenate(documents), return_inverse=True)
    rows = np.repeat(np.arange(len(documents)), list(map(len, documents)))
    counts = csr_array((np.ones(len(rows)), (rows, columns)))
    counts.sum_duplicates()
    return counts, list(map(str, words.tolist()))


TRAINERS: dict[str, Any] = {
    "tomotopy": by_tomotopy,
    "gensim": by_gensim,
    "scikit-learn": by_sklearn,
}

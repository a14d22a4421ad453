"""Observations that are integers: categories, documents, also of words, and graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._documents import Filled, drop_empty_documents, is_sparse, read_documents
from .._validation import check_choice, column_names, warn
from .._vocabulary import (
    Vocabulary,
    as_documents,
    holds_words,
    is_words,
    vocabularies_of,
    word_columns,
)
from ..kernels import IMQ, BagOfWords, Hamming, Kernel
from ..models import LDA, KnowsValues
from ..options import Reading
from ..stein import (
    Barker,
    Difference,
    DiscreteOperator,
    Gibbs,
    vocabulary_order,
)
from .base import Domain, Observations, Prepared, check_index, is_estimate
from .reals import CONTINUOUS, is_continuous

DISCRETE: dict[str, Any] = {"difference": Difference, "barker": Barker, "gibbs": Gibbs}
BOTH = ("difference", "barker")


@dataclass(frozen=True)
class Integers(Domain):
    """Values 0 .. n_values - 1; positions after the end of an observation hold -1."""

    describes: ClassVar[str] = "integers"
    discrete: ClassVar[bool] = True
    linear: ClassVar[str] = "difference"
    default: ClassVar[tuple[str, ...]] = BOTH  # operators

    n_values: int
    exchangeable: bool
    without_positions: bool = False  # since word counts have none
    vocabulary: Vocabulary | None = None
    documents: bool = False  # whether people speak of documents and words
    columns: tuple[str, ...] = ()  # names, where the data have some

    @classmethod
    def read(cls, x, models, reading):
        x, models, notes = read_words(x, models, reading)
        size, counts, documents = check_alphabets(models), reading.counts, of_words(models)
        filled = (
            drop_empty_documents(x, size, counts, documents) if reading.drop_empty else Filled(x)
        )
        any_length = all(is_estimate(model) or model.any_length for model in models)
        values = read_documents(filled.x, size, counts, any_length)
        known = [one.vocabulary for one in models if one.vocabulary is not None]
        domain = cls(
            n_values=size,
            exchangeable=all(model.exchangeable for model in models),
            without_positions=is_sparse(filled.x) or bool(counts),
            vocabulary=known[0] if known else None,
            documents=documents,
            columns=column_names(filled.x) or (),
        )
        ids = check_index(filled.index_of(reading.index), len(values))
        notes = (*notes, *filled.notes)
        return domain, Observations(values, ids, rows=filled.rows, notes=notes), models

    def operators(self, choice, models):
        wanted = tuple(choice) if isinstance(choice, (tuple, list)) else choice and (choice,)
        own = [model for model in models if not is_estimate(model)]
        without = values_without_probability(own)
        left_out = bool(without) and self.default == BOTH  # of the default
        default = BOTH[1:] if left_out else self.default
        built = [self.operator(one, own) for one in (default if choice is None else wanted)]
        if without and (
            (choice is None and left_out) or any(one.needs_all_values for one in built)
        ):
            alone = "; Barker alone is used" if choice is None else ""
            warn(
                f"operator: {without} values have probability zero under a model, and the "
                f"difference operator's mean is then not zero under that model{alone}. Smooth the "
                "probabilities, or use 'barker'."
            )
        if not built:
            raise ValueError(
                "operator: expected at least one; got an empty list. Leave it out for the default."
            )
        if self.without_positions and any(one.witness != "shared" for one in built):
            raise ValueError(
                "x: expected token ids for an operator whose witnesses belong to positions; got "
                'word counts, which have none. Use witness="shared".'
            )
        return tuple(built)

    def operator(self, choice: Any, models: list[Any]) -> DiscreteOperator:
        """One operator by its name, with the defaults for these models, or as it is given."""
        named = isinstance(choice, str)
        if named:
            check_choice("operator", choice, [*CONTINUOUS, *DISCRETE])
        if not (choice in DISCRETE if named else isinstance(choice, DiscreteOperator)):
            if is_continuous(choice):
                raise ValueError(
                    f"operator: expected a discrete one for {models[0]}, whose data are integers; "
                    f"got {str(choice).capitalize()}. Leave it out, or use 'difference', 'barker' "
                    "or 'gibbs'."
                )
            raise TypeError(
                f"operator: expected an operator or one of {', '.join(DISCRETE)}; got {choice!r}. "
                "Give an instance."
            )
        one = discrete_operators(*models, names=(choice,))[0] if named else choice
        if one.n_values != self.n_values:
            raise ValueError(
                f"operator: expected {self.n_values} values as in the model; got {one.n_values}. "
                "Give both the same size."
            )
        return one

    def papers_operators(self, choice: Any) -> Any:
        """A name as the paper's operator: one witness for each position, values in their order."""
        if isinstance(choice, (tuple, list)):
            return tuple(self.papers_operators(one) for one in choice)
        name = "difference" if choice is None else choice
        known = isinstance(name, str) and name in DISCRETE
        return DISCRETE[name](self.n_values) if known else choice

    def prepare(self, x, estimates, kernel, holdout, standardise, paper):
        if holdout is not None or standardise:
            raise ValueError(
                "holdout and standardise: expected with real data only; these are integers. Leave "
                "them out."
            )
        if kernel is None and not self.exchangeable:
            kernel = Hamming()
        elif kernel is None and paper:
            kernel = BagOfWords(IMQ(), self.n_values)
        elif kernel is None:
            kernel = BagOfWords.at_median(x, self.n_values)
        scores = [one.part("score") for one in estimates]
        return Prepared(x, scores, estimates[0].operators, kernel, np.ones(()))

    def mmd_kernel(self, prepared: Prepared) -> Kernel:
        kernel = prepared.kernel
        return kernel[0] if isinstance(kernel, (list, tuple)) else kernel


class Categories(Integers):
    """Items, sequences and other observations of one length."""

    kind: ClassVar[str] = "categories"


class Documents(Integers):
    """Observations of any length, most of them texts.

    The score of Difference, p(next word) / p(word) - 1, has no bound: the words that surprise a
    model most make nearly all of it, and the sharper of two models surprises more, however well it
    predicts all others (docs/topics.md). Barker's weights lie between 0 and 1.
    """

    kind: ClassVar[str] = "documents"
    default: ClassVar[tuple[str, ...]] = ("barker",)


class Graphs(Integers):
    """Graphs by their edges."""

    kind: ClassVar[str] = "graphs"
    default: ClassVar[tuple[str, ...]] = ("gibbs",)


def discrete_operators(*models: Any, names: tuple[str, ...] = BOTH) -> tuple[DiscreteOperator, ...]:
    """The operators of these names with our defaults for these models: a shared witness, and an
    order of the values from the models' mean probabilities of them.

    Scores of several models can be compared only if they were estimated with the same operators.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.dirichlet(np.ones(30), (2, 2))
    >>> p, q = (lksd.models.LDA(0.1 * np.ones(2), one) for one in topics)
    >>> for operator in lksd.discrete_operators(p, q):
    ...     print(operator)  # doctest: +ELLIPSIS
    Difference(30 values, shared witness, ordered...)
    Barker(30 values, shared witness, ordered...)
    """
    size, average = check_alphabets(models), all(one.any_length or one.graphs for one in models)
    options: dict[str, Any] = {"witness": "shared", "average": average}
    built: list[DiscreteOperator] = []
    for name in names:
        kind = DISCRETE[check_choice("operator", name, DISCRETE)]
        order = {"order": order_from(models)} if kind.ordered else {}
        built.append(kind(size, **options, **order))
    return tuple(built)


def of_words(models: Any) -> bool:
    """Whether people speak of documents and words, not of observations and values."""
    return any(isinstance(model, LDA) or model.vocabulary is not None for model in models)


def check_alphabets(models: Any) -> int:
    """The number of values, the same for all models."""
    sizes = [int(one.operators[0].n_values if is_estimate(one) else one.n_values) for one in models]
    if len(set(sizes)) > 1 and not of_words(models):
        raise ValueError(
            f"p and q: expected models of the same values; got {' and '.join(map(str, sizes))} "
            "values. Give models that agree on the largest one."
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            f"p and q: expected models of the same vocabulary; got {' and '.join(map(str, sizes))} "
            "values. Give the documents as words, or the models from "
            "lksd.adapters.share_vocabulary(p, q)."
        )
    words = [one.vocabulary.words for one in models if one.vocabulary is not None]
    for other in words[1:]:
        if other != words[0]:
            pairs = enumerate(zip(words[0], other, strict=True))
            index = next(i for i, (a, b) in pairs if a != b)
            raise ValueError(
                f"p and q: expected models of the same vocabulary; word {index} is "
                f"{words[0][index]!r} in one and {other[index]!r} in the other. Give the documents "
                "as words, or the models from lksd.adapters.share_vocabulary(p, q)."
            )
    return sizes[0]


def order_from(models: Any) -> np.ndarray | None:
    """The order by the mean probability of each value, where all models say it."""
    if not all(isinstance(model, KnowsValues) for model in models):
        return None
    return vocabulary_order(np.mean([model.value_probabilities() for model in models], 0))


def values_without_probability(models: Any) -> int:
    """How many values some model can never produce, where the models say it."""
    known = [one.value_probabilities() for one in models if isinstance(one, KnowsValues)]
    return int(np.sum(np.min(known, 0) == 0)) if known else 0


def read_words(
    x: Any, models: list[Any], reading: Reading
) -> tuple[Any, list[Any], tuple[str, ...]]:
    """Documents of words as ids, topic models on one vocabulary, and what was left out."""
    counts = reading.counts
    if any(map(is_estimate, models)) and (is_words(x) or (counts and word_columns(x))):
        raise ValueError(
            "x: expected word ids beside scores that are already estimated, or an array of counts "
            "in their order; got words. Give the ids that they belong to."
        )
    if not holds_words(x, models, counts):
        return x, models, ()
    given = vocabularies_of(models)
    if any(other != given[0] for other in given[1:]):
        models = list(share_vocabulary(*models))
    documents, notes = as_documents(x, vocabularies_of(models)[0], reading.drop_empty)
    return documents, models, notes


def share_vocabulary(*models: LDA, smoothing: float | None = None) -> tuple[LDA, ...]:
    """Topic models of different words on one vocabulary: the words of all.

    A word that a model does not know gets a small probability in each of its topics, and the rest
    is scaled down. ``compare`` does this by itself for documents of words.

    Parameters
    ----------
    models : LDA
        With their vocabularies, which have at least one word in common.
    smoothing : float, optional
        The probability of an unknown word before the topic is normalised. Default: the smallest
        that the topic gives to a word, as to one that it has never seen.

    Examples
    --------
    >>> import lksd
    >>> p = lksd.models.LDA([1.0], [[0.5, 0.5]], ["kernel", "stein"])
    >>> q = lksd.models.LDA([1.0], [[0.8, 0.2]], ["kernel", "topic"])
    >>> p, q = lksd.adapters.share_vocabulary(p, q)
    >>> q.vocabulary.words, q.topics.round(2).tolist()
    (('kernel', 'stein', 'topic'), [[0.67, 0.17, 0.17]])
    """
    if len(models) < 2:
        raise ValueError(
            f"models: expected at least two; got {len(models)}. Give the models that are to be "
            "compared."
        )
    for model in models:
        if not isinstance(model, LDA) or model.vocabulary is None:
            raise TypeError(
                f"models: expected lksd.models.LDA with their vocabularies; got {model!r}. Give "
                "vocabulary=, the words."
            )
    if smoothing is not None and not 0 < smoothing < 1:
        raise ValueError(
            f"smoothing: expected a number strictly between 0 and 1; got {smoothing!r}. Leave it "
            "out for the default."
        )
    known = [model.vocabulary.words for model in models]  # type: ignore[union-attr]
    if not set.intersection(*map(set, known)):
        sizes = ", ".join(f"{len(words):,}" for words in known)
        raise ValueError(
            f"models: expected topic models with words in common; of {sizes} words none is in all "
            f"of them ({known[0][0]!r} in one, {known[1][0]!r} in another). Prepare the words in "
            "the same way for all."
        )
    shared = Vocabulary(tuple(dict.fromkeys(word for words in sorted(known) for word in words)))
    return tuple(model.over(shared, smoothing) for model in models)

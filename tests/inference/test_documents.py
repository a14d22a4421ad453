"""Documents without words, how documents are numbered, and what observations that are no documents
are called.
"""

import re
import time

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import pytest
from scipy import sparse

import lksd
from lksd import LksdWarning
from lksd._documents import read_documents
from lksd.models import LDA, LatentVariableModel

RNG = np.random.default_rng(0)
WORDS = [f"word{i}" for i in range(8)]
P, Q = (LDA(np.full(2, a), RNG.dirichlet(np.full(8, 0.5), 2), WORDS) for a in (0.3, 3.0))
IDS = [RNG.integers(0, 8, 3 + number % 4).tolist() for number in range(20)]
TEXTS = [[WORDS[i] for i in document] for document in IDS]
KEPT = [number for number in range(20) if number not in (3, 11)]


def with_gaps(documents, nothing):
    return [nothing if number in (3, 11) else document for number, document in enumerate(documents)]


def counted(documents):
    return np.array([np.bincount(document, minlength=8) for document in documents])


FORMS = {
    "words": (with_gaps(TEXTS, ["zebra"]), [TEXTS[i] for i in KEPT], {}),
    "no words": (with_gaps(TEXTS, []), [TEXTS[i] for i in KEPT], {}),
    "ids": (with_gaps(IDS, []), [IDS[i] for i in KEPT], {}),
    "sparse counts": (
        sparse.csr_array(counted(with_gaps(IDS, []))),
        sparse.csr_array(counted(IDS)[KEPT]),
        {},
    ),
    "counts": (counted(with_gaps(IDS, [])), counted(IDS)[KEPT], {"counts": True}),
}


@pytest.mark.parametrize("form", FORMS)
def test_empty_documents_are_left_out_where_that_is_wanted(form):
    """The others have the answer that they have alone, and the rows that they had."""
    given, rest, options = FORMS[form]
    found = ksd.compare(given, P, Q, drop_empty=True, **options)
    alone = ksd.compare(rest, P, Q, index=KEPT, **options)
    assert (found.n, found.pvalue, found.statistic) == (18, alone.pvalue, alone.statistic)
    np.testing.assert_array_equal(found.contributions, alone.contributions)
    assert found.documents(18) == [(KEPT[i], part) for i, part in alone.documents(18)]
    assert any(
        "2 of 20 documents have no words" in note and "3, 11 (counting from 0)" in note
        for note in found.notes
    )
    assert lksd.goodness_of_fit(given, P, drop_empty=True, **options).n == 18
    assert ksd.rank(given, {"p": P, "q": Q}, drop_empty=True, **options).n == 18
    scores = lksd.estimate_scores(P, given, drop_empty=True, **options)
    np.testing.assert_array_equal(scores.index, KEPT)
    assert len(scores.score) == 18
    assert any("2 of 20 documents" in note for note in scores.notes)


@pytest.mark.parametrize("form", FORMS)
def test_without_it_the_error_names_the_option_and_the_document(form):
    given, _, options = FORMS[form]
    calls = [
        lambda: ksd.compare(given, P, Q, **options),
        lambda: lksd.goodness_of_fit(given, P, **options),
        lambda: ksd.rank(given, {"p": P, "q": Q}, **options),
        lambda: lksd.estimate_scores(P, given, **options),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"document 3 \(counting from 0\).*drop_empty=True"):
            call()


def test_chains_of_the_documents_left_are_those_that_they_had():
    options = {"exact": False, "warmup": 5, "draws": 10, "operator": "difference"}
    whole = lksd.estimate_scores(P, IDS, **options)
    found = lksd.estimate_scores(P, with_gaps(IDS, []), drop_empty=True, **options)
    np.testing.assert_array_equal(found.score, whole.score[KEPT])
    own = lksd.estimate_scores(
        P, with_gaps(IDS, []), drop_empty=True, index=np.arange(100, 120), **options
    )
    np.testing.assert_array_equal(own.index, 100 + np.array(KEPT))
    with pytest.raises(ValueError, match="index: expected one for each of the 20 documents given"):
        lksd.estimate_scores(P, with_gaps(IDS, []), drop_empty=True, index=np.arange(18))


def test_a_report_shows_the_documents_as_they_were_given(tmp_path):
    given = with_gaps(TEXTS, [])
    result = ksd.compare(given, P, Q, drop_empty=True)
    result.to_html(tmp_path / "report.html", observations=given)
    page = (tmp_path / "report.html").read_text()
    number, _ = result.documents()[0]
    assert re.search(rf"observation {number}</span><br>{' '.join(given[number])}<", page)
    with pytest.raises(
        ValueError, match="observations: expected all that were given, at least 20; got 5"
    ):
        result.to_html(tmp_path / "report.html", observations=given[:5])
    result.to_json(tmp_path / "result.json")
    assert lksd.load_result(tmp_path / "result.json").documents() == result.documents()


WRONG = {
    "text": (lambda: ksd.compare([*IDS[:5], ["a"]], P, Q), TypeError),
    "negative": (lambda: ksd.compare([*IDS[:5], [-1]], P, Q), ValueError),
    "empty": (lambda: ksd.compare([*IDS[:5], []], P, Q), ValueError),
    "unknown": (lambda: ksd.compare([*TEXTS[:5], ["zebra"]], P, Q), ValueError),
    "fractions": (
        lambda: ksd.compare(sparse.csr_array(counted(IDS[:6]) + 0.5 * np.eye(6, 8, -5)), P, Q),
        ValueError,
    ),
    "impossible": (
        lambda: ksd.compare([*[[0]] * 5, [1, 0]], never(), never(), operator="barker"),
        ValueError,
    ),
    "negative after an empty one": (
        lambda: ksd.compare([*IDS[:4], [], [-1]], P, Q, drop_empty=True),
        ValueError,
    ),
}


def never():
    return LDA([1.0], [[1.0, 0.0]])


@pytest.mark.parametrize("name", WRONG)
def test_documents_are_numbered_in_one_way(name):
    """The sixth document is at fault, and number 5 everywhere."""
    call, kind = WRONG[name]
    with pytest.raises(kind, match=r"document 5 \(counting from 0\)"):
        call()


def test_drop_empty_is_for_documents():
    for call in (
        lksd.estimate_scores,
        lambda p, x, **options: ksd.compare(x, p, p, **options),
    ):
        with pytest.raises(ValueError, match=r"drop_empty: .* real numbers"):
            call(lksd.models.PPCA(np.ones((2, 1)), 1.0), np.zeros((6, 2)), drop_empty=True)
    with pytest.raises(ValueError, match="expected at least 4 observations; got 3"):
        ksd.compare([[1, 2], [1], [2], []], P, Q, drop_empty=True)


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


class Items(LatentVariableModel):
    """Right and wrong answers to three questions."""

    slope: float = 1.0
    n_values: int = 2

    def log_prior(self, z):
        return -(z**2) / 2

    def log_likelihood(self, x, z):
        return jnp.sum(jax.nn.log_sigmoid(self.slope * z * (2 * x - 1)))

    def log_marginal(self, x):
        return jax.nn.logsumexp(
            jax.vmap(lambda z: self.log_likelihood(x, z))(jnp.asarray(NODES)),
            b=jnp.asarray(WEIGHTS),
        )

    def sample(self, key):
        one, two = jax.random.split(key)
        z = jax.random.normal(one)
        return z, jax.random.bernoulli(two, jax.nn.sigmoid(self.slope * z), (3,)).astype(jnp.int32)


COUNTS = tuple(lksd.models.BetaBinomial(1, a, 2.0) for a in (1.0, 8.0))
ITEMS = np.random.default_rng(0).integers(0, 2, (40, 3))
OTHERS = {
    "items": (Items(), Items(3.0)),
    "counts": COUNTS,
    "scores of counts": tuple(
        lksd.estimate_scores(one, ITEMS, operator=lksd.discrete_operators(*COUNTS)[1])
        for one in COUNTS
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_observations_that_are_no_documents_are_not_called_so(name, tmp_path):
    x = ITEMS
    result = ksd.compare(x, *OTHERS[name], operator="barker", kernel=lksd.kernels.Hamming())
    result.to_html(tmp_path / "report.html", observations=x)
    for text in (
        str(result),
        re.sub(
            r"<(style|script).*?</\1>", "", (tmp_path / "report.html").read_text(), flags=re.DOTALL
        ),
    ):
        assert not re.search(r"\b(document|word)s?\b", text, re.IGNORECASE)
        assert "observation" in text
        assert "value" in text
    assert result.words is not None
    assert len(result.documents()) == 5
    assert "document" in str(ksd.compare(TEXTS, P, Q))
    with pytest.raises(
        ValueError,
        match=r"got -1 at index.*Recode the values, or give observations of different length",
    ):
        ksd.compare(x - 1, Items(), Items(3.0))


class Stuck(LDA):
    def at(self, x, values):
        return self

    def gibbs(self, key, x, z):
        return z

    def log_likelihood(self, x, z):
        return jnp.sum(jnp.log(jnp.asarray(self.topics)[z, x]))


def test_chains_that_never_move_are_reported():
    model = Stuck(np.ones(2), P.topics)
    x = np.random.default_rng(0).integers(0, 8, (10, 5))
    with pytest.warns(LksdWarning, match="chains have not converged at 10 of 10 observations"):
        found = lksd.estimate_scores(model, x, exact=False, chains=1, initial=None)
    assert not found.converged.any()


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (10**6, "has 26,000,000 words, and all 100 documents have"),
        (10**12, "All counts are multiples of 1,000,000,000,000: divide them by it."),
        (10.0**200, "expected documents of which a table of 268,435,456 words holds all"),
    ],
)
def test_counts_of_more_words_than_can_be_are_refused_at_once(factor, said):
    counts = sparse.csr_array(np.random.default_rng(0).poisson(0.3, (100, 50)) + np.eye(100, 50))
    start = time.process_time()
    with pytest.raises(ValueError, match=said):
        read_documents(counts * factor, 50)
    assert time.process_time() - start < 1


def test_many_words_are_said():
    counts = sparse.csr_array(np.random.default_rng(0).poisson(0.3, (100, 50)) + np.eye(100, 50))
    with pytest.warns(LksdWarning, match=r"test may take long\. All counts are multiples"):
        read_documents(counts * 5_000, 50)
    counts.data[0] += 10_000_000 / 5_000
    with pytest.raises(ValueError, match=r"document 0 .*not rescaled; or leave out the longest"):
        read_documents(sparse.csr_array(counts * 5_000 + sparse.csr_array(np.eye(100, 50))), 50)

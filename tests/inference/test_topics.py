"""Topic models compared end to end, and the studies behind the defaults (slow)."""

import dataclasses

import arxiv
import ksd
import numpy as np
import pytest
import studies
import topic_problems
from scipy import sparse, stats
from scipy.spatial.distance import pdist

import lksd
from lksd.kernels import IMQ, BagOfWords
from lksd.models import LDA
from lksd.stein import Barker, Difference

SWEEPS = {"exact": False, "warmup": 80, "draws": 20}


def small(size=60, seed=0):
    topics = topic_problems.words(np.random.default_rng(seed), size=size)
    names = [f"word{number}" for number in range(size)]
    data, p, q = (LDA(np.full(3, a), topics, names) for a in (0.1, 3.0, 0.2))
    return topic_problems.documents(data, 80, 20, seed), p, q


@pytest.mark.filterwarnings("ignore::lksd.LksdWarning")  # chains as short as the paper's
def test_compare_names_the_documents_and_words_that_decide(tmp_path):
    x, p, q = small()
    result = ksd.compare(x, p, q, operator=lksd.discrete_operators(p, q), **SWEEPS)
    assert result.reject
    assert [test.operator for test in result.tests] == [
        str(operator) for operator in lksd.discrete_operators(p, q)
    ]
    words = result.words
    np.testing.assert_allclose(words.contributions.sum(), result.difference, rtol=1e-9)
    np.testing.assert_allclose(result.contributions.sum(), result.difference, rtol=1e-9)
    assert (np.diff(np.abs(words.contributions)) <= 0).all()
    assert words.names[0] == f"word{words.ids[0]}"
    assert set(words.ids.tolist()) == set(np.unique(x).tolist())
    document, share = result.documents(1)[0]
    assert share == result.contributions[document]
    assert abs(share) == np.abs(result.contributions).max()
    text = str(result)
    assert words.names[0] in text
    assert "Rao-Blackwellised" in text
    np.testing.assert_array_equal(result.order, lksd.discrete_operators(p, q)[0].order)
    result.to_json(tmp_path / "result.json")
    again = lksd.load_result(tmp_path / "result.json")
    assert str(again) == text
    np.testing.assert_array_equal(again.order, result.order)
    np.testing.assert_array_equal(again.words.ids, words.ids)


@pytest.mark.slow
def test_one_operator_and_the_papers_settings():
    x, p, q = small()
    single = ksd.compare(x, p, q, operator="barker", **SWEEPS)
    assert single.tests == ()
    assert single.operator == "Barker(60 values, shared witness, ordered, averaged)"
    with pytest.warns(lksd.LksdWarning, match="MCMC noise makes"):
        paper = ksd.compare(x[:40], p, q, preset="paper")
    assert paper.operator == str(Difference(60))
    assert paper.order is None
    assert paper.kernel == str(BagOfWords(IMQ(), 60))
    assert paper.calibration == "normal"
    assert paper.diagnostics.method_p == "Gibbs, 1 chain of 20 draws after 80, plain means"
    both = ksd.compare(x[:30], p, q, preset="paper", operator=("difference", "barker"), exact=True)
    assert [test.operator for test in both.tests] == [str(Difference(60)), str(Barker(60))]


def test_exact_scores_are_used_where_they_are_cheap():
    x, p, q = small()
    exact, sampled = (
        ksd.compare(x, p, q),
        ksd.compare(x, p, q, exact=False, draws=2_000),
    )
    assert exact.diagnostics.method_p == "exact marginal score"
    for one, other in zip(exact.tests, sampled.tests, strict=True):
        assert abs(one.statistic - other.statistic) < 0.3
    assert sampled.diagnostics.noise_share < 0.05


def test_documents_of_different_length():
    x, p, q = small()
    lengths = np.random.default_rng(0).integers(3, 21, len(x))
    ragged = [row[:length].tolist() for row, length in zip(x, lengths, strict=True)]
    result = ksd.compare(ragged, p, q)
    barker = lksd.discrete_operators(p, q, names=("barker",))
    assert result.operator == str(barker[0])  # the default for documents
    np.testing.assert_allclose(result.words.contributions.sum(), result.difference, rtol=1e-9)
    scores = [lksd.estimate_scores(one, ragged, operator=barker) for one in (p, q)]
    assert ksd.compare(ragged, *scores).statistic == result.statistic
    matched = ksd.compare(ragged, p, q, operator=Difference(60))
    assert np.isfinite(matched.statistic)


def test_a_repeated_document_does_not_outweigh_all_others():
    rng = np.random.default_rng(1)
    topics, other = (topic_problems.words(rng, size=500, count=2) for _ in range(2))
    truth = LDA(np.full(2, 0.1), topics)
    p = LDA(truth.concentration, 0.4 * topics + 0.6 * other)
    x = topic_problems.documents(truth, 80, 40, 0)
    once, twice = (
        ksd.compare(one, p, truth, operator="barker") for one in (x, np.concatenate([x, x[:1]]))
    )
    assert once.reject
    assert twice.reject
    assert twice.statistic > 0.8 * once.statistic  # with scale 1 it falls from 5.8 to 0.7


def test_the_default_kernel_has_the_median_scale_of_the_documents():
    x, p, q = small()
    lengths = np.random.default_rng(0).integers(3, 21, len(x))
    ragged = [row[:length].tolist() for row, length in zip(x, lengths, strict=True)]
    counts = np.array([np.bincount(document, minlength=60) for document in ragged])
    scale = np.median(pdist(counts, "sqeuclidean"))
    result = ksd.compare(ragged, p, q)
    assert result.kernel == str(BagOfWords(IMQ(scale, source="median of all pairs"), 60))
    assert ksd.compare(sparse.csr_array(counts), p, q, operator="barker").kernel == result.kernel
    assert ksd.rank(ragged, {"p": p, "q": q}).kernel == result.kernel
    # no distance at all
    assert BagOfWords.median(np.zeros((5, 3), int), 60).base.preconditioner == 1.0


def test_equal_lengths_give_the_same_digits_as_no_mask():
    x, p, q = small()
    for witness in ("shared", "per-coordinate"):
        operator = Difference(60, witness=witness)
        scores = [lksd.estimate_scores(one, x, operator=operator).score for one in (p, q)]
        plain, masked = (
            lksd.compare_scores(x, *scores, BagOfWords(IMQ(), 60), operator=operator, mask=mask)
            for mask in (None, np.ones(x.shape, bool))
        )
        assert plain.statistic == masked.statistic


def test_goodness_of_fit():
    x, p, _ = small()
    topics = topic_problems.words(np.random.default_rng(0), size=60)
    assert lksd.goodness_of_fit(x, p).reject
    fits = lksd.goodness_of_fit(x, LDA(np.full(3, 0.1), topics))
    assert not fits.reject
    estimate = lksd.estimate_scores(p, x)
    assert (
        lksd.goodness_of_fit(x, estimate).statistic
        == lksd.goodness_of_fit(x, estimate.only(0)).statistic
    )
    assert lksd.goodness_of_fit(x, estimate, operator="barker").operator.startswith("Barker")
    with pytest.raises(
        ValueError, match="operator: expected one for a goodness-of-fit test; got 2"
    ):
        lksd.goodness_of_fit(x, p, operator=("difference", "barker"))


@pytest.mark.slow
def test_words_without_probability_leave_barker_alone():
    topics = np.array([[0.5, 0.5, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0.4, 0.4, 0.2, 0, 0]])
    truth, other = LDA([1.0, 1.0], topics), LDA([3.0, 3.0], topics)
    x = topic_problems.documents(truth, 100, 10, 0)
    with pytest.warns(
        lksd.LksdWarning, match="3 values have probability zero under a model.*Barker alone is used"
    ):
        result = ksd.compare(x, other, truth)
    assert [test.operator for test in (result,)] == [
        "Barker(8 values, shared witness, ordered, averaged)"
    ]
    with pytest.warns(lksd.LksdWarning, match="Smooth the probabilities"):
        assert lksd.goodness_of_fit(x, truth, operator="difference").reject  # the identity fails
    assert not lksd.goodness_of_fit(x, truth, operator="barker").reject


def test_identical_models_are_indistinguishable():
    x, p, _ = small()
    result = ksd.compare(x, p, dataclasses.replace(p))
    assert result.indistinguishable
    assert result.pvalue == 1.0
    assert result.words is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda x, p, q: (x, p, small(size=50)[2], {}),
            "expected models of the same vocabulary; got 60 and 50 values",
        ),
        (
            lambda x, p, q: (
                x,
                p,
                LDA(q.concentration, q.topics, [f"w{i}" for i in range(60)]),
                {},
            ),
            "word 0 is 'word0' in one and 'w0' in the other",
        ),
        (
            lambda x, p, q: (x, p, lksd.models.PPCA(np.ones((20, 1)), 1.0), {}),
            "p describes integers and q describes real numbers",
        ),
        (
            lambda x, p, q: (
                x,
                lksd.estimate_scores(p, x),
                lksd.estimate_scores(small(seed=1)[2], x),
                {},
            ),
            r"expected scores of the same operators; .* operator=lksd.discrete_operators\(p, q\)",
        ),
        (
            lambda x, p, q: (
                x,
                lksd.estimate_scores(p, x, operator=Difference(60)),
                q,
                {"operator": "barker"},
            ),
            r"operator: expected Difference\(60 values, per-coordinate witness\), to which the "
            r"scores given belong",
        ),
        (lambda x, p, q: (x, p, q, {"standardise": True}), "expected with real data only"),
        (lambda x, p, q: (x, p, q, {"kernel": IMQ()}), "kernel: expected one on discrete data"),
        (
            lambda x, p, q: (x, p, q, {"alpha": 2.0}),
            "alpha: expected a number strictly between 0 and 1",
        ),
        (lambda x, p, q: (x + 60, p, q, {}), "expected values from 0 to 59"),
        (lambda x, p, q: (x[:3], p, q, {}), "expected at least 4 observations; got 3"),
    ],
)
def test_bad_comparisons(change, message):
    x, p, q, options = change(*small())
    with pytest.raises(ValueError, match=message):
        ksd.compare(x, p, q, **options)


def test_scores_given_for_one_model_fix_the_operators_of_the_other():
    x, p, q = small()
    operator = Difference(60, witness="shared")
    result = ksd.compare(x, lksd.estimate_scores(p, x, operator=operator), q)
    assert result.operator == str(operator)


# ------------------------------------------------------------- the studies, n = 100, chains of 80 +
# 20 sweeps


def rejections(problem, trials, operators=None, kernel=None, swapped_keys=False, n=100):
    """How often the default rejects; the second model's chains get other keys where both models are
    the same.
    """
    count = 0
    for trial in range(trials):
        one = problem(trial)
        x = one.sample(n, 10**6 + trial)
        given = operators or lksd.discrete_operators(one.p, one.q)
        p, q = (
            lksd.estimate_scores(model, x, operator=given, seed=seed, **SWEEPS)
            for model, seed in ((one.p, trial), (one.q, trial + 10**7 * swapped_keys))
        )
        chosen = kernel or BagOfWords.median(x, one.p.n_values)
        count += lksd.compare_scores(x, p.score, q.score, chosen, operator=given, seed=trial).reject
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "wanted"),
    [
        (topic_problems.prior_sparsity(1.0, 0.5), 0.93),
        (topic_problems.prior_sparsity(1.1, 0.6, spread=0.1), 0.93),
        (topic_problems.topic_perturbation(0.51), 0.90),
    ],
    ids=["prior sparsity", "sparse topics", "topic perturbation"],
)
def test_power(problem, wanted):
    trials = 100
    found = rejections(problem, trials)
    print(f"power {found / trials:.3f}")
    assert stats.binomtest(found, trials, wanted, alternative="less").pvalue > 0.001


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["mirror", "asymmetric", "asymmetric, swapped", "identical", "null"]
)
def test_level(name):
    operators = kernel = None
    if name == "mirror":
        one = topic_problems.mirror()
        operators = tuple(
            kind(one.p.n_values, witness="shared", average=True) for kind in (Difference, Barker)
        )
        problem = lambda trial: one  # noqa: E731
    elif name.startswith("asymmetric"):
        one, operators = topic_problems.asymmetric(topic_problems.MEDIAN)
        kernel = BagOfWords(IMQ(topic_problems.MEDIAN), topic_problems.TINY)
        swapped = one._replace(p=one.q, q=one.p)
        problem = lambda trial: one if name == "asymmetric" else swapped  # noqa: E731
    else:
        problem = (
            topic_problems.identical()
            if name == "identical"
            else topic_problems.prior_sparsity(0.5, 0.6)
        )
    trials = 500
    found = rejections(problem, trials, operators, kernel, swapped_keys=name == "identical")
    print(f"{name}: level {found / trials:.3f}")
    assert studies.above(found, trials) > 0.001


@pytest.mark.slow
@pytest.mark.skipif(
    not arxiv.ABSTRACTS.exists(), reason=f"the abstracts are not at {arxiv.ABSTRACTS}"
)
@pytest.mark.parametrize(("other", "n", "wanted"), [("math.PR", 50, 0.90), ("cs.LG", 100, 0.95)])
def test_arxiv_abstracts(other, n, wanted):
    """Models of the ``other`` category and of stat.ME against stat.TH, K = 100; every document is
    scored once.
    """
    documents, vocabulary = arxiv.corpus(other, "stat.ME", "stat.TH")
    p, q = (
        lksd.adapters.from_gensim(arxiv.topic_model(documents[name], vocabulary))
        for name in (other, "stat.ME")
    )
    x, operators, trials = (
        arxiv.of_length(documents["stat.TH"], 100, seed=0),
        lksd.discrete_operators(p, q),
        100,
    )
    p, q = (
        lksd.estimate_scores(model, x, operator=operators, exact=False, warmup=20, draws=50)
        for model in (p, q)
    )
    found = 0
    for trial in range(trials):
        chosen = np.random.default_rng(trial).choice(len(x), n, replace=False)
        scores = [tuple(part[chosen] for part in one.score) for one in (p, q)]
        kernel = BagOfWords.median(x[chosen], operators[0].n_values)
        found += lksd.compare_scores(
            x[chosen], *scores, kernel, operator=operators, seed=trial
        ).reject
    print(f"{other} against stat.ME: power {found / trials:.3f}")
    assert stats.binomtest(found, trials, wanted, alternative="less").pvalue > 0.001

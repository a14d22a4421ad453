"""Scores of discrete models by chains, against exact ones."""

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import oracles
import pytest
from scipy import sparse, stats

import lksd
from lksd.models import LDA, LatentVariableModel
from lksd.samplers import Gibbs, UniformStart
from lksd.stein import Barker, Difference
from lksd.stein import Gibbs as GibbsOperator


def model(concentration=1.0, count=3, size=30, spread=10.0):
    """Topics that are not so far apart that plain ratios have no useful variance."""
    return LDA(
        np.full(count, concentration),
        np.random.default_rng(0).dirichlet(np.full(size, spread), count),
    )


def documents(size=30, n=60, length=8, seed=1):
    return np.random.default_rng(seed).integers(0, size, (n, length))


def agree(estimate, exact):
    """The errors are as large as the standard errors say: none beyond six of them, and their mean
    square near one.
    """
    known = estimate.mcse > 1e-12
    z = (estimate.score - exact.score)[known] / estimate.mcse[known]
    assert np.abs(z).max() < 6
    assert 0.7 < np.mean(z**2) < 1.4
    # nothing left to average
    np.testing.assert_allclose(estimate.score[~known], exact.score[~known], rtol=1e-10, atol=1e-12)


OPERATORS = [
    Difference(30),
    Barker(30, order=np.random.default_rng(5).permutation(30)),
    GibbsOperator(30),
]


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_rao_blackwellised_scores_agree_with_the_dynamic_program(operator):
    p, x = model(), documents()
    exact = lksd.estimate_scores(p, x, operator=operator)
    assert exact.method == "exact marginal score"
    found = lksd.estimate_scores(p, x, operator=operator, exact=False, warmup=100, draws=2_000)
    assert "Rao-Blackwellised" in found.method
    agree(found, exact)


@pytest.mark.parametrize(
    "operator", [OPERATORS[0], pytest.param(OPERATORS[1], marks=pytest.mark.slow)], ids=str
)
def test_the_papers_estimators_agree_too(operator):
    p, x = model(), documents(n=30, length=4)
    exact = lksd.estimate_scores(p, x, operator=operator)
    found = lksd.estimate_scores(
        p, x, operator=operator, exact=False, control_variates="none", warmup=100, draws=2_000
    )
    assert "plain means" in found.method
    agree(found, exact)


@pytest.mark.slow
def test_barker_weights_of_the_modified_posterior_are_within_zero_and_one():
    found = lksd.estimate_scores(
        model(),
        documents(n=4),
        operator="barker",
        exact=False,
        control_variates="none",
        warmup=20,
        draws=20,
    )
    assert found.score.shape == (4, 8, 2)
    assert (found.score > 0).all()
    assert (found.score < 1).all()


@pytest.mark.slow
def test_the_plug_in_bias_of_barker_weights_is_taken_out():
    """Over many replications the mean error of the corrected weights is far below that of r / (1 +
    r).
    """
    p, x = model(concentration=0.5, spread=1.0), np.repeat(documents(n=1), 4_000, 0)
    operator = Barker(30)
    exact = lksd.estimate_scores(p, x[:1], operator=operator).score[0]
    options = {"exact": False, "warmup": 50, "draws": 40, "chains": 1}
    corrected = lksd.estimate_scores(p, x, operator=operator, **options).score
    up, down = (
        lksd.estimate_scores(p, x, operator=Difference(30, order=o), **options).score + 1
        for o in (None, np.arange(30)[::-1])
    )
    ratios = np.stack([up, down], -1)
    plain = ratios / (1 + ratios)
    bias = [np.sqrt(np.mean((kind.mean(0) - exact) ** 2)) for kind in (plain, corrected)]
    noise = np.sqrt(np.mean(corrected.var(0)) / len(x))
    assert bias[0] > 5 * noise  # the bias is there to be seen
    assert bias[1] < bias[0] / 3


@pytest.mark.slow
@pytest.mark.parametrize(("count", "factor"), [(3, 3), (100, 10)])
def test_rao_blackwell_reduces_the_error(count, factor):
    """The same chain: a third of the plain error at K = 3, a tenth at K = 100."""
    p = LDA(np.ones(count), np.random.default_rng(0).dirichlet(np.ones(2_000), count))
    with jax.enable_x64(True):
        x = np.asarray(
            jax.jit(jax.vmap(lambda key: p.sample(key, 50)[1]))(
                jax.random.split(jax.random.key(0), 16)
            )
        )
    operator = lksd.discrete_operators(p, names=("difference",))[0]
    options = {"operator": operator, "exact": False, "warmup": 80}
    truth = (
        lksd.estimate_scores(p, x, operator=operator, exact=True)
        if count == 3
        else lksd.estimate_scores(p, x, draws=400, seed=9, **options)
    ).score
    errors = [
        np.sqrt(
            np.mean(
                (
                    lksd.estimate_scores(p, x, draws=20, control_variates=kind, **options).score
                    - truth
                )
                ** 2
            )
        )
        for kind in ("none", "auto")
    ]
    assert errors[1] < errors[0] / factor


def test_digits_do_not_depend_on_batches_order_or_subsets():
    p, x = model(), documents(n=40)
    options = {"operator": "difference", "exact": False, "warmup": 10, "draws": 12}
    whole = lksd.estimate_scores(p, x, **options).score
    np.testing.assert_array_equal(lksd.estimate_scores(p, x, batch_size=16, **options).score, whole)
    order = np.random.default_rng(0).permutation(40)[:23]
    np.testing.assert_array_equal(
        lksd.estimate_scores(p, x[order], index=order, **options).score, whole[order]
    )


def test_every_form_of_documents_gives_the_same_scores():
    p, x = model(), np.sort(documents(), 1)
    options = {"operator": "difference", "exact": False, "warmup": 10, "draws": 12}
    expected = lksd.estimate_scores(p, x, **options).score
    counts = np.array([np.bincount(row, minlength=30) for row in x])
    for given, extra in [
        (x.tolist(), {}),
        (sparse.csr_array(counts), {}),
        (sparse.coo_matrix(counts), {}),
        (counts, {"counts": True}),
        (jnp.asarray(x), {}),
        (x.astype(np.uint8), {}),
    ]:
        np.testing.assert_array_equal(
            lksd.estimate_scores(p, given, **extra, **options).score, expected
        )


def test_documents_of_different_length():
    """A padded document has the scores it has alone, and zeros after its end."""
    p, x = model(), documents()
    lengths = np.arange(60) % 8 + 1
    ragged = [row[:length].tolist() for row, length in zip(x, lengths, strict=True)]
    both = ("difference", "barker")
    found = lksd.estimate_scores(p, ragged, operator=both)
    for row, length in list(enumerate(lengths))[2:8:5]:
        alone = lksd.estimate_scores(p, [ragged[row]], operator=both)
        for padded, own in zip(found.score, alone.score, strict=True):
            np.testing.assert_allclose(padded[row, :length], own[0], rtol=1e-10)
            assert not padded[row, length:].any()
    chains = lksd.estimate_scores(
        p, ragged, operator="difference", exact=False, warmup=50, draws=2_000
    )
    agree(chains, lksd.estimate_scores(p, ragged, operator="difference"))


@pytest.mark.slow
def test_words_that_some_topics_cannot_produce():
    topics = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5], [0.25, 0.25, 0.25, 0.25]])
    p, x = LDA(np.ones(3), topics), documents(4, n=40, length=4)
    exact = lksd.estimate_scores(p, x, operator="difference")

    def mass(document):
        return oracles.lda_mass(p.concentration, topics, document)

    expected = [
        [mass([*row[:d], v, *row[d + 1 :]]) / mass(row) - 1 for d, v in enumerate(moved)]
        for row, moved in zip(x.tolist(), exact.operator.targets(x)[..., 0].tolist(), strict=True)
    ]
    np.testing.assert_allclose(exact.score, expected, rtol=1e-10, atol=1e-14)
    agree(
        lksd.estimate_scores(p, x, operator="difference", exact=False, warmup=50, draws=3_000),
        exact,
    )


def test_save_and_load(tmp_path):
    p, x = model(), documents()
    found = lksd.estimate_scores(p, x, exact=False, warmup=5, draws=40)
    found.save(tmp_path / "scores.npz")
    again = lksd.load_scores(tmp_path / "scores.npz")
    for a, b in zip((*found.score, *found.mcse), (*again.score, *again.mcse), strict=True):
        np.testing.assert_array_equal(a, b)
    assert [str(one) for one in again.operators] == [str(one) for one in found.operators]
    np.testing.assert_array_equal(again.operators[0].order, found.operators[0].order)
    q = model(0.1)
    with_scores = ksd.compare(x, again, q)
    assert with_scores.kernel.startswith("BagOfWords")


def test_uniform_start():
    p, x = model(), documents()
    options = {"operator": "difference", "exact": False, "warmup": 100, "draws": 2_000}
    agree(
        lksd.estimate_scores(p, x, initial=UniformStart(), **options),
        lksd.estimate_scores(p, x, operator="difference"),
    )


# ------------------------------------------------------------- a model of the user's own


class Counts(LatentVariableModel):
    """Counts cut off at L - 1, with a log-normal rate that all coordinates share."""

    spread: float = 0.5
    dim: int = 3
    n_values: int = 6

    def log_prior(self, z):
        return -(z**2) / (2 * self.spread**2)

    def log_weights(self, z):
        k = jnp.arange(self.n_values)
        return jax.nn.log_softmax(k * (z + 0.5) - jax.scipy.special.gammaln(k + 1.0))

    def log_likelihood(self, x, z):
        return jnp.sum(self.log_weights(z)[x])

    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = self.spread * jax.random.normal(key_z)
        return z, jax.random.categorical(key_x, self.log_weights(z), shape=(self.dim,))


def exact_counts(p, x, operator):
    """By quadrature over the rate."""
    z = np.linspace(-6, 6, 4_001) * p.spread
    k = np.arange(p.n_values)
    logs = k * (z[:, None] + 0.5) - oracles.gammaln(k + 1)
    weights = np.exp(logs - np.log(np.exp(logs).sum(1, keepdims=True)))
    prior = np.exp(-(z**2) / (2 * p.spread**2))

    def mass(point):
        return np.sum(prior * np.prod(weights[:, point], 1))

    ratios = np.array(
        [
            [
                [mass([*row[:d], v, *row[d + 1 :]]) / mass(row) for v in values]
                for d, values in enumerate(table)
            ]
            for row, table in zip(x.tolist(), operator.targets(x), strict=True)
        ]
    )
    return operator.score_of(ratios, 0.0)


@pytest.mark.parametrize(
    ("operator", "control"),
    [(Difference(6), "auto"), pytest.param(Barker(6), "none", marks=pytest.mark.slow)],
    ids=str,
)
def test_a_users_own_model(operator, control):
    p, x = Counts(), documents(6, n=8, length=3)
    found = lksd.estimate_scores(p, x, operator=operator, draws=2_000, control_variates=control)
    z = (found.score - exact_counts(p, x, operator)) / found.mcse
    assert np.abs(z).max() < 6
    # One number is the latent of an observation, so its coordinates err together: eight squares at
    # least.
    assert 0.001 < stats.chi2.cdf(np.sum(np.mean(z.reshape(8, -1) ** 2, axis=1)), df=8) < 0.999


@pytest.mark.slow
def test_a_users_own_models_are_compared():
    result = ksd.compare(documents(6, length=3), Counts(), Counts(spread=1.0))
    assert result.kernel == "Hamming"
    assert len(result.tests) == 2


# ------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        ([[0, 1], [2, 30]], {}, r"expected values from 0 to 29; got 30 at index \(1, 1\)"),
        ([[0, 1], [2, -3]], {}, r"expected values of at least 0; got -3 at index \(1, 1\)"),
        (
            [[0, 1], [2, -1], [3]],
            {},
            r"document 1 \(counting from 0\) has the negative token id -1",
        ),
        ([[0, 1], []], {}, r"document 1 \(counting from 0\) is empty. Say drop_empty=True"),
        ([[0, 1.5], [2, 3]], {}, "expected integers for a discrete operator; got 1.5"),
        (
            [["stein", "kernel"], ["model"]],
            {},
            "the documents hold words, but no model has a vocabulary",
        ),
        (
            np.eye(30, dtype=int),
            {},
            "could hold token ids or word counts, and looks like counts. Say counts=True",
        ),
        (np.full((3, 30), 40), {}, "looks like counts"),
        (np.eye(30, dtype=int).tolist(), {}, "looks like counts"),
        (
            np.zeros((3, 900), int),
            {"exact": True},
            "documents of 900 words are too long for the dynamic program",
        ),
        (
            np.eye(30, 29, dtype=int),
            {"counts": True},
            "expected counts of 30 words, one column each; got 29",
        ),
        (sparse.csr_array(np.eye(29)), {}, "expected counts of 30 words, one column each; got 29"),
        (sparse.csr_array(np.eye(30)), {"counts": False}, "a sparse matrix is read as word counts"),
        (
            sparse.csr_array(0.5 * np.eye(30)),
            {},
            r"expected non-negative integer counts; document 0 \(counting from 0\) has others",
        ),
        (
            sparse.csr_array(np.eye(30)),
            {"operator": Difference(30)},
            "whose witnesses belong to positions; got word counts",
        ),
        (
            documents(),
            {"operator": Difference(31)},
            "operator: expected 30 values as in the model; got 31",
        ),
        (
            documents(),
            {"operator": "langevin"},
            "expected a discrete one for LDA, whose data are integers; got Langevin",
        ),
        (
            documents(),
            {"operator": "stein"},
            "operator: expected one of 'langevin', 'spherical', 'difference'",
        ),
        (documents(), {"operator": ()}, "operator: expected at least one"),
        (
            documents(),
            {"sampler": lksd.samplers.NUTS(), "exact": False},
            "NUTS needs a real latent; that of LDA is discrete",
        ),
        (
            documents(),
            {"initial": lksd.samplers.NormalStart(), "exact": False},
            "expected a latent of reals",
        ),
    ],
)
def test_bad_documents(x, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        lksd.estimate_scores(model(), x, **options)


def test_a_word_that_no_topic_can_produce_is_named():
    topics = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]])
    with pytest.raises(
        ValueError,
        match=r"word 2 in document 1 \(counting from 0\) has probability zero under LDA, .*\(1 "
        r"such documents\)",
    ):
        lksd.estimate_scores(LDA([1.0, 1.0], topics), [[0, 1], [1, 2]], operator="barker")
    with pytest.raises(ValueError, match=r"word 2 \('c'\) in document 0"):
        lksd.estimate_scores(
            LDA([1.0, 1.0], topics, ["a", "b", "c"]), [[2, 1], [1, 2]], operator="barker"
        )


def test_other_bad_requests():
    p, x = model(), documents()
    with pytest.raises(ValueError, match=r"UniformStart\(\) needs a discrete latent"):
        lksd.estimate_scores(Counts(), documents(6, length=3), initial=UniformStart())
    with pytest.raises(
        ValueError,
        match="observations of one length; these differ, and the model does not declare any_length",
    ):
        lksd.estimate_scores(Counts(), [[1, 2, 3], [1]])
    with pytest.raises(ValueError, match="counts: PPCA describes real numbers"):
        lksd.estimate_scores(lksd.models.PPCA(np.ones((3, 1)), 1.0), np.ones((5, 3)), counts=True)
    assert lksd.estimate_scores(
        p, x, sampler=Gibbs(), exact=False, draws=12, warmup=2
    ).rhat.shape == (60,)

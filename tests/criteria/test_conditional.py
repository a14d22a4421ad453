"""The conditional score against enumeration, dynamic programming, forward-backward and closed
forms.
"""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import power_problems
import pytest
from scipy import special, stats

import lksd

RNG = np.random.default_rng(5)


class Items(lksd.models.LatentVariableModel):
    """Independent answers, with a latent that changes nothing."""

    shares: np.ndarray
    n_values = 2

    def log_prior(self, z):
        return -(z**2) / 2

    def log_likelihood(self, x, z):
        return self.log_marginal(x)

    def log_marginal(self, x):
        return jnp.sum(jnp.log(jnp.where(x == 1, self.shares, 1 - self.shares)))

    def sample(self, key):
        return jnp.zeros(()), jax.random.bernoulli(key, self.shares).astype(int)


def conditional(probability, x, n_values):
    """-sum_d log p(x_d | x_-d) with all probabilities at hand."""
    total = 0.0
    for d in range(len(x)):
        others = [probability((*x[:d], v, *x[d + 1 :])) for v in range(n_values)]
        total -= np.log(probability(tuple(x)) / sum(others))
    return total


def lda_probability(concentration, topics):
    def probability(x):
        total = 0.0
        for z in product(range(len(concentration)), repeat=len(x)):
            counts = np.bincount(z, minlength=len(concentration))
            log_prior = (
                special.gammaln(concentration.sum())
                - special.gammaln(concentration.sum() + len(x))
                + np.sum(special.gammaln(concentration + counts) - special.gammaln(concentration))
            )
            total += np.exp(log_prior) * np.prod([topics[k, v] for k, v in zip(z, x, strict=True)])
        return total

    return probability


def test_topics_by_enumeration():
    rng = np.random.default_rng(920)
    concentration, topics = np.array([0.5, 0.8]), rng.dirichlet(np.ones(4), 2)
    model, x = lksd.models.LDA(concentration, topics), rng.integers(0, 4, (15, 3))
    probability = lda_probability(concentration, topics)
    wanted = [conditional(probability, row, 4) for row in x.tolist()]
    exact = lksd.estimate_scores(model, x, criteria="conditional")
    np.testing.assert_allclose(exact.losses[:, 0], wanted, rtol=1e-10)
    sampled = lksd.estimate_scores(model, x, criteria="conditional", exact=False, draws=2_000)
    z = (sampled.losses[:, 0] - wanted) / sampled.loss_errors[:, 0]
    assert 0.3 < np.mean(z**2) < 2.0


def test_topics_by_dynamic_programming():
    """K = 3 and 50 words: exact ratios against Gibbs sweeps, z^2 over documents and seeds."""
    rng = np.random.default_rng(264)
    topics = rng.dirichlet(np.full(60, 0.3), 3)
    model = lksd.models.LDA(np.full(3, 0.3), topics)
    shares = rng.dirichlet(np.full(3, 0.3), 40)
    x = np.stack([[rng.choice(60, p=one @ topics) for _ in range(50)] for one in shares])
    wanted = lksd.estimate_scores(model, x, criteria="conditional", exact=True).losses[:, 0]
    z = []
    for seed in range(3):
        found = lksd.estimate_scores(model, x, criteria="conditional", exact=False, seed=seed)
        z.append((found.losses[:, 0] - wanted) / found.loss_errors[:, 0])
    assert 0.6 < np.mean(np.square(z)) < 1.5
    assert abs(np.mean(z)) < 4 / np.sqrt(np.size(z))


def test_exact_topics_by_another_dynamic_programme():
    """K = 3 and 50 words: the probabilities of the document with every word in every place."""
    rng = np.random.default_rng(181)
    model = lksd.models.LDA([0.2, 0.3, 0.5], rng.dirichlet(np.full(12, 0.5), 3))
    x = rng.choice(12, (2, 50), p=rng.dirichlet(np.ones(3)) @ model.topics)
    wanted = []
    for words in x:
        replaced = np.tile(words, (50, 12, 1))
        replaced[np.arange(50), :, np.arange(50)] = np.arange(12)
        logs = power_problems.document_log_densities(model, replaced.reshape(-1, 50))
        own = power_problems.document_log_densities(model, words[None])
        wanted.append(np.sum(special.logsumexp(logs.reshape(50, 12), axis=1) - own))
    found = lksd.estimate_scores(model, x, criteria="conditional", exact=True)
    np.testing.assert_allclose(found.losses[:, 0], wanted, rtol=1e-9)


def test_documents_of_any_length():
    rng = np.random.default_rng(598)
    topics = rng.dirichlet(np.ones(11), 2)
    model = lksd.models.LDA([0.5, 0.5], topics)
    documents = [rng.integers(0, 11, length).tolist() for length in (3, 9, 4, 6, 5)]
    together = lksd.estimate_scores(model, documents, criteria="conditional").losses[:, 0]
    alone = [
        lksd.estimate_scores(model, [one], criteria="conditional").losses[0, 0] for one in documents
    ]
    np.testing.assert_allclose(together, alone, rtol=1e-10)


def test_a_hidden_chain_by_enumeration():
    rng = np.random.default_rng(938)
    initial, transition = np.array([0.5, 0.5]), np.array([[0.8, 0.2], [0.3, 0.7]])
    emission = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    model = lksd.models.HiddenMarkov(initial, transition, emission)

    def probability(x):
        forward = initial * emission[:, x[0]]
        for value in x[1:]:
            forward = forward @ transition * emission[:, value]
        return forward.sum()

    x = rng.integers(0, 3, (10, 5))
    wanted = [conditional(probability, row, 3) for row in x.tolist()]
    found = lksd.estimate_scores(model, x, criteria=["conditional", "log"])
    np.testing.assert_allclose(found.losses[:, 0], wanted, rtol=1e-10)
    logs = [-np.log(probability(row)) for row in x.tolist()]
    np.testing.assert_allclose(found.losses[:, 1], logs, rtol=1e-10)


@pytest.mark.parametrize("trials", [5, 60])
def test_the_beta_binomial(trials):
    """All values where they are few, both neighbours where they are many."""
    rng = np.random.default_rng(895)
    model = lksd.models.BetaBinomial(trials, 1.5, 2.5)
    x = rng.integers(0, trials + 1, (12, 3))

    def probability(x):
        chosen = np.prod([special.comb(trials, value) for value in x])
        total = sum(x)
        beta = special.beta(1.5 + total, 2.5 + trials * len(x) - total)
        return chosen * beta / special.beta(1.5, 2.5)

    def pairwise(x):
        total = 0.0
        for d in range(len(x)):
            for step in (1, -1):
                value = min(max(x[d] + step, 0), trials)  # itself, where there is no other
                other = (*x[:d], value, *x[d + 1 :])
                total += np.log1p(probability(other) / probability(tuple(x)))
        return total

    few = trials < 32
    wanted = [
        conditional(probability, row, trials + 1) if few else pairwise(row) for row in x.tolist()
    ]
    found = lksd.estimate_scores(model, x, criteria="conditional")
    np.testing.assert_allclose(found.losses[:, 0], wanted, rtol=1e-8)


def test_the_pairwise_form_is_proper():
    """By enumeration, the mean under r of log(1 + p(v) / p(x)) over the neighbours is smallest for
    p = r.
    """
    rng = np.random.default_rng(656)
    r = rng.dirichlet(np.ones(7))

    def mean(p):
        pairs = [(x, x + step) for x in range(7) for step in (1, -1) if 0 <= x + step < 7]
        return sum(r[x] * np.log1p(p[v] / p[x]) for x, v in pairs)

    others = [rng.dirichlet(np.ones(7)) for _ in range(200)]
    near = [0.95 * r + 0.05 * one for one in others]
    assert all(mean(one) > mean(r) for one in (*others, *near))


def test_the_pairwise_form_by_chains_also_at_the_ends():
    """Draws given the smallest value say nothing about the largest, so that the two must not be
    neighbours.
    """
    model, x = lksd.models.BetaBinomial(40, 2.5, 2.0), np.repeat(np.arange(41), 5)[:, None]
    wanted = lksd.estimate_scores(model, x, criteria="conditional", exact=True).losses[:, 0]
    found = lksd.estimate_scores(model, x, criteria="conditional", exact=False)
    z = (found.losses[:, 0] - wanted) / found.loss_errors[:, 0]
    assert 0.6 < np.mean(z**2) < 1.6
    assert np.abs(z).max() < 5


def test_an_edge_of_a_graph_given_the_others():
    rng = np.random.default_rng(428)
    model = lksd.models.StochasticBlockModel([0.5, 0.5], [[0.8, 0.2], [0.2, 0.6]], nodes=4)
    x = rng.integers(0, 2, (12, 6))
    exact = lksd.estimate_scores(model, x, criteria="conditional", exact=True)
    chains = lksd.estimate_scores(model, x, criteria="conditional", exact=False, draws=2_000)
    z = (chains.losses[:, 0] - exact.losses[:, 0]) / chains.loss_errors[:, 0]
    assert np.mean(z**2) < 2.5


def test_two_topic_models():
    """The conditional score sees at n = 50 what the kernel test does not."""
    rng = np.random.default_rng(951)
    topics, others = (rng.dirichlet(np.ones(500), 3) for _ in range(2))
    shares = rng.dirichlet(np.full(3, 0.1), 50)
    x = np.stack([[rng.choice(500, p=one @ topics) for _ in range(50)] for one in shares])
    p, q = (
        lksd.models.LDA(np.full(3, 0.1), (1 - share) * topics + share * others)
        for share in (0.16, 0.02)
    )
    result = lksd.compare(x, p, q, also=(), exact=False)
    assert (result.criterion, result.favours) == ("conditional", "Q")
    turned = lksd.compare(x, q, p, also=(), exact=False)
    assert (turned.pvalue, turned.difference) == (result.pvalue, -result.difference)


def test_the_bias_of_the_logarithm_is_corrected():
    """Few sweeps: the mean over many documents lies within its error."""
    rng = np.random.default_rng(546)
    topics = rng.dirichlet(np.full(30, 0.3), 3)
    model = lksd.models.LDA(np.full(3, 0.3), topics)
    shares = rng.dirichlet(np.full(3, 0.3), 300)
    x = np.stack([[rng.choice(30, p=one @ topics) for _ in range(20)] for one in shares])
    options = {"criteria": "conditional", "exact": False, "draws": 15, "chains": 2, "warmup": 40}
    wanted = lksd.estimate_scores(model, x, criteria="conditional", exact=True).losses[:, 0]
    off = lksd.estimate_scores(model, x, **options).losses[:, 0] - wanted
    plain = np.abs(off).mean()
    assert stats.ttest_1samp(off, 0).pvalue > 1e-3 or abs(off.mean()) < 0.2 * plain


def test_columns_of_items_by_name_add_up_to_the_difference(tmp_path):
    """Two items of a test that one model has wrong come first, also in the report."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    shares = np.array([0.5, 0.5, 0.5, 0.5])
    x = pandas.DataFrame(
        (rng.random((120, 4)) < [0.5, 0.9, 0.5, 0.2]).astype(int), columns=["a", "b", "c", "d"]
    )
    wrong, right = Items(shares), Items(np.array([0.5, 0.9, 0.5, 0.2]))
    result = lksd.compare(x, wrong, right, criterion="conditional", also=())
    assert [name for name, _ in result.words.top(2)] == ["b", "d"]
    assert result.words.contributions.sum() == pytest.approx(result.difference)
    assert result.words.kinds == ("observation", "column")
    (tmp_path / "result.json").write_text(result.to_json())
    assert lksd.load_result(tmp_path / "result.json").words.top() == result.words.top()
    result.to_html(tmp_path / "report.html")
    assert "The columns that add most" in (tmp_path / "report.html").read_text()

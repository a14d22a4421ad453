"""Graphs: the stochastic block model and the Gibbs-Stein operator against the enumeration of all
graphs of four nodes.
"""

import itertools

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import oracles
import pytest
from scipy import optimize, stats
from studies import above

import lksd
from lksd import kernels as k
from lksd.graphs import adjacency, edges
from lksd.models import StochasticBlockModel
from lksd.stein import Difference, Gibbs, stein_kernel

NODES = 4
GRAPHS = oracles.lattice(2, 6)  # all 64 graphs of four nodes
TWO = StochasticBlockModel([0.4, 0.6], [[0.7, 0.2], [0.2, 0.5]], NODES)


def three_blocks(within, across=0.15):
    return StochasticBlockModel([1 / 3] * 3, across + (within - across) * np.eye(3), NODES)


def degrees(matrix):
    return jnp.sort(matrix.sum(0))


def triangles_and_edges(a, b):
    """A graph kernel as a user writes it, on adjacency matrices."""
    return jnp.exp(
        -((jnp.trace(a @ a @ a) - jnp.trace(b @ b @ b)) ** 2) / 50 - (a.sum() - b.sum()) ** 2 / 20
    )


KERNELS = {
    "Hamming": k.Hamming(),
    "user's": k.Graphs(triangles_and_edges),
    "features": k.Graphs(k.IMQ(2.0), degrees),
}


def pmf(model):
    """p(x) of every graph: the sum over all blocks of all nodes, by loops."""
    found = dict.fromkeys(map(tuple, GRAPHS), 0.0)
    pairs = list(itertools.combinations(range(NODES), 2))
    for z in itertools.product(range(len(model.weights)), repeat=NODES):
        chances = [model.probabilities[z[i], z[j]] for i, j in pairs]
        prior = np.prod([model.weights[block] for block in z])
        for x in found:
            found[x] += prior * np.prod(
                [c if e else 1 - c for c, e in zip(chances, x, strict=True)]
            )
    return found


def test_the_probabilities_of_all_graphs():
    table = pmf(TWO)
    assert sum(table.values()) == pytest.approx(1)
    gibbs = lksd.estimate_scores(TWO, GRAPHS)
    assert gibbs.method == "exact marginal score"
    np.testing.assert_allclose(gibbs.score, oracles.gibbs_scores(table, GRAPHS, 2), rtol=1e-12)
    difference = lksd.estimate_scores(TWO, GRAPHS, operator=Difference(2))
    np.testing.assert_allclose(
        difference.score, oracles.difference_scores(table, GRAPHS, np.arange(2)), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("name", "witness"),
    [("user's", "shared"), ("features", "shared"), ("Hamming", "per-coordinate")],
)
def test_stein_identity_by_enumeration(name, witness):
    table = np.array(list(pmf(TWO).values()))
    scores = lksd.estimate_scores(TWO, GRAPHS, operator=Gibbs(2, witness)).score
    h = stein_kernel(Gibbs(2, witness), KERNELS[name], GRAPHS, scores)
    assert np.abs(table @ h).max() < 1e-13
    other = stein_kernel(
        Gibbs(2, witness),
        KERNELS[name],
        GRAPHS,
        lksd.estimate_scores(three_blocks(0.6), GRAPHS).score,
    )
    assert np.abs(table @ other).max() > 1e-4


def test_features_are_looked_up():
    """A kernel of features is the same as the function of matrices that computes them."""
    x, scores = GRAPHS[::7], lksd.estimate_scores(TWO, GRAPHS[::7]).score
    base = k.IMQ(np.eye(4) + 0.5)
    plain = k.Graphs(lambda a, b: base(degrees(a), degrees(b)))
    blocks = [
        stein_kernel(Gibbs(2, "shared"), kernel, x, scores)
        for kernel in (k.Graphs(base, degrees), plain)
    ]
    np.testing.assert_allclose(*blocks, atol=1e-13)


def posterior(x):
    every = np.array(list(itertools.product(range(2), repeat=NODES)))
    logs = [float(TWO.log_prior(z) + TWO.log_likelihood(x, z)) for z in every]
    weights = np.exp(logs - np.max(logs))
    return every, weights / weights.sum()


def test_sweeps_and_averages():
    """Both conditional ratios have the exact ratio as posterior mean; a sweep leaves the posterior
    as it is.
    """
    x = jnp.asarray(GRAPHS[37], jnp.int32)
    values = jnp.broadcast_to(jnp.arange(2), (6, 2))
    every, weights = posterior(x)
    exact = np.asarray(TWO.marginal_ratios(x, values))
    for ratios in (TWO.likelihood_ratios, TWO.averaged_ratios):
        mean = np.tensordot(
            weights,
            np.asarray(jax.vmap(lambda z, ratios=ratios: ratios(x, values, z))(jnp.asarray(every))),
            1,
        )
        np.testing.assert_allclose(mean, exact, rtol=1e-5)
    start = every[np.random.default_rng(0).choice(len(every), 4000, p=weights)]
    swept = jax.vmap(lambda key, z: TWO.gibbs(key, x, z))(
        jax.random.split(jax.random.key(0), len(start)), jnp.asarray(start)
    )
    counts = np.bincount(np.asarray(swept) @ 2 ** np.arange(NODES)[::-1], minlength=16)
    assert stats.chisquare(counts, weights * len(start)).pvalue > 0.001
    assert np.mean(np.asarray(swept) != start) > 0.1


@pytest.mark.slow
def test_chains_find_the_exact_scores():
    exact = lksd.estimate_scores(TWO, adjacency(GRAPHS), exact=True)
    sampled = lksd.estimate_scores(TWO, adjacency(GRAPHS), exact=False, draws=4000)
    assert sampled.method.endswith("Rao-Blackwellised")
    z = (sampled.score - exact.score)[..., 0] / sampled.mcse[..., 0]
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.4
    assert np.abs(z).max() < 6


def tie(kernel):
    """Data with edges of 0.4 everywhere, two blocks, and three blocks that are exactly as far from
    the data.
    """
    data = np.array(list(pmf(StochasticBlockModel([1.0], [[0.4]], NODES)).values()))

    def ksd(model):
        scores = lksd.estimate_scores(model, GRAPHS).score
        return data @ stein_kernel(Gibbs(2, "shared"), kernel, GRAPHS, scores) @ data, scores

    target, scores_two = ksd(StochasticBlockModel([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]], NODES))
    within = optimize.brentq(
        lambda value: ksd(three_blocks(value, 0.1))[0] - target, 0.5, 0.9, xtol=1e-10
    )
    return data, scores_two, ksd(three_blocks(within, 0.1))[1]


def rejections(data, scores_p, scores_q, n, trials, seed):
    rng, kernel = np.random.default_rng(seed), k.Hamming()
    found = []
    for i in range(trials):
        rows = rng.choice(len(GRAPHS), n, p=data)
        operator = Gibbs(2, "shared")
        found.append(
            lksd.compare_scores(
                GRAPHS[rows], scores_p[rows], scores_q[rows], kernel, operator=operator, seed=i
            ).reject
        )
    return sum(found)


def test_power_of_two_against_three_blocks():
    """Data from two blocks: three are rejected in favour of two, and never two in
    favour of three.
    """
    data = np.array(list(pmf(TWO).values()))
    scores = [lksd.estimate_scores(model, GRAPHS).score for model in (three_blocks(0.6), TWO)]
    assert rejections(data, *scores, 400, 10, 1) >= 9
    assert rejections(data, *scores[::-1], 400, 5, 1) == 0


@pytest.mark.slow
def test_level_of_two_against_three_blocks():
    data, scores_two, scores_three = tie(k.Hamming())
    for scores in ((scores_two, scores_three), (scores_three, scores_two)):
        rejected = rejections(data, *scores, 100, 1000, 2)
        assert above(rejected, 1000) > 0.001, rejected


@pytest.mark.slow
def test_compare_takes_adjacency_matrices():
    x = np.asarray(
        jax.vmap(lambda key: TWO.sample(key)[1])(jax.random.split(jax.random.key(2), 64))
    )
    results = [
        ksd.compare(data, three_blocks(0.6), TWO) for data in (x, adjacency(x).astype(float))
    ]
    assert len({one.statistic for one in results}) == 1
    assert results[0].operator == "Gibbs(2 values, shared witness, averaged)"
    assert results[0].words is None


def test_edges_and_adjacency_are_inverse():
    np.testing.assert_array_equal(edges(adjacency(GRAPHS)), GRAPHS)


def changed(index, value):
    matrices = adjacency(GRAPHS[:10]).astype(float)
    matrices[index] = value
    return matrices


CASES = {
    "not symmetric": (
        lambda: ksd.compare(changed((3, 0, 1), 1), TWO, TWO),
        r"symmetric matrices; graph 3 has 1 at \(0, 1\) and 0 at",
    ),
    "not binary": (
        lambda: ksd.compare(changed((2, 0, 1), 0.5), TWO, TWO),
        r"0 and 1 alone; graph 2 has 0.5 at \(0, 1\)",
    ),
    "weights": (
        lambda: ksd.compare(changed((2, 0, 1), 2), TWO, TWO),
        "Threshold the weights",
    ),
    "loops": (
        lambda: ksd.compare(changed((1, 2, 2), 1), TWO, TWO),
        r"zeros on the diagonal; graph 1 has 1 at \(2, 2\)",
    ),
    "NaN": (
        lambda: ksd.compare(changed((1, 2, 2), np.nan), TWO, TWO),
        "x: expected finite",
    ),
    "not square": (lambda: edges(np.zeros((5, 3, 4))), r"shape \(n, N, N\)"),
    "one graph": (lambda: edges(np.zeros((4, 4))), r"shape \(n, N, N\)"),
    "edges of 2": (
        lambda: ksd.compare(GRAPHS[:10] + 1, TWO, TWO),
        "x: expected values from 0 to 1; got 2",
    ),
    "another size": (
        lambda: ksd.compare(np.zeros((10, 5, 5)), TWO, TWO),
        "fails on observations of 10 columns",
    ),
    "no graph has 5 pairs": (lambda: adjacency(np.zeros((2, 5))), "expected N .* columns.*got 5"),
    "mask": (
        lambda: Gibbs(2).observations(adjacency(GRAPHS), mask=GRAPHS > 0),
        "mask: .*adjacency",
    ),
    "real kernel": (
        lambda: ksd.compare(GRAPHS, TWO, TWO, kernel=k.IMQ()),
        "kernel: expected one on discrete data",
    ),
    "kernel that fails": (
        lambda: ksd.compare(
            GRAPHS[:9], TWO, three_blocks(0.6), kernel=k.Graphs(lambda a, b: a @ b)
        ),
        "kernel: expected one",
    ),
    "probability 1": (lambda: StochasticBlockModel([1.0], [[1.0]], 4), "strictly between 0 and 1"),
    "directed": (
        lambda: StochasticBlockModel([0.5, 0.5], [[0.5, 0.2], [0.1, 0.5]], 4),
        "symmetric matrix",
    ),
    "shapes": (lambda: StochasticBlockModel([0.5, 0.5], [[0.5]], 4), "expected weights"),
    "nodes": (
        lambda: StochasticBlockModel([1.0], [[0.5]], 1),
        "nodes: expected an integer of at least 2",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case):
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        call()

"""EM of hidden Markov models against the sum over all paths."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from lksd.fitting import fit_states, markov
from lksd.fitting.markov import Categorical, Chains, Normal, padded, random_chains, step
from lksd.models import HiddenMarkov
from lksd.models.base import float64_leaves

RNG = np.random.default_rng(0)
RAGGED = [[0, 2, 1, 1], [2, 2], [1], [0, 0, 1]]
REALS = [[0.3, -1.0, 2.0, 0.5], [1.5, 1.0], [-0.7], [0.1, 0.2, 4.0]]
EMISSIONS = {
    "integers": lambda: Categorical(padded(RAGGED), 3),
    "reals": lambda: Normal(padded(REALS)),
}
TRUTH = HiddenMarkov(
    [0.6, 0.3, 0.1],
    0.85 * np.eye(3) + 0.05,
    0.94 * np.kron(np.eye(3), [[0.5, 0.5]]) + 0.01,
)


def simulated(model: HiddenMarkov, n: int, length: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    states = rng.choice(len(model.first), n, p=model.first)
    found = []
    for _ in range(length):
        if model.is_gaussian:
            found.append(rng.normal(model.emission[0][states, 0], 1.0))
        else:
            found.append([rng.choice(model.n_values, p=model.emission[k]) for k in states])
        states = np.array([rng.choice(len(model.first), p=model.transition[k]) for k in states])
    return np.array(found).T


def all_paths(chains: Chains, log_densities) -> tuple[float, np.ndarray, np.ndarray]:
    """log p(x), expected moves and P(state) at each step for one sequence, by all paths."""
    length, count = log_densities.shape
    first, transition = chains.first[0], chains.transition[0]
    every = np.array(list(itertools.product(range(count), repeat=length)))
    logs = np.log(first)[every[:, 0]] + np.log(transition)[every[:, :-1], every[:, 1:]].sum(1)
    logs = logs + log_densities[np.arange(length), every].sum(1)
    weights = np.exp(logs - logsumexp(logs))
    states = np.stack(
        [[weights[every[:, t] == k].sum() for k in range(count)] for t in range(length)]
    )
    moves = np.zeros((count, count))
    for path, weight in zip(every, weights, strict=True):
        for pair in itertools.pairwise(path):
            moves[pair] += weight
    return logsumexp(logs), moves, states


def log_densities(kind: str, parameters, sequence) -> np.ndarray:
    if kind == "integers":
        return np.log(parameters[0][:, sequence].T)
    means, variances = parameters
    return norm(means[0], np.sqrt(variances[0])).logpdf(np.array(sequence)[:, None])


@pytest.mark.parametrize("kind", EMISSIONS)
def test_one_step_by_all_paths(kind):
    emissions = EMISSIONS[kind]()
    chains = random_chains(emissions, 3, 1, np.random.default_rng(1))
    following, (height,) = step(emissions, chains)
    sequences = RAGGED if kind == "integers" else REALS
    each = [
        all_paths(chains, log_densities(kind, chains.emission, sequence)) for sequence in sequences
    ]
    penalties = np.log(chains.first).sum() / 3 + np.log(chains.transition).sum() / 3
    penalties += emissions.penalty(chains.emission)[0]
    assert height == pytest.approx(sum(one[0] for one in each) + penalties, rel=1e-12)
    first = sum(one[2][0] for one in each) + 1 / 3
    moves = sum(one[1] for one in each) + 1 / 3
    np.testing.assert_allclose(following.first[0], first / first.sum(), rtol=1e-10)
    np.testing.assert_allclose(
        following.transition[0], moves / moves.sum(1, keepdims=True), rtol=1e-10
    )
    states, values = np.concatenate([one[2] for one in each]), np.concatenate(sequences)
    if kind == "integers":
        counts = np.array([states[values == value].sum(0) for value in range(3)]).T + 1 / 3
        np.testing.assert_allclose(
            following.emission[0], counts / counts.sum(1, keepdims=True), rtol=1e-10
        )
    else:
        means = (states.T @ values + 0.01 * values.mean()) / (states.sum(0) + 0.01)
        np.testing.assert_allclose(following.emission[0][0], means, rtol=1e-10)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("kind", EMISSIONS)
def test_no_step_goes_down(kind, count):
    emissions = EMISSIONS[kind]()
    chains = random_chains(emissions, count, 8, np.random.default_rng(2))
    heights = []
    for _ in range(60):
        chains, height = step(emissions, chains)
        heights.append(height)
    assert (np.diff(heights, axis=0) > -1e-9).all()
    assert (heights[-1] > heights[0]).all()


@pytest.mark.parametrize("kind", EMISSIONS)
def test_starts_at_a_time_are_starts_one_by_one(kind):
    emissions = EMISSIONS[kind]()
    chains = random_chains(emissions, 3, 5, np.random.default_rng(2))
    for number, height in enumerate(step(emissions, chains)[1]):
        assert step(emissions, chains.only(number))[1][0] == pytest.approx(height, rel=1e-13)


def test_a_separated_chain_is_found():
    """Every number is within five of its standard errors, of which those of a chain whose states
    are seen are lower bounds.
    """
    x = simulated(TRUTH, 300, 30)
    found = fit_states(x, 3, seed=0)
    assert found.notes == ()
    model = found.model
    order = np.argmax(
        [model.emission[:, 2 * k] + model.emission[:, 2 * k + 1] for k in range(3)], 1
    )
    assert sorted(order) == [0, 1, 2]
    steps = 9000 / 3
    for name, total in (("emission", steps), ("transition", steps), ("first", 300)):
        wanted, ours = getattr(TRUTH, name), getattr(model, name)[order]
        ours = ours[:, order] if name == "transition" else ours
        errors = np.sqrt(wanted * (1 - wanted) / total) + 1 / total
        assert (np.abs(ours - wanted) < 5 * errors).all(), name


@pytest.mark.parametrize("count", [3, 5])
def test_nothing_known_is_better(count):
    """The penalised likelihood is above that of the truth, and of every short run."""
    emissions = Categorical(padded(simulated(TRUTH, 60, 20, seed=1)), None)
    chains, _ = markov.best_chains(emissions, count, np.random.default_rng(0))
    (reached,) = step(emissions, chains)[1]
    if count == 3:
        truth = Chains(TRUTH.first[None], TRUTH.transition[None], TRUTH.emission[None])
        assert reached > step(emissions, truth)[1][0]
    others = random_chains(emissions, count, 10, np.random.default_rng(5))
    for _ in range(20):
        others, heights = step(emissions, others)
    assert reached > heights.max()


def test_the_likelihood_is_the_models():
    """Of sequences of different lengths, with the penalty taken off."""
    emissions = EMISSIONS["integers"]()
    chains, _ = markov.best_chains(emissions, 2, np.random.default_rng(0))
    (height,) = step(emissions, chains)[1]
    table = chains.emission
    penalty = sum(
        np.log(part).sum() / part.shape[-1] for part in (chains.first, chains.transition, table)
    )
    model = HiddenMarkov(chains.first[0], chains.transition[0], table[0])
    x = np.where(np.isnan(padded(RAGGED)), -1, padded(RAGGED)).astype(np.int32)
    with jax.enable_x64(True):
        total = float(jax.vmap(float64_leaves(model).log_marginal)(jnp.asarray(x)).sum())
    assert total == pytest.approx(height - penalty, rel=1e-10)


def test_one_state_is_the_frequencies():
    x = RNG.integers(0, 3, (20, 5))
    model = fit_states(x, 1, 0, n_values=5).model
    counts = np.bincount(x.ravel(), minlength=5) + 1 / 5
    np.testing.assert_allclose(model.emission[0], counts / counts.sum(), rtol=1e-12)
    y = RNG.normal(2, 3, (50, 4))
    means, covariances = fit_states(y, 1, 0).model.emission
    assert means.item() == pytest.approx(y.mean(), rel=1e-9)
    assert covariances.item() == pytest.approx(y.var(), rel=1e-9)


def test_values_that_were_not_seen_are_possible():
    model = fit_states(simulated(TRUTH, 30, 20), 3, 0, n_values=9).model
    assert (model.emission > 0).all()
    x = jnp.array([8, 7, 6, 8])
    assert np.isfinite(model.log_marginal(x))


def test_real_sequences():
    """Three states with means ten standard deviations apart, in any units."""
    sticky = 0.9 * np.eye(3) + 0.1 / 3
    truth = HiddenMarkov(
        np.ones(3) / 3, sticky, (np.array([[0.0], [10], [20]]), np.ones((3, 1, 1)))
    )
    x = simulated(truth, 100, 20)
    means, variances = fit_states(x, 3, 0).model.emission
    assert (np.abs(np.sort(means.ravel()) - [0, 10, 20]) < 5 / np.sqrt(2000 / 3)).all()
    assert (np.abs(variances.ravel() - 1) < 5 * np.sqrt(2 / (2000 / 3)) + 0.05).all()
    scaled = fit_states(1e-6 * x, 3, 0).model.emission
    # starts that reach the same maximum differ in the order of the states
    ours, other = (np.argsort(one.ravel()) for one in (means, scaled[0]))
    np.testing.assert_allclose(scaled[0][other], 1e-6 * means[ours], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(scaled[1][other], 1e-12 * variances[ours], rtol=1e-6)


def test_what_the_numbers_are():
    whole = np.array([[0.0, 1, 2], [2, 1, 1]])
    assert not fit_states(whole, 1, 0).model.is_gaussian
    assert fit_states(whole, 1, 0, emission="gaussian").model.is_gaussian
    assert fit_states(whole - 3.0, 1, 0).model.is_gaussian
    signs = np.array([[1.0, -1], [0, -1]])
    assert fit_states(signs, 1, 0, emission="gaussian").model.emission[0].item() == pytest.approx(
        signs.mean()
    )
    rows = fit_states([[0, 1, 2], [2, 1]], 2, 0).model
    padding = fit_states(np.array([[0, 1, 2], [2, 1, -1]]), 2, 0).model
    np.testing.assert_array_equal(rows.emission, padding.emission)


def test_stopping_early_is_said(monkeypatch):
    monkeypatch.setattr(markov, "STEPS", 2)
    monkeypatch.setattr(markov, "SHORT", 1)
    assert fit_states(simulated(TRUTH, 20, 10), 3, 0).notes == (
        "EM stopped after 2 steps without converging",
    )


def test_starts_in_groups_where_data_are_many(monkeypatch):
    x = simulated(TRUTH, 20, 10)
    monkeypatch.setattr(markov, "AT_ONCE", 2 * 20 * 10 * 3)
    model = fit_states(x, 3, 0).model
    assert model.emission.shape == (3, 6)


BAD = {
    "no states": ((RAGGED, 0, 0), {}, "count: expected an integer of at least 1; got 0"),
    "many states": ((RAGGED, 11, 0), {}, "at most 10 states.*got 11"),
    "too few values": ((RAGGED, 2, 0), {"n_values": 2}, "train: expected values from 0 to 1"),
    "one value": ((RAGGED, 2, 0), {"n_values": 1}, "n_values: expected an integer of at least 2"),
    "values of reals": ((REALS, 2, 0), {"n_values": 2}, "n_values: expected with integers only"),
    "emission": ((RAGGED, 2, 0), {"emission": "poisson"}, "emission: expected one of"),
    "NaN": (([[0.5, np.nan]], 1, 0), {}, "train: expected finite numbers; got nan"),
    "NaN in a list": (([[0.5, np.nan], [1.0]], 1, 0), {}, r"sequence 0 \(counting from 0\).*nan"),
    "an empty sequence": (([[0, 1], []], 1, 0), {}, r"sequence 1 \(counting from 0\): expected"),
    "a gap": ((np.array([[0, -1, 1]]), 1, 0), {}, "expected -1 after the end.*sequence 0"),
    "nothing": ((np.zeros((0, 3)), 1, 0), {}, "train: expected at least 1 observations; got 0"),
    "a vector": ((np.arange(3), 1, 0), {}, r"sequences in rows, \(n, T\); got shape \(3,\)"),
    "fractions as values": (
        (REALS, 1, 0),
        {"emission": "categorical"},
        "train: expected integers",
    ),
    "a constant": ((np.full((3, 2), 0.5), 1, 0), {}, "train: expected numbers that vary"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    given, options, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        fit_states(*given, **options)

"""Hidden Markov models by EM (Baum and Welch), several starts at a time.

EM climbs the log likelihood plus a penalty: each law of states or values has one observation more,
spread evenly over all of them, and each Gaussian one more with the variance of all data over the
squared number of states. So nothing has probability zero, and no state shrinks to a point.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from .._documents import is_ragged, numbered
from .._validation import (
    check_choice,
    check_count,
    check_integers,
    check_moderate,
    check_range,
    check_size,
    to_numpy,
)
from ..models import HiddenMarkov
from .base import Fit, check_how_many, seed_of_package, steady

STARTS, SHORT = 10, 30  # random starts, and the steps after which the best of them goes on
STEPS = 1000
SETTLED = 1e-7  # the relative change of the penalised log likelihood in the last step
AT_ONCE = 2_000_000  # numbers of a table (starts x steps x sequences x states)
PULL = 0.01  # observations at the mean of all data, by which a state without any has a mean
EMISSIONS = ("categorical", "gaussian")


def fit_states(
    train: Any, count: int, seed: int, n_values: int | None = None, emission: str | None = None
) -> Fit:
    """A hidden Markov model by EM, the best of several starts.

    Parameters
    ----------
    train : (n, T) array or data frame, or a list of sequences of different lengths
        Integers 0, 1, ..., with -1 where a row has ended; or real numbers, one at each step.
    count : int
        How many states.
    seed : int
    n_values : int, optional
        How many values the integers may have; default: the largest of ``train`` and 1.
    emission : str, optional
        categorical or gaussian; default: categorical where all numbers are whole.
    """
    if emission is not None:
        check_choice("emission", emission, EMISSIONS)
    values = padded(train, ends=emission != "gaussian")
    emissions: Emissions
    if emission == "categorical" or (emission is None and is_whole(values)):
        emissions = Categorical(values, n_values)
    elif n_values is not None:
        raise ValueError(
            f"n_values: expected with integers only; got {n_values!r} for real numbers. Leave it "
            "out."
        )
    else:
        emissions = Normal(values)
    steps = int(emissions.there.sum())
    count = check_how_many(count, steps, "states", "as many as there are steps")
    rng = np.random.default_rng(seed_of_package(seed))
    with steady():
        chains, converged = best_chains(emissions, count, rng)
    model = HiddenMarkov(
        chains.first[0], chains.transition[0], emissions.parameters(chains.emission)
    )
    said = f"EM stopped after {STEPS} steps without converging"
    return Fit(model, () if converged else (said,))


# ------------------------------------------------------------- sequences


def padded(train: Any, ends: bool = True) -> np.ndarray:
    """Sequences as an (n, T) array of numbers, NaN where one has ended, which -1 says among whole
    numbers if ``ends``.
    """
    if not is_ragged(train):
        array = to_numpy("train", train).astype(np.float64, order="C")
        if array.ndim != 2 or array.shape[1] == 0:
            raise ValueError(
                f"train: expected sequences in rows, (n, T); got shape {array.shape}. Give a list "
                "of sequences, or an array with one in each row."
            )
        check_count("train", len(array), 1)
        check_moderate("train", array)
        return np.where((array == -1) & (ends and is_whole(array)), np.nan, array)
    found = np.full((len(train), max(map(len, train))), np.nan)
    for number, sequence in enumerate(train):
        row = to_numpy(f"train: {numbered(number, 'sequence')}", sequence)
        if row.ndim != 1 or not row.size:
            raise ValueError(
                f"train: {numbered(number, 'sequence')}: expected a list of numbers; got shape "
                f"{row.shape}. Mend it, or leave it out."
            )
        found[number, : len(row)] = check_moderate(
            f"train: {numbered(number, 'sequence')}", row.astype(np.float64)
        )
    return found


def is_whole(values: np.ndarray) -> bool:
    """Whether all numbers are whole and none is below -1, which stands for none."""
    return bool(((values == np.rint(values)) & (values >= -1) | np.isnan(values)).all())


def check_ends(there: np.ndarray) -> None:
    """Sequences have a first step, and none after their end."""
    gaps = ~there[:, 0] | (there[:, 1:] & ~there[:, :-1]).any(1)
    if gaps.any():
        number = int(gaps.argmax())
        raise ValueError(
            f"train: expected -1 after the end of a sequence only; {numbered(number, 'sequence')} "
            "begins with it, or goes on behind it. Mend it, or leave it out."
        )


# ------------------------------------------------------------- emissions of R models at a time


class Emissions:
    """What states produce: densities, what EM makes of the states' probabilities, and the
    penalty.
    """

    there: np.ndarray  # (T, n), whether a sequence has this step

    @abstractmethod
    def start(self, count: int, starts: int, rng: np.random.Generator) -> Any:
        """Random parameters of ``starts`` models."""

    @abstractmethod
    def densities(self, parameters: Any) -> tuple[np.ndarray, np.ndarray]:
        """(R, T, n, K) up to factors that states share, and the sum of the logs of these, (R,)."""

    @abstractmethod
    def updated(self, posterior: np.ndarray, old: Any) -> Any:
        """The parameters of greatest penalised likelihood, from P(state | sequence) at each
        step.
        """

    @abstractmethod
    def penalty(self, parameters: Any) -> np.ndarray:
        """(R,)"""

    @abstractmethod
    def parameters(self, parameters: Any) -> Any:
        """Those of the first model, as ``HiddenMarkov`` takes them."""


class Categorical(Emissions):
    """Tables (R, K, L) of the probabilities of L values."""

    def __init__(self, values: np.ndarray, n_values: int | None):
        tokens = check_integers("train", np.where(np.isnan(values), -1, values))
        self.size = max(int(tokens.max()) + 1, 2) if n_values is None else n_values
        check_range("train", tokens, check_size("n_values", self.size))
        check_ends(tokens >= 0)
        self.tokens, self.there = tokens.T, tokens.T >= 0
        places = np.flatnonzero(self.there)
        # (L, T n): in each row, where the value stands
        self.indicators = csr_array(
            (np.ones(places.size), (self.tokens.ravel()[places], places)),
            shape=(self.size, self.there.size),
        )

    def start(self, count, starts, rng):
        frequencies = (self.indicators.sum(1) + 1) / (self.there.sum() + self.size)
        return (rng.dirichlet(np.ones(self.size), (starts, count)) + frequencies) / 2

    def densities(self, table):
        found = np.swapaxes(table, 1, 2)[:, np.maximum(self.tokens, 0)]
        found[:, ~self.there] = 1.0
        return found, np.zeros(len(table))

    def updated(self, posterior, old):
        states = posterior.shape[-1]
        counts = [(self.indicators @ one.reshape(-1, states)).T for one in posterior]
        return normalised(np.array(counts))

    def penalty(self, table):
        return log_penalty(table)

    def parameters(self, table):
        return table[0]


class Normal(Emissions):
    """Means and variances (R, K) of one number at each step."""

    def __init__(self, values: np.ndarray):
        check_ends(~np.isnan(values))
        self.there = ~np.isnan(values).T
        numbers = values.T[self.there]
        self.mean, self.variance = float(numbers.mean()), float(numbers.var())
        if not self.variance > 1e-24 * self.mean**2:
            raise ValueError(
                "train: expected numbers that vary; got one value only. Check the data."
            )
        self.values = np.where(self.there, values.T, self.mean)
        self.numbers = numbers

    def start(self, count, starts, rng):
        means = rng.choice(self.numbers, (starts, count))
        return means, np.full((starts, count), self.variance)

    def densities(self, parameters):
        means, variances = (part[:, None, None] for part in parameters)
        logs = -((self.values[..., None] - means) ** 2 / variances + np.log(2 * np.pi * variances))
        largest = logs.max(-1, keepdims=True) / 2
        found = np.exp(logs / 2 - largest)
        found[:, ~self.there] = 1.0
        return found, largest[:, self.there].sum((1, 2))

    def updated(self, posterior, old):
        weights = posterior * self.there[..., None]
        total = weights.sum((1, 2))
        means = (np.einsum("rtnk,tn->rk", weights, self.values) + PULL * self.mean) / (total + PULL)
        away = (self.values[..., None] - means[:, None, None]) ** 2
        spread = np.einsum("rtnk,rtnk->rk", weights, away) + PULL * (means - self.mean) ** 2
        return means, (spread + self.usual(means)) / (total + 1)

    def usual(self, means):
        """The variance of the one observation more."""
        return self.variance / means.shape[1] ** 2

    def penalty(self, parameters):
        means, variances = parameters
        pulled = PULL * (means - self.mean) ** 2 / variances
        return -np.sum(pulled + np.log(variances) + self.usual(means) / variances, 1) / 2

    def parameters(self, parameters):
        means, variances = parameters
        return means[0][:, None], variances[0][:, None, None]


# ------------------------------------------------------------- EM


class Chains(NamedTuple):
    """R hidden Markov models at a time."""

    first: np.ndarray  # (R, K)
    transition: np.ndarray  # (R, K, K)
    emission: Any

    def only(self, number: int) -> Chains:
        """One of them."""
        parts = self.emission
        here = slice(number, number + 1)
        return Chains(
            self.first[here],
            self.transition[here],
            tuple(part[here] for part in parts) if isinstance(parts, tuple) else parts[here],
        )


def best_chains(emissions: Emissions, count: int, rng: np.random.Generator) -> tuple[Chains, bool]:
    """The best of short runs from all starts, run until it settles, and whether it has."""
    together = int(np.clip(AT_ONCE // (emissions.there.size * count), 1, STARTS))
    best, height = None, -np.inf
    for start in range(0, STARTS, together):
        chains = random_chains(emissions, count, min(together, STARTS - start), rng)
        for _ in range(SHORT):
            chains, _ = step(emissions, chains)
        heights = step(emissions, chains)[1]
        if heights.max() > height:
            best, height = chains.only(int(heights.argmax())), heights.max()
    assert best is not None
    height = -np.inf
    for _ in range(STEPS):
        following, (reached,) = step(emissions, best)
        if reached - height <= SETTLED * abs(reached):
            return best, True
        best, height = following, reached
    return best, False


def random_chains(
    emissions: Emissions, count: int, starts: int, rng: np.random.Generator
) -> Chains:
    staying = rng.uniform(0, 0.8, (starts, 1, 1))
    moving = rng.dirichlet(np.ones(count), (starts, count))
    return Chains(
        np.full((starts, count), 1 / count),
        staying * np.eye(count) + (1 - staying) * moving,
        emissions.start(count, starts, rng),
    )


def step(emissions: Emissions, chains: Chains) -> tuple[Chains, np.ndarray]:
    """One step of EM, and the penalised log likelihoods (R,) from which it starts."""
    densities, log_factors = emissions.densities(chains.emission)
    before, scales = forward(chains, densities)
    moves, posterior = backward(chains, densities, before, scales, emissions.there)
    height = log_factors + np.log(scales).sum((1, 2)) + emissions.penalty(chains.emission)
    height += log_penalty(chains.first[:, None]) + log_penalty(chains.transition)
    following = Chains(
        normalised(posterior[:, 0].sum(1)),
        normalised(moves),
        emissions.updated(posterior, chains.emission),
    )
    return following, height


def forward(chains: Chains, densities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(state | numbers so far), (R, T, n, K), and the probability of each number given those
    before, (R, T, n).
    """
    found, scales = np.empty_like(densities), np.empty(densities.shape[:-1])
    state = np.broadcast_to(chains.first[:, None], densities[:, 0].shape)
    for t in range(densities.shape[1]):
        joint = (state @ chains.transition if t else state) * densities[:, t]
        scales[:, t] = joint.sum(-1)
        state = found[:, t] = joint / scales[:, t, :, None]
    return found, scales


def backward(
    chains: Chains,
    densities: np.ndarray,
    before: np.ndarray,
    scales: np.ndarray,
    there: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Expected numbers of moves from state to state, (R, K, K), and P(state | sequence),
    (R, T, n, K).
    """
    starts, length, _, count = densities.shape
    later = np.ones_like(densities)
    ahead = densities / scales[..., None]
    turned = np.swapaxes(chains.transition, 1, 2)
    for t in range(length - 1, 0, -1):
        ahead[:, t] *= later[:, t]
        later[:, t - 1] = ahead[:, t] @ turned
    ahead[:, ~there] = 0.0
    sources = np.swapaxes(before[:, :-1].reshape(starts, -1, count), 1, 2)
    moves = chains.transition * (sources @ ahead[:, 1:].reshape(starts, -1, count))
    return moves, before * later


def normalised(counts: np.ndarray) -> np.ndarray:
    """Probabilities from counts along the last axis and one observation more, spread evenly."""
    raised = counts + 1 / counts.shape[-1]
    return raised / raised.sum(-1, keepdims=True)


def log_penalty(tables: np.ndarray) -> np.ndarray:
    """The log probability of one observation more for each row of R tables, spread evenly."""
    return np.log(tables).sum((1, 2)) / tables.shape[-1]

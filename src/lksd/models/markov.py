"""Hidden Markov models; the latent is the path of states."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._jax import as_float64
from .._validation import check_finite
from .base import ANY, LatentVariableModel, simulation
from .gaussian import LOG_2PI
from .mixture import GaussianMixture
from .topics import along, pick

STEPS = 100  # over which the probability of each value is averaged


def categorical(method) -> Any:
    """A method that only a model of integers has; with Gaussian emissions the attribute does not
    exist.
    """

    def bound(self):
        self.check_categorical(method.__name__)
        return jax.tree_util.Partial(method, self)

    return property(bound, doc=method.__doc__)


class HiddenMarkov(LatentVariableModel):
    """Sequences: the state z_1 ~ initial, z_t ~ transition[z_{t-1}], and x_t ~ emission[z_t] or
    N(means[z_t], covariances[z_t]).

    The latent is the state at every step, -1 where a padded sequence has none.

    Parameters
    ----------
    initial : (K,) array
        Kept as ``first``.
    transition : (K, K) array
        In row j, the probabilities of the states that follow state j.
    emission : (K, L) array, or a tuple of means (K, d) and covariances (K, d, d)
        The probabilities of L values in each state, or Gaussians. An observation is T integers, or
        the T d coordinates of T points, one point after the other; ``length`` counts these.

    Examples
    --------
    >>> import jax, numpy as np, lksd
    >>> sticky = 0.8 * np.eye(2) + 0.1
    >>> emission = [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]
    >>> model = lksd.models.HiddenMarkov([0.5, 0.5], sticky, emission)
    >>> z, x = model.sample(jax.random.key(0), length=50)
    >>> x.shape
    (50,)
    >>> normals = np.zeros((2, 3)), np.stack([np.eye(3), 4 * np.eye(3)])
    >>> model = lksd.models.HiddenMarkov([0.5, 0.5], sticky, normals)
    >>> z, x = model.sample(jax.random.key(0), length=150)
    >>> z.shape, x.shape
    ((50,), (150,))
    """

    first: np.ndarray
    transition: np.ndarray
    emission: Any
    # for Gaussian emissions: the inverse Cholesky factors, so that no chain calls LAPACK
    whitening: Any

    any_length: ClassVar[bool] = True
    complete: ClassVar[bool] = True
    sums_values: ClassVar[bool] = True
    support: ClassVar[Any] = "real"  # of Gaussian emissions

    def __init__(self, initial, transition, emission):
        self.first, self.transition = as_float64(initial), as_float64(transition)
        self.emission = (
            tuple(as_float64(part) for part in emission)
            if isinstance(emission, tuple)
            else as_float64(emission)
        )
        check_parameters(self.first, self.transition, self.emission)
        self.whitening = (
            np.linalg.inv(np.linalg.cholesky(self.emission[1])) if self.is_gaussian else None
        )

    @property
    def is_gaussian(self) -> bool:
        return isinstance(self.emission, tuple)

    def check_categorical(self, name: str) -> None:
        if self.is_gaussian:
            raise AttributeError(
                f"{name}: expected a model of integers; this one has Gaussian emissions. Give "
                "emission (K, L)."
            )

    @property
    def n_values(self) -> int:
        self.check_categorical("n_values")
        return self.emission.shape[-1]

    @property
    def n_latent_values(self) -> int:
        return self.first.shape[-1]

    @categorical
    def value_probabilities(self) -> np.ndarray:
        """The mean probability of each value over the first steps, which exists for every chain,
        also one without a limit.
        """
        first, transition = np.asarray(self.first), np.asarray(self.transition)
        states = [first]
        for _ in range(STEPS - 1):
            states.append(states[-1] @ transition)
        return np.mean(states, 0) @ np.asarray(self.emission)

    @categorical
    def impossible(self, x: np.ndarray) -> np.ndarray:
        """Where no state that can be reached can produce the value."""
        emission, transition = np.asarray(self.emission), np.asarray(self.transition)
        found, reached = (
            np.zeros(x.shape, bool),
            np.broadcast_to(np.asarray(self.first) > 0, (len(x), self.n_latent_values)),
        )
        for t in range(x.shape[1]):
            able = reached & (emission.T[x[:, t]] > 0)
            found[:, t] = (x[:, t] >= 0) & ~able.any(1)
            reached = np.where(found[:, [t]], reached, able) @ transition > 0
        return found

    # -------------------------------------------------- densities

    def at(self, x, values=None) -> Sequence:
        """The model of one sequence, with its emission densities looked up or computed."""
        first, transition = jnp.asarray(self.first), jnp.asarray(self.transition)
        if self.is_gaussian:
            return Sequence(
                first, transition, self.log_densities(x), jnp.ones(self.steps(x.shape[0]), bool)
            )
        table = jnp.asarray(self.emission).T
        moved = None
        if values is not None:
            found = table[jnp.maximum(values, 0)]
            moved = jnp.where((values == ANY)[..., None], 1.0, found)
        return Sequence(first, transition, jnp.log(table[jnp.maximum(x, 0)]), x >= 0, moved)

    def log_densities(self, x):
        """log N(x_t; means[k], covariances[k]) for every t and k."""
        means = self.emission[0]
        residuals = x.reshape(self.steps(x.shape[0]), 1, -1) - means
        whitened = jnp.einsum("kij,tkj->tki", self.whitening, residuals)
        log_scales = jnp.sum(jnp.log(jnp.diagonal(self.whitening, axis1=1, axis2=2)), 1)
        return log_scales - (jnp.sum(whitened**2, -1) + means.shape[1] * LOG_2PI) / 2

    def steps(self, length: int) -> int:
        """T of a sequence of ``length`` numbers."""
        dim = self.emission[0].shape[-1] if self.is_gaussian else 1
        if length % dim:
            raise ValueError(
                f"x: expected {dim} numbers for each step; got {length} in all. Flatten (T, {dim}) "
                "arrays by rows."
            )
        return length // dim

    def log_prior(self, z):
        return log_path(jnp.asarray(self.first), jnp.asarray(self.transition), z)

    def log_likelihood(self, x, z):
        return self.at(x).log_likelihood(x, z)

    def log_marginal(self, x):
        return self.at(x).log_marginal()

    @categorical
    def marginal_ratios(self, x, values):
        """p(x with x_d -> v) / p(x)."""
        return self.at(x, values).marginal_ratios()

    # -------------------------------------------------- draws

    def gibbs(self, key, x, z):
        return self.at(x).gibbs(key, x, z)

    def sample_posterior(self, key, x):
        return self.at(x).sample_posterior(key, x)

    def initial(self, key, x):
        """A draw from the prior."""
        there = True if self.is_gaussian else x >= 0
        return jnp.where(there, self.draw_path(key, self.steps(x.shape[0])), -1)

    def draw_path(self, key, count: int):
        transition = jnp.asarray(self.transition)

        def step(chances, uniform):
            state = pick(uniform, chances)
            return transition[state], state

        return jax.lax.scan(
            step, jnp.asarray(self.first), jax.random.uniform(key, (count,), float)
        )[1]

    @simulation
    def sample(self, key, length: int):
        """A sequence of ``length`` numbers, with its states."""
        key_z, key_x = jax.random.split(key)
        z = self.draw_path(key_z, self.steps(length))
        if not self.is_gaussian:
            return z, jax.vmap(pick)(
                jax.random.uniform(key_x, z.shape, float), jnp.asarray(self.emission)[z]
            )
        means, covariances = (jnp.asarray(part) for part in self.emission)
        noise = jax.random.normal(key_x, (len(z), means.shape[1]), float)
        return z, (
            means[z] + jnp.einsum("tij,tj->ti", jnp.linalg.cholesky(covariances)[z], noise)
        ).ravel()


class Sequence(LatentVariableModel):
    """The hidden Markov model at one sequence: log e_k(x_t) for its T steps, and e_k(v) for M
    replacements at each.
    """

    first: jax.Array  # (K,)
    transition: jax.Array  # (K, K)
    log_emissions: jax.Array  # (T, K)
    there: jax.Array  # (T,), whether the sequence has this step
    moved: Any = None  # (T, M, K)

    def log_prior(self, z):
        return log_path(self.first, self.transition, z)

    def log_likelihood(self, x, z):
        return jnp.sum(jnp.where(self.there, along(self.log_emissions, z), 0.0))

    def forward(self):
        """For every t: p(z_t | x_1 .. x_{t-1}), p(z_t | x_1 .. x_t) and log p(x_t | x_1 ..
        x_{t-1}).
        """

        def step(predicted, inputs):
            log_emission, there = inputs
            joint, log_scale = weighted(predicted, log_emission)
            filtered = joint / jnp.sum(joint)
            log_evidence = jnp.where(there, jnp.log(jnp.sum(joint)) + log_scale, 0.0)
            return filtered @ self.transition, (predicted, filtered, log_evidence)

        return jax.lax.scan(step, self.first, (self.log_emissions, self.there))[1]

    def backward(self):
        """p(x_{t+1} .. x_T | z_t = k) for every t, up to a factor."""

        def step(later, inputs):
            log_emission, there = inputs
            own = self.transition @ weighted(later, log_emission)[0]
            return jnp.where(there, own / jnp.sum(own), later), later

        return jax.lax.scan(
            step, jnp.ones_like(self.first), (self.log_emissions, self.there), reverse=True
        )[1]

    def log_marginal(self):
        return jnp.sum(self.forward()[2])

    def marginal_ratios(self):
        """sum_k w_k e_k(v) / sum_k w_k e_k(x_d) with w_k = p(z_d = k | x without x_d): no division
        by an e_k of zero.
        """
        return self.ratios(self.forward()[0] * self.backward())

    def averaged_ratios(self, x, values, z):
        """The same with w_k = p(z_d = k | z without z_d)."""
        return self.ratios(self.given_neighbours(z))

    def ratios(self, weights):
        return jnp.einsum("tk,tmk->tm", weights, self.moved) / jnp.sum(
            weights * jnp.exp(self.log_emissions), 1, keepdims=True
        )

    def likelihood_ratios(self, x, values, z):
        """p(x with x_d -> v | z) / p(x | z)."""
        return along(self.moved, z[:, None]) / jnp.exp(along(self.log_emissions, z))[:, None]

    def given_neighbours(self, z):
        """P(z_t = k | z_{t-1}) P(z_{t+1} | z_t = k) for every t and k."""
        from_before = jnp.concatenate([self.first[None], self.transition[jnp.maximum(z[:-1], 0)]])
        return from_before * self.leading_to(jnp.concatenate([z[1:], jnp.full(1, -1, z.dtype)]))

    def leading_to(self, following):
        """P(z_{t+1} = following | z_t = k) for every k, 1 where nothing follows."""
        return jnp.where(
            (following >= 0)[..., None], self.transition.T[jnp.maximum(following, 0)], 1.0
        )

    def gibbs(self, key, x, z):
        """One sweep: the states of every second step given the rest, which are independent, then
        the others.

        Sweeps reach every path where no transition has probability zero; exact draws need no such
        condition.
        """
        uniforms, odd = jax.random.uniform(key, z.shape, float), jnp.arange(z.shape[0]) % 2
        for turn in (0, 1):
            weights, _ = weighted(self.given_neighbours(z), self.log_emissions)
            z = jnp.where(self.there & (odd == turn), jax.vmap(pick)(uniforms, weights), z)
        return z

    def sample_posterior(self, key, x):
        """Forward filtering, backward sampling."""

        def step(following, inputs):
            filtered, uniform, there = inputs
            state = jnp.where(there, pick(uniform, filtered * self.leading_to(following)), -1)
            return state, state

        uniforms = jax.random.uniform(key, self.there.shape, float)
        return jax.lax.scan(
            step,
            jnp.asarray(-1, jnp.int32),
            (self.forward()[1], uniforms, self.there),
            reverse=True,
        )[1]

    def between(self, x, values, d, m):
        """The model whose posterior is proportional to p(z) (p(x | z) + p(x with x_d -> v | z)), v
        the m-th replacement.
        """
        both = jnp.logaddexp(self.log_emissions[d], jnp.log(self.moved[d, m]))
        return eqx.tree_at(lambda one: one.log_emissions, self, self.log_emissions.at[d].set(both))

    def share(self, x, values, d, m, z):
        """p(x with x_d -> v | z) as a part of the likelihood of ``between``."""
        return self.likelihood_ratios(x, values, z)[d, m]


def log_path(first, transition, z):
    """log p(z_1) + sum_t log p(z_t | z_{t-1})."""
    chances = jnp.concatenate([first[None], transition[jnp.maximum(z[:-1], 0)]])
    return jnp.sum(jnp.where(z >= 0, jnp.log(along(chances, z)), 0.0))


def weighted(prior, log_emissions):
    """prior_k e_k over the largest e_k of a state that can be, and the log of that: nothing that
    matters underflows.
    """
    possible = jnp.where(prior > 0, log_emissions, -jnp.inf)
    largest = jax.lax.stop_gradient(jnp.max(possible, -1))
    log_scale = jnp.where(jnp.isfinite(largest), largest, 0.0)
    return prior * jnp.exp(possible - log_scale[..., None]), log_scale


def check_parameters(first, transition, emission) -> None:
    parts, count = emission if isinstance(emission, tuple) else (emission,), first.size
    dim = parts[0].shape[-1] if parts[0].ndim else 0
    expected = (
        [(count, dim), (count, dim, dim)] if isinstance(emission, tuple) else [(count, max(dim, 2))]
    )
    shapes = [part.shape for part in parts]
    if (
        first.ndim != 1
        or transition.shape != (count, count)
        or shapes != expected
        or not count * dim
    ):
        raise ValueError(
            "HiddenMarkov: expected initial (K,), transition (K, K) and emission (K, L) with at "
            "least two values, or a tuple of means (K, d) and covariances (K, d, d); got "
            f"{first.shape}, {transition.shape} and {', '.join(map(str, shapes))}. Give one row "
            "for each state."
        )
    check_probabilities("initial", first[None])
    check_probabilities("transition", transition)
    if isinstance(emission, tuple):
        check_finite("means", emission[0])
        GaussianMixture(np.full(count, 1 / count), *emission)  # checks the covariances
    else:
        check_probabilities("emission", emission)


def check_probabilities(name: str, rows: np.ndarray) -> None:
    if (check_finite(name, rows) < 0).any():
        raise ValueError(
            f"{name}: expected probabilities; the smallest is {rows.min():g}. Check the numbers."
        )
    sums = rows.sum(1)
    if (off := np.abs(sums - 1)).max() > 1e-6:
        raise ValueError(
            f"{name}: expected probabilities that sum to 1; row {int(off.argmax())} sums to "
            f"{sums[off.argmax()]:.6g}. Normalise it."
        )

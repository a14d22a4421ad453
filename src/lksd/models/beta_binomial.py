"""Counts that share an unknown probability; the latent is that probability."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy import special

from .._jax import as_float64
from .base import LatentVariableModel, simulation
from .topics import pick

# doubles next to 0 and 1
SMALLEST, LARGEST = np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg


class BetaBinomial(LatentVariableModel):
    """Observations of any length: theta ~ Beta(alpha, beta), every x_d ~ Binomial(trials, theta).

    Parameters
    ----------
    trials : int
        x_d counts successes from 0 to ``trials``.
    alpha, beta : float

    Examples
    --------
    >>> import jax, lksd
    >>> model = lksd.models.BetaBinomial(trials=4, alpha=2.0, beta=3.0)
    >>> theta, x = model.sample(jax.random.key(0), length=10)
    >>> x.shape
    (10,)
    """

    trials: int = eqx.field(static=True)
    alpha: np.ndarray = eqx.field(converter=as_float64)
    beta: np.ndarray = eqx.field(converter=as_float64)

    exchangeable: ClassVar[bool] = True
    any_length: ClassVar[bool] = True
    complete: ClassVar[bool] = True

    def __check_init__(self):
        if (
            isinstance(self.trials, bool)
            or not isinstance(self.trials, (int, np.integer))
            or self.trials < 1
        ):
            raise ValueError(
                f"trials: expected an integer of at least 1; got {self.trials!r}. Give the largest "
                "possible count."
            )
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if value.shape != () or not 0 < value < np.inf:
                raise ValueError(
                    f"{name}: expected one positive number; got {value!s}. Give a float."
                )

    @property
    def n_values(self) -> int:
        return int(self.trials) + 1

    def value_probabilities(self) -> np.ndarray:
        """The beta-binomial probability of each count."""
        x, alpha, beta = np.arange(self.n_values), np.asarray(self.alpha), np.asarray(self.beta)
        return np.exp(
            self.log_choices
            + special.betaln(alpha + x, beta + self.trials - x)
            - special.betaln(alpha, beta)
        )

    @property
    def log_choices(self) -> np.ndarray:
        """The logs of the binomial coefficients, in which ``trials`` stands over 0, 1, ...,
        ``trials``.
        """
        x = np.arange(self.n_values)
        return -special.betaln(x + 1, self.trials - x + 1) - np.log(self.trials + 1)

    # -------------------------------------------------- densities

    def log_prior(self, z):
        return (
            (self.alpha - 1) * jnp.log(z)
            + (self.beta - 1) * jnp.log1p(-z)
            - log_beta(self.alpha, self.beta)
        )

    def log_likelihood(self, x, z):
        return jnp.sum(jnp.where(x >= 0, self.log_binomial(jnp.maximum(x, 0), z), 0.0))

    def log_binomial(self, x, theta):
        return self.log_choose(x) + x * jnp.log(theta) + (self.trials - x) * jnp.log1p(-theta)

    def log_choose(self, x):
        return jnp.asarray(self.log_choices)[x]

    def likelihood_ratios(self, x, values, z):
        """p(x with x_d -> v | theta) / p(x | theta)."""
        old, new = jnp.maximum(x, 0)[:, None], jnp.maximum(values, 0)
        return jnp.exp(
            self.log_choose(new) - self.log_choose(old) + (new - old) * self.unconstrain(z)
        )

    def constrain(self, u):
        return inside(jax.nn.sigmoid(u))

    def unconstrain(self, z):
        return jnp.log(z) - jnp.log1p(-z)

    def log_jacobian(self, u):
        return jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u)

    # -------------------------------------------------- exact

    def posterior(self, x):
        """alpha and beta of the law of theta given x."""
        there, successes = x >= 0, jnp.sum(jnp.maximum(x, 0))
        return self.alpha + successes, self.beta + self.trials * jnp.sum(there) - successes

    def log_marginal(self, x):
        chosen = jnp.sum(jnp.where(x >= 0, self.log_choose(jnp.maximum(x, 0)), 0.0))
        return chosen + log_beta(*self.posterior(x)) - log_beta(self.alpha, self.beta)

    def marginal_ratios(self, x, values):
        """p(x with x_d -> v) / p(x): v - x_d more successes."""
        alpha, beta = self.posterior(x)
        old, new = jnp.maximum(x, 0)[:, None], jnp.maximum(values, 0)
        changed = log_beta(alpha + new - old, beta - new + old) - log_beta(alpha, beta)
        return jnp.exp(self.log_choose(new) - self.log_choose(old) + changed)

    # -------------------------------------------------- draws

    def initial(self, key, x):
        """A draw from the prior."""
        return self.draw(key, self.alpha, self.beta)

    def draw(self, key, alpha, beta):
        return inside(jax.random.beta(key, alpha, beta, dtype=float))

    def sample_posterior(self, key, x):
        return self.draw(key, *self.posterior(x))

    @simulation
    def sample(self, key, length: int):
        """``length`` counts, with their probability."""
        key_z, key_x = jax.random.split(key)
        z = self.initial(key_z, None)
        chances = jnp.exp(self.log_binomial(jnp.arange(self.n_values), z))
        return z, jax.vmap(pick, (0, None))(jax.random.uniform(key_x, (length,), float), chances)


def inside(theta):
    """A probability that rounding has not made 0 or 1."""
    return jnp.clip(theta, SMALLEST, LARGEST)


def log_beta(a, b):
    """The log of the beta function; jax.scipy.special.betaln is right to six digits only."""
    return gammaln(a) + gammaln(b) - gammaln(a + b)

"""Stochastic block models of graphs; the latent is the block of every node."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._jax import as_float64
from .._validation import check_size
from .base import LatentVariableModel, simulation
from .mixture import check_weights
from .topics import pick

CHEAP = 300_000  # assignments of blocks times edges up to which all are enumerated unasked
LARGEST = 2**20  # assignments of nodes to blocks that are enumerated where that is demanded


class StochasticBlockModel(LatentVariableModel):
    """Graphs of N nodes: each node's block is drawn from ``weights``, and nodes of blocks a and b
    join with `probabilities[a, b]`.

    An observation is the 0s and 1s above the diagonal of an adjacency matrix
    (``lksd.graphs.edges``); the functions that take data also take the matrices themselves, (n, N,
    N).

    Parameters
    ----------
    weights : (K,) array
    probabilities : (K, K) array
        Symmetric, strictly between 0 and 1.
    nodes : int
        N.

    Examples
    --------
    >>> import jax, numpy as np, lksd
    >>> model = lksd.models.StochasticBlockModel([0.5, 0.5], [[0.6, 0.1], [0.1, 0.6]], nodes=10)
    >>> z, x = model.sample(jax.random.key(0))
    >>> z.shape, x.shape
    ((10,), (45,))
    """

    weights: np.ndarray = eqx.field(converter=as_float64)
    probabilities: np.ndarray = eqx.field(converter=as_float64)
    nodes: int = eqx.field(static=True)

    graphs: ClassVar[bool] = True
    n_values: ClassVar[int] = 2

    def __check_init__(self):
        count = self.weights.size
        if (
            self.weights.shape != (count,)
            or self.probabilities.shape != (count, count)
            or not count
        ):
            raise ValueError(
                "StochasticBlockModel: expected weights (K,) and probabilities (K, K); got "
                f"{self.weights.shape} and {self.probabilities.shape}. Give one row for each block."
            )
        check_size("nodes", self.nodes)
        check_weights(self.weights)
        if not ((self.probabilities > 0) & (self.probabilities < 1)).all():
            raise ValueError(
                "probabilities: expected numbers strictly between 0 and 1, so that no graph is "
                f"impossible; got {self.probabilities.min():g} to {self.probabilities.max():g}. "
                "Move them inside."
            )
        if not np.allclose(self.probabilities, self.probabilities.T):
            raise ValueError(
                "probabilities: expected a symmetric matrix, since edges have no direction. "
                "Average it with its transpose."
            )

    @property
    def n_latent_values(self) -> int:
        return self.weights.shape[-1]

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The two nodes of every place for an edge."""
        return np.triu_indices(self.nodes, 1)

    def log_prior(self, z):
        return jnp.sum(jnp.log(self.weights)[z])

    def log_likelihood(self, x, z):
        chances = self.edge_chances(z)
        return jnp.sum(jnp.where(x == 1, jnp.log(chances), jnp.log1p(-chances)))

    def edge_chances(self, z):
        """The probability of every edge."""
        first, second = self.pairs
        return jnp.asarray(self.probabilities)[z[first], z[second]]

    @simulation
    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.categorical(key_z, jnp.log(self.weights), shape=(self.nodes,))
        chances = self.edge_chances(z)
        return z, (jax.random.uniform(key_x, chances.shape, chances.dtype) < chances).astype(
            jnp.int32
        )

    def initial(self, key, x):
        """A draw from the prior."""
        return jax.random.categorical(key, jnp.log(self.weights), shape=(self.nodes,)).astype(
            jnp.int32
        )

    # -------------------------------------------------- given the blocks of the other nodes

    def votes(self, x, z):
        """log p(x_ij | z_i = a, z_j) for nodes i and j and every block a, 0 for j = i:
        (N, N, K).
        """
        matrix = jnp.zeros((self.nodes, self.nodes), bool).at[self.pairs].set(x == 1)
        matrix = matrix | matrix.T
        chances = jnp.asarray(self.probabilities)[z]  # (N, K), of j to each block
        found = jnp.where(matrix[..., None], jnp.log(chances), jnp.log1p(-chances))
        return jnp.where(jnp.eye(self.nodes, dtype=bool)[..., None], 0.0, found)

    def gibbs(self, key, x, z):
        """One sweep: each node's block given all others."""
        # (2, K, K)
        table = jnp.log(
            jnp.stack([1 - jnp.asarray(self.probabilities), jnp.asarray(self.probabilities)])
        )
        matrix = jnp.zeros((self.nodes, self.nodes), jnp.int32).at[self.pairs].set(x)
        matrix, numbers = matrix + matrix.T, jnp.arange(self.nodes)

        def visit(z, inputs):
            i, row, uniform = inputs
            votes = jnp.where((numbers == i)[:, None], 0.0, table[row, z])  # (N, K)
            logs = jnp.log(self.weights) + jnp.sum(votes, 0)
            return z.at[i].set(pick(uniform, jnp.exp(logs - jnp.max(logs))).astype(z.dtype)), None

        return jax.lax.scan(
            visit, z, (numbers, matrix, jax.random.uniform(key, (self.nodes,), float))
        )[0]

    def likelihood_ratios(self, x, values, z):
        """p(x with x_e -> v | z) / p(x | z)."""
        chances = self.edge_chances(z)[:, None]
        return jnp.where(values == 1, chances, 1 - chances) / jnp.where(
            x[:, None] == 1, chances, 1 - chances
        )

    def averaged_ratios(self, x, values, z):
        """The same with the blocks a, b of both nodes of the edge integrated out given the others':
        sum_ab q_ab p(v | a, b) / sum_ab q_ab p(x_e | a, b)."""
        votes = self.votes(x, z)
        logs = jnp.log(self.weights) + jnp.sum(votes, 1)  # (N, K)
        first, second = self.pairs
        of_first, of_second = (
            logs[first] - votes[first, second],
            logs[second] - votes[second, first],
        )
        joint = jax.nn.softmax(of_first)[:, :, None] * jax.nn.softmax(of_second)[:, None, :]
        chance = jnp.sum(joint * self.probabilities, (1, 2))[:, None]
        return jnp.where(values == 1, chance, 1 - chance) / jnp.where(
            x[:, None] == 1, chance, 1 - chance
        )

    # -------------------------------------------------- exact, for few nodes

    def exact_is_cheap(self, length: int) -> bool:
        return self.n_latent_values**self.nodes * length <= CHEAP

    def marginal_ratios(self, x, values):
        """p(x with x_e -> v) / p(x), by enumeration of all blocks."""
        if self.n_latent_values**self.nodes > LARGEST:
            raise ValueError(
                f"exact: {self.nodes} nodes in {self.n_latent_values} blocks can be assigned in "
                f"more than {LARGEST:,} ways. Leave exact=None to estimate the scores."
            )
        every = np.array(list(itertools.product(range(self.n_latent_values), repeat=self.nodes)))
        chances: Any = jax.vmap(self.edge_chances)(jnp.asarray(every))  # (K^N, E)
        own = jnp.where(x == 1, chances, 1 - chances)
        posterior = jax.nn.softmax(
            jnp.sum(jnp.log(self.weights)[every], 1) + jnp.sum(jnp.log(own), 1)
        )
        up, down = posterior @ (chances / own), posterior @ ((1 - chances) / own)
        return jnp.where(values == 1, up[:, None], down[:, None])

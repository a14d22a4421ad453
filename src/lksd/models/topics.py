"""Latent Dirichlet allocation with the topic proportions integrated out (Section 4.3)."""

from __future__ import annotations

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from .._jax import as_float64
from .._validation import check_finite
from .._vocabulary import Vocabulary, as_vocabulary
from .base import ANY, LatentVariableModel, simulation

FEW = 16  # weights that are summed one by one
LARGEST = 2**27  # coefficients of the dynamic program, 1 GB of them
# operations of the dynamic program for one document up to which it is used unasked
CHEAP = 5_000_000


class LDA(LatentVariableModel):
    """Documents of any length: theta ~ Dirichlet(concentration), each word's topic z ~ theta, the
    word ~ topics[z].

    The latent is the topic of every word, -1 where a padded document has none.

    Parameters
    ----------
    concentration : (K,) array
    topics : (K, L) array
        The word probabilities of each topic.
    vocabulary : sequence of L strings, optional
        The words, by which results name them.

    Examples
    --------
    >>> import jax, numpy as np, lksd
    >>> topics = np.random.default_rng(0).dirichlet(np.ones(20), size=3)
    >>> model = lksd.models.LDA(concentration=0.1 * np.ones(3), topics=topics)
    >>> z, x = model.sample(jax.random.key(0), length=50)
    >>> x.shape
    (50,)
    """

    concentration: np.ndarray = eqx.field(converter=as_float64)
    topics: np.ndarray = eqx.field(converter=as_float64)
    vocabulary: Vocabulary | None = eqx.field(default=None, static=True, converter=as_vocabulary)
    # words of the vocabulary that the model was not trained with
    unknown: np.ndarray = eqx.field(default=0, converter=np.asarray)

    exchangeable: ClassVar[bool] = True
    any_length: ClassVar[bool] = True
    complete: ClassVar[bool] = True
    sums_values: ClassVar[bool] = True

    def __check_init__(self):
        if (
            self.topics.ndim != 2
            or self.concentration.shape != self.topics.shape[:1]
            or self.topics.shape[1] < 2
        ):
            raise ValueError(
                "LDA: expected concentration (K,) and topics (K, L) with at least two words; got "
                f"{self.concentration.shape} and {self.topics.shape}. Give one row of word "
                "probabilities a topic."
            )
        check_finite("concentration", self.concentration)
        check_finite("topics", self.topics)
        if not (self.concentration > 0).all():
            raise ValueError(
                "concentration: expected positive numbers; the smallest is "
                f"{self.concentration.min():g}. Check it."
            )
        if (self.topics < 0).any():
            raise ValueError(
                f"topics: expected probabilities; the smallest is {self.topics.min():g}. Check the "
                "rows."
            )
        sums = self.topics.sum(1)
        if (off := np.abs(sums - 1)).max() > 1e-6:
            raise ValueError(
                f"topics: expected rows that sum to 1; row {int(off.argmax())} sums to "
                f"{sums[off.argmax()]:.6g}. Normalise it: topics / topics.sum(1, keepdims=True)."
            )
        if self.vocabulary is not None and len(self.vocabulary.words) != self.topics.shape[1]:
            raise ValueError(
                f"vocabulary: expected {self.topics.shape[1]} words, one a column of topics; got "
                f"{len(self.vocabulary.words)}. List them all."
            )

    @property
    def n_values(self) -> int:
        return self.topics.shape[-1]

    @property
    def n_latent_values(self) -> int:
        return self.topics.shape[-2]

    def value_probabilities(self) -> np.ndarray:
        """The mean probability of each word."""
        return np.asarray(self.concentration / self.concentration.sum()) @ np.asarray(self.topics)

    def impossible(self, x: np.ndarray) -> np.ndarray:
        """Where no topic can produce the word."""
        return (x >= 0) & (np.asarray(self.topics).max(0)[x] == 0)

    @property
    def note(self) -> str | None:
        if not self.unknown:
            return None
        unknown = f"{int(self.unknown):,} of {self.n_values:,} words"
        return f"{unknown} are unknown to the model and have a small probability in every topic."

    def over(self, vocabulary: Vocabulary, smoothing: float | None = None) -> LDA:
        """The model on a vocabulary that contains its own; a new word has a topic's smallest
        probability, or ``smoothing``.
        """
        if vocabulary == self.vocabulary or self.vocabulary is None:
            return self
        own = {word: number for number, word in enumerate(self.vocabulary.words)}
        columns = np.array([own.get(word, -1) for word in vocabulary.words])
        smallest = self.topics.min(1, keepdims=True) if smoothing is None else smoothing
        topics = np.where(columns >= 0, self.topics[:, columns], smallest)
        return LDA(
            self.concentration,
            topics / topics.sum(1, keepdims=True),
            vocabulary,
            np.sum(columns < 0) + self.unknown,
        )

    # -------------------------------------------------- densities

    def log_prior(self, z):
        return dirichlet_multinomial(self.concentration, z)

    def log_likelihood(self, x, z):
        return self.at(x, x[:, None]).log_likelihood(x, z)

    def gibbs(self, key, x, z):
        return self.at(x, x[:, None]).gibbs(key, x, z)

    def at(self, x, values) -> Document:
        """The model of one document, with all it needs looked up in the table of topics."""
        words = jnp.concatenate([x[:, None], values], 1)
        # (D, 1 + M, K)
        table = jnp.moveaxis(jnp.asarray(self.topics)[:, jnp.maximum(words, 0)], 0, -1)
        table = jnp.where((words == ANY)[..., None], 1.0, table)
        return Document(self.concentration, table[:, 0], table[:, 1:], x >= 0)

    def initial(self, key, x):
        """A draw from the prior."""
        return self.draw_topics(key, x.shape[0], x >= 0)

    def draw_topics(self, key, length: int, there=True):
        key_theta, key_z = jax.random.split(key)
        theta = jax.random.dirichlet(key_theta, jnp.asarray(self.concentration))
        return jnp.where(
            there, jax.vmap(pick, (0, None))(jax.random.uniform(key_z, (length,)), theta), -1
        )

    @simulation
    def sample(self, key, length: int):
        """A document of ``length`` words, with their topics."""
        key_z, key_x = jax.random.split(key)
        z = self.draw_topics(key_z, length)
        below = jnp.asarray(
            (np if isinstance(self.topics, np.ndarray) else jnp).cumsum(self.topics, 1)
        )
        wanted = jax.random.uniform(key_x, (length,)) * below[z, -1]

        def halve(_, ends):
            # the first word whose cumulative probability exceeds what is wanted lies in [low, high]
            low, high = ends
            middle = (low + high) // 2
            beyond = below[z, middle] > wanted
            return jnp.where(beyond, low, middle + 1), jnp.where(beyond, middle, high)

        ends = jnp.zeros(length, jnp.int32), jnp.full(length, self.n_values - 1, jnp.int32)
        return z, jax.lax.fori_loop(0, self.n_values.bit_length(), halve, ends)[1]

    # -------------------------------------------------- exact, for few topics

    def exact_cost(self, length: int) -> int:
        """The operations that the exact ratios of one document take: an integer, which no size
        makes overflow.
        """
        return (length + 1) ** (self.n_latent_values - 1) * length * self.n_latent_values

    def exact_is_cheap(self, length: int) -> bool:
        return self.exact_cost(length) <= CHEAP and self.in_range(length)

    def in_range(self, length: int) -> bool:
        """Whether the coefficients of the dynamic program stay above the smallest numbers."""
        return length * math.log(self.n_latent_values) < 600

    def marginal_ratios(self, x, values):
        """p(x with x_d -> v) / p(x): p is linear in the word probabilities at a position, so its
        slope there says it all.
        """
        if (x.shape[0] + 1) ** (self.n_latent_values - 1) > LARGEST:
            raise ValueError(
                f"exact: the dynamic program for {self.n_latent_values} topics and documents of "
                f"{x.shape[0]} words has more than {LARGEST:,} coefficients. Leave exact=None to "
                "estimate the scores."
            )
        if not self.in_range(x.shape[0]):
            raise ValueError(
                f"exact: documents of {x.shape[0]} words are too long for the dynamic program, "
                "whose numbers underflow. Leave exact=None to estimate the scores."
            )
        document = self.at(x, values)
        scale = jnp.maximum(document.emissions.sum(1), jnp.finfo(jnp.float64).tiny)
        slopes = (
            jax.grad(document.log_marginal)(document.emissions / scale[:, None]) / scale[:, None]
        )
        return jnp.einsum("dk,dmk->dm", slopes, document.moved)


class Document(LatentVariableModel):
    """LDA at one document: the probabilities b_k(x_d) of its D words and b_k(v) of M replacements
    of each.
    """

    concentration: np.ndarray | jax.Array  # (K,)
    emissions: jax.Array  # (D, K)
    moved: jax.Array  # (D, M, K)
    there: jax.Array  # (D,), whether the position has a word

    def log_prior(self, z):
        return dirichlet_multinomial(self.concentration, z)

    @property
    def n_latent_values(self) -> int:
        return self.concentration.shape[0]

    def log_likelihood(self, x, z):
        return jnp.sum(jnp.where(self.there, jnp.log(along(self.emissions, z)), 0.0))

    def gibbs(self, key, x, z):
        """One sweep of collapsed Gibbs: every word's topic from (count of the topic elsewhere +
        a_k) b_k(x_d).
        """
        bits = jax.random.bits(key, z.shape, jnp.uint32)
        uniforms = (bits.astype(self.emissions.dtype) + 0.5) * 2.0**-32
        topics = jnp.arange(self.n_latent_values)

        def visit(weights, inputs):
            old, emission, uniform, there = inputs
            weights = weights - (topics == old)  # counts + a
            new = jnp.where(there, pick(uniform, weights * emission), -1)
            return weights + (topics == new), new

        start = topic_counts(z, self.n_latent_values) + self.concentration
        return jax.lax.scan(visit, start, (z, self.emissions, uniforms, self.there))[1]

    def coupled_gibbs(self, key, x, z, other):
        """A sweep of two chains: at every word the topics are drawn from a maximal coupling of
        their two laws.
        """
        uniforms, topics = (
            jax.random.uniform(key, (*z.shape, 3), self.emissions.dtype),
            jnp.arange(self.n_latent_values),
        )

        def visit(weights, inputs):
            olds, emission, uniform, there = inputs
            weights = weights - (topics == olds[:, None])
            first, second = laws = (
                weights * emission / jnp.sum(weights * emission, 1, keepdims=True)
            )
            common = jnp.minimum(first, second)
            agree = uniform[0] < jnp.sum(common)
            apart = jax.vmap(pick)(uniform[1:], laws - common)
            new = jnp.where(there, jnp.where(agree, pick(uniform[1], common), apart), -1)
            return weights + (topics == new[:, None]), new

        both = jnp.stack([z, other])
        start = (
            jax.vmap(lambda one: topic_counts(one, self.n_latent_values))(both) + self.concentration
        )
        return tuple(
            jax.lax.scan(visit, start, (both.T, self.emissions, uniforms, self.there))[1].T
        )

    def likelihood_ratios(self, x, values, z):
        """p(x with x_d -> v | z) / p(x | z)."""
        return along(self.moved, z[:, None]) / along(self.emissions, z)[:, None]

    def averaged_ratios(self, x, values, z):
        """The same with the topic of word d integrated out given the others': sum_k pi_k b_k(v) /
        sum_k pi_k b_k(x_d).
        """
        own = z[:, None] == jnp.arange(self.n_latent_values)
        weights = topic_counts(z, self.n_latent_values) + self.concentration - own
        return jnp.einsum("dk,dmk->dm", weights, self.moved) / jnp.sum(
            weights * self.emissions, 1, keepdims=True
        )

    def between(self, x, values, d, m):
        """The model whose posterior is proportional to p(z) (p(x | z) + p(x with x_d -> v | z)), v
        the m-th replacement.
        """
        return eqx.tree_at(
            lambda one: one.emissions, self, self.emissions.at[d].add(self.moved[d, m])
        )

    def share(self, x, values, d, m, z):
        """p(x with x_d -> v | z) as a part of the likelihood of ``between``."""
        return along(self.moved, z[:, None])[d, m] / along(self.emissions, z)[d]

    def log_marginal(self, emissions):
        """log p of a document with these emissions: prod_d sum_k theta_k e_dk as a polynomial in
        theta, averaged over theta.

        A coefficient is indexed by the counts of topics 1 .. K-1; topic 0 has the rest.
        """
        length, count = emissions.shape
        shape = (length + 1,) * (count - 1)

        def times(polynomial, inputs):
            emission, there = inputs
            product = emission[0] * polynomial
            for k in range(1, count):
                product += emission[k] * shifted(polynomial, k - 1)
            return jnp.where(there, product, polynomial), None

        start = jnp.zeros(shape).at[(0,) * (count - 1)].set(1.0)
        coefficients = jax.lax.scan(times, start, (emissions, self.there))[0]
        powers = jnp.meshgrid(*[jnp.arange(length + 1.0)] * (count - 1), indexing="ij")
        first = self.there.sum() - sum(powers, jnp.zeros(shape))
        log_moments = sum(
            (
                gammaln(a + n) - gammaln(a)
                for a, n in zip(self.concentration[1:], powers, strict=True)
            ),
            gammaln(self.concentration[0] + jnp.maximum(first, 0.0))
            - gammaln(self.concentration[0]),
        )
        log_moments = jnp.where(first >= 0, log_moments, -jnp.inf)
        largest = jnp.max(log_moments)
        return jnp.log(jnp.sum(coefficients * jnp.exp(log_moments - largest))) + largest


def dirichlet_multinomial(concentration, z):
    """log p(z), theta integrated out."""
    total, counts = jnp.sum(concentration), topic_counts(z, concentration.shape[0])
    own = gammaln(concentration + counts) - gammaln(concentration)
    return gammaln(total) - gammaln(total + counts.sum()) + jnp.sum(own)


def topic_counts(z, count: int):
    return jnp.sum(z[:, None] == jnp.arange(count), 0, dtype=float)


def along(table, z):
    """table[..., z] along the last axis."""
    return jnp.take_along_axis(table, jnp.maximum(z, 0)[..., None], -1)[..., 0]


def pick(uniform, weights):
    """The index that a uniform number falls on, with probability proportional to its weight."""
    return locate(uniform * jnp.sum(weights), weights)


def locate(level, weights):
    """The first index at which the sum of the weights so far reaches a level: among rows of them
    first, if there are many.
    """
    count = weights.shape[0]
    if count <= FEW:
        index, below = jnp.zeros((), jnp.int32), weights[0]
        for k in range(1, count):
            index, below = index + (below < level), below + weights[k]
        return index
    width = math.isqrt(count - 1) + 1
    rows = -(-count // width)
    table = jnp.concatenate([weights, jnp.zeros(rows * width - count)]).reshape(rows, width)
    sums = jnp.sum(table, 1)
    row = locate(level, sums)
    rest = level - jnp.sum(jnp.where(jnp.arange(rows) < row, sums, 0.0))
    return jnp.minimum(row * width + locate(rest, table[row]), count - 1)


def shifted(array, axis: int):
    """The array moved by one along an axis, zero where nothing comes from."""
    return jnp.concatenate(
        [
            jnp.zeros_like(jax.lax.slice_in_dim(array, 0, 1, axis=axis)),
            jax.lax.slice_in_dim(array, 0, -1, axis=axis),
        ],
        axis,
    )

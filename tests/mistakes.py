"""Random models, right and with a mistake: what the check of a model by its own draws must tell
apart.

Every number is a parameter, so that models of one form share one compilation.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lksd.models import LatentVariableModel
from lksd.models.base import float64_leaves

CHANGE = 0.25  # of the mean squared score, by a mistake, at least
DRAWS, OBSERVATIONS, PROPOSALS, EFFECTIVE = 1_000, 60, 2_000, 30.0
DIMS = (1, 4, 20)


def normal(x, scale=1.0):
    return -jnp.sum((x / scale) ** 2) / 2


class Linear(LatentVariableModel):
    """Factor analysis with correlated factors; noise may be small."""

    weight: np.ndarray
    sd: np.ndarray
    mean: np.ndarray
    root: np.ndarray
    precision: np.ndarray
    marginal: np.ndarray

    def log_prior(self, z):
        return -z @ self.precision @ z / 2

    def log_likelihood(self, x, z):
        return normal(x - self.mean - self.weight @ z, self.sd)

    def density(self, x):
        return -(x - self.mean) @ self.marginal @ (x - self.mean) / 2

    def sample(self, key):
        keys = jax.random.split(key)
        z = self.root @ jax.random.normal(keys[0], self.root.shape[:1])
        return z, self.mean + self.weight @ z + self.sd * jax.random.normal(
            keys[1], self.mean.shape
        )


NOISE = {
    "normal": (lambda e: -(e**2) / 2, jax.random.normal),
    "laplace": (lambda e: -jnp.abs(e), jax.random.laplace),
    "logistic": (lambda e: -e - 2 * jax.nn.softplus(-e), jax.random.logistic),
    "cauchy": (lambda e: -jnp.log1p(e**2), jax.random.cauchy),
}


class Curved(LatentVariableModel):
    """A function of z that is not linear, with noise of some kind."""

    inner: np.ndarray
    outer: np.ndarray
    sd: float
    noise: str = "normal"

    def mean(self, z):
        return self.outer @ jnp.tanh(self.inner @ z)

    def log_prior(self, z):
        return normal(z)

    def log_likelihood(self, x, z):
        return jnp.sum(NOISE[self.noise][0]((x - self.mean(z)) / self.sd))

    def sample(self, key):
        keys = jax.random.split(key)
        z = jax.random.normal(keys[0], self.inner.shape[1:])
        return z, self.mean(z) + self.sd * NOISE[self.noise][1](keys[1], self.outer.shape[:1])


class Student(LatentVariableModel):
    """A scale mixture with few degrees of freedom, its precision positive by exp or softplus."""

    freedom: float
    scale: np.ndarray
    mean: np.ndarray
    soft: bool = False

    def log_prior(self, z):
        return (self.freedom / 2 - 1) * jnp.log(z) - self.freedom / 2 * z

    def log_likelihood(self, x, z):
        return x.size / 2 * jnp.log(z) + z * normal(x - self.mean, self.scale)

    def density(self, x):
        squares = jnp.sum(((x - self.mean) / self.scale) ** 2)
        return -(self.freedom + x.size) / 2 * jnp.log1p(squares / self.freedom)

    def constrain(self, u):
        return jax.nn.softplus(u) if self.soft else jnp.exp(u)

    def unconstrain(self, z):
        return z + jnp.log(-jnp.expm1(-z)) if self.soft else jnp.log(z)

    def sample(self, key):
        keys = jax.random.split(key)
        z = jax.random.gamma(keys[0], self.freedom / 2) / (self.freedom / 2)
        return z, self.mean + self.scale * jax.random.normal(keys[1], self.mean.shape) / jnp.sqrt(z)


class Volatile(LatentVariableModel):
    """x = exp(z/2) e with Student noise, one z for all or one for each coordinate."""

    wide: float
    freedom: float
    dim: int
    size: int

    def log_prior(self, z):
        return normal(z, self.wide)

    def log_likelihood(self, x, z):
        tail = jnp.sum(jnp.log1p((x * jnp.exp(-z / 2)) ** 2 / self.freedom))
        return -(self.freedom + 1) / 2 * tail - jnp.sum(jnp.broadcast_to(z, (self.dim,))) / 2

    def sample(self, key):
        keys = jax.random.split(key)
        z = self.wide * jax.random.normal(keys[0], (self.size,))
        return z, jnp.exp(z / 2) * jax.random.t(keys[1], self.freedom, (self.dim,))


class Latent(LatentVariableModel):
    """An integer latent with exact posterior draws."""

    weights: eqx.AbstractVar[np.ndarray]

    def log_prior(self, z):
        return jnp.log(self.weights)[z]

    def log_likelihood(self, x, z):
        return (self.every(x) - jnp.log(self.weights))[z]

    def density(self, x):
        return jax.nn.logsumexp(self.every(x))

    def sample_posterior(self, key, x):
        return jax.random.categorical(key, self.every(x))


class Components(Latent):
    """A mixture of normal laws."""

    weights: np.ndarray
    means: np.ndarray
    scales: np.ndarray

    def every(self, x):
        squares = jnp.sum(((x - self.means) / self.scales) ** 2, 1)
        return jnp.log(self.weights) - squares / 2 - jnp.sum(jnp.log(self.scales), 1)

    def sample(self, key):
        keys = jax.random.split(key)
        z = jax.random.categorical(keys[0], jnp.log(self.weights))
        return z, self.means[z] + self.scales[z] * jax.random.normal(keys[1], self.means.shape[1:])


class Rates(LatentVariableModel):
    """Normal observations around a gamma latent."""

    shape_of_z: float
    weight: np.ndarray
    sd: float

    def log_prior(self, z):
        return (self.shape_of_z - 1) * jnp.log(z) - z

    def log_likelihood(self, x, z):
        return normal(x - self.weight * z, self.sd)

    def constrain(self, u):
        return jnp.exp(u)

    def unconstrain(self, z):
        return jnp.log(z)

    def sample(self, key):
        keys = jax.random.split(key)
        z = jax.random.gamma(keys[0], self.shape_of_z)
        return z, self.weight * z + self.sd * jax.random.normal(keys[1], self.weight.shape)


class Counts(LatentVariableModel):
    """Counts of at most ``trials``, by a logistic map of a normal latent."""

    weight: np.ndarray
    offset: np.ndarray
    trials: int

    @property
    def n_values(self):
        return self.trials + 1

    def log_prior(self, z):
        return normal(z)

    def log_likelihood(self, x, z):
        logits, x = self.weight @ z + self.offset, x.astype(jnp.float64)
        chosen = -jax.lax.lgamma(x + 1) - jax.lax.lgamma(self.trials - x + 1)
        return jnp.sum(chosen + x * logits - self.trials * jax.nn.softplus(logits))

    def sample(self, key):
        keys = jax.random.split(key)
        z = jax.random.normal(keys[0], self.weight.shape[1:])
        rolls = jax.random.uniform(keys[1], (self.trials, *self.offset.shape))
        return z, jnp.sum(rolls < jax.nn.sigmoid(self.weight @ z + self.offset), 0)


class Classes(Latent):
    """Answers by the class of the respondent."""

    weights: np.ndarray
    table: np.ndarray  # (classes, questions, answers)

    @property
    def n_values(self):
        return self.table.shape[2]

    def every(self, x):
        return jnp.log(self.weights) + jnp.sum(jnp.log(self.table[:, jnp.arange(x.size), x]), 1)

    def sample(self, key):
        keys = jax.random.split(key)
        z = jax.random.categorical(keys[0], jnp.log(self.weights))
        return z, jax.random.categorical(keys[1], jnp.log(self.table[z]))


def linear(rng, dim):
    size = 1 if rng.random() < 0.5 else 3
    weight = rng.normal(size=(dim, size)) * np.exp(rng.normal(0, 0.5))
    sd = np.exp(rng.normal(np.log(rng.choice([0.03, 0.3, 1.0])), 0.3, dim))
    shared = rng.choice([0.0, 0.9])
    prior = shared * np.ones((size, size)) + (1 - shared) * np.eye(size)
    marginal = np.linalg.inv(weight @ prior @ weight.T + np.diag(sd**2))
    return Linear(
        weight, sd, rng.normal(size=dim), np.linalg.cholesky(prior), np.linalg.inv(prior), marginal
    )


def curved(rng, dim):
    sd = float(np.exp(rng.normal(np.log(rng.choice([0.05, 0.5, 1.0])), 0.3)))
    return Curved(
        rng.normal(size=(4, 2)), rng.normal(size=(dim, 4)), sd, str(rng.choice(list(NOISE)))
    )


def student(rng, dim):
    freedom = float(rng.choice([1.0, 1.5, 2.0, 3.0, 8.0]))
    return Student(
        freedom, np.exp(rng.normal(0, 1, dim)), rng.normal(size=dim), bool(rng.random() < 0.3)
    )


def volatile(rng, dim):
    return Volatile(
        float(rng.uniform(0.5, 2.0)),
        float(rng.choice([2.0, 3.0, 50.0])),
        dim,
        int(rng.choice([1, dim])),
    )


def components(rng, dim):
    scales = np.exp(rng.normal(-0.5, 0.5, (3, dim)))
    return Components(rng.dirichlet(np.ones(3)), 2 * rng.normal(size=(3, dim)), scales)


def rates(rng, dim):
    return Rates(
        float(rng.uniform(0.5, 4.0)), rng.normal(size=dim), float(np.exp(rng.normal(-1, 0.5)))
    )


def counts(rng, dim):
    return Counts(rng.normal(size=(dim, 2)), rng.normal(size=dim), int(rng.choice([1, 6])))


def classes(rng, dim):
    return Classes(rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4), (3, dim)))


FAMILIES = (linear, curved, student, volatile, components, rates, counts, classes)


class Written(LatentVariableModel):
    """A model as somebody wrote it down: with slips, or with none."""

    model: LatentVariableModel
    slips: dict[str, np.ndarray]
    exact: bool  # whether the marginal density is known

    def log_prior(self, z):
        return self.slips["prior"] * self.model.log_prior(z)

    def log_likelihood(self, x, z):
        own = self.slips["power"] * self.model.log_likelihood(x, z)
        return own + self.added(x) + self.slips["joint"] * self.model.log_prior(z)

    def added(self, x):
        """Terms in x alone."""
        if hasattr(self.model, "n_values"):
            terms = jnp.stack([x, jax.lax.lgamma(x + 1.0), 1.0 * (x == 0)])
        else:
            w = x / self.slips["spread"]
            terms = jnp.stack([w**2 / 2, w, jnp.sin(2 * w), jnp.log(jnp.cosh(w))])
        return jnp.sum(self.slips["terms"][: len(terms)] * terms)

    def constrain(self, u):
        return self.model.constrain(u)

    def unconstrain(self, z):
        return self.model.unconstrain(z)

    def log_jacobian(self, u):
        return self.slips["jacobian"] * self.model.log_jacobian(u)

    def sample(self, key):
        z, x = self.model.sample(key)
        keys = jax.random.split(jax.random.fold_in(key, 9))
        if hasattr(self.model, "n_values"):
            moved = jax.random.uniform(keys[0], x.shape) < self.slips["share"]
            return z, jnp.where(
                moved, x + jax.random.randint(keys[1], x.shape, 0, self.n_values), x
            ) % self.n_values
        spread = self.slips["spread"]
        mixed = x + spread * (self.slips["mixture"] @ (x / spread))
        return z, self.slips["factor"] * mixed + spread * (
            self.slips["shift"] + self.slips["noise"] * jax.random.normal(keys[0], x.shape)
        )

    @property
    def n_values(self):
        return self.model.n_values

    @property
    def sample_posterior(self):
        return self.model.sample_posterior

    @property
    def log_marginal(self):
        return (
            (lambda x: self.slips["power"] * self.model.density(x) + self.added(x))
            if self.exact
            else None
        )


def right_model(rng, families=FAMILIES, dims=DIMS) -> tuple[str, Written]:
    """A random model without a slip."""
    dim, family = int(rng.choice(dims)), families[rng.integers(len(families))]
    model = family(rng, dim)
    ones = dict.fromkeys(("prior", "power", "jacobian"), 1.0)
    zeros = {
        "joint": 0.0,
        "share": 0.0,
        "terms": np.zeros((4, dim)),
        "mixture": np.zeros((dim, dim)),
    }
    zeros |= {"shift": np.zeros(dim), "noise": np.zeros(dim)}
    exact = hasattr(model, "density") and rng.random() < 0.5
    made = Written(model, ones | zeros | {"factor": np.ones(dim), "spread": np.ones(dim)}, exact)
    low, high = np.quantile(simulated(made, DRAWS)[1], [0.25, 0.75], 0)
    made = with_slips(made, spread=np.maximum((high - low) / 1.349, 1e-3))
    return f"{family.__name__} of {dim}{', exact' if exact else ''}", made


def with_slips(made: Written, **slips) -> Written:
    return Written(
        made.model,
        made.slips | {name: np.asarray(value, float) for name, value in slips.items()},
        made.exact,
    )


def some(rng, dim):
    """Which coordinates are concerned: some, or all."""
    chosen = rng.random(dim) < rng.choice([0.3, 1.0])
    chosen[rng.integers(dim)] = True
    return chosen


def missing_term(rng, made, dim):
    """A term in x alone is missing, or one too many is there."""
    terms, size = (
        np.zeros((4, dim)),
        rng.choice([-1, 1]) * np.exp(rng.uniform(np.log(0.3), np.log(5))),
    )
    kinds = 3 if hasattr(made.model, "n_values") else 4
    terms[rng.integers(kinds)] = some(rng, dim) * size
    return with_slips(made, terms=terms)


def wrong_sign(rng, made, dim):
    return with_slips(made, power=-1.0)


def wrong_power(rng, made, dim):
    """A variance taken for a standard deviation, or a half forgotten."""
    return with_slips(made, power=rng.choice([0.4, 0.5, 2.0, 3.0]))


def wrong_scale(rng, made, dim):
    return with_slips(
        made,
        factor=np.where(some(rng, dim), np.exp(rng.choice([-1, 1]) * rng.uniform(0.1, 1)), 1.0),
    )


def wrong_place(rng, made, dim):
    return with_slips(made, shift=rng.normal(size=dim) * np.exp(rng.uniform(-2, 0.5)))


def wrong_correlation(rng, made, dim):
    return with_slips(
        made,
        mixture=np.tril(rng.normal(size=(dim, dim)), -1)
        * np.exp(rng.uniform(-2, 0.5))
        / np.sqrt(dim),
    )


def more_noise(rng, made, dim):
    return with_slips(made, noise=some(rng, dim) * np.exp(rng.uniform(-2, 0)))


def wrong_values(rng, made, dim):
    return with_slips(made, share=rng.uniform(0.1, 1.0))


def wrong_prior(rng, made, dim):
    return with_slips(made, prior=np.exp(rng.choice([-1, 1]) * rng.uniform(0.2, 1.2)))


def joint_density(rng, made, dim):
    return with_slips(made, joint=1.0)


def no_jacobian(rng, made, dim):
    return with_slips(made, jacobian=0.0)


OF_LATENT = (wrong_prior, joint_density, no_jacobian)


def possible_slips(made: Written, dim: int) -> list:
    found = [missing_term, wrong_sign, wrong_power]
    if hasattr(made.model, "n_values"):
        found.append(wrong_values)
    else:
        found += [wrong_scale, wrong_place, more_noise, *([wrong_correlation] if dim > 1 else [])]
    if not made.exact and not isinstance(made.model, Latent):
        constrained = type(made.model).constrain is not LatentVariableModel.constrain
        found += OF_LATENT if constrained else OF_LATENT[:2]
    return found


def wrong_model(rng, families=FAMILIES, dims=DIMS) -> tuple[str, Written]:
    """A random model with a random slip, which changes the mean squared score by a
    quarter or more.
    """
    while True:
        name, right = right_model(rng, families, dims)
        dim = right.slips["spread"].size
        choices = possible_slips(right, dim)
        slip = choices[rng.integers(len(choices))]
        wrong = slip(rng, right, dim)
        measure = marginal_mean_square if slip in OF_LATENT else mean_square
        before, after = measure(right, right), measure(wrong, right)
        # a sign leaves squares as they are
        if slip is wrong_sign or abs(after / before - 1) >= CHANGE:
            return f"{name}, {slip.__name__}", wrong


def simulated(made: Written, count: int):
    with jax.enable_x64(True):
        return pairs(float64_leaves(made), jax.random.split(jax.random.key(1), count))


@eqx.filter_jit
def pairs(made, keys):
    return jax.vmap(made.sample)(keys)


def score(made: Written, x, z):
    """grad_x log p(x | z), or of log p(x); of integers p(x with x_d -> x_d + 1 | z) /
    p(x | z) - 1.
    """
    density = made.log_marginal if made.exact else lambda y: made.log_likelihood(y, z)
    if not hasattr(made.model, "n_values"):
        return jax.grad(density)(x)
    moved = jax.vmap(lambda d: density(x.at[d].set((x[d] + 1) % made.n_values)))(jnp.arange(x.size))
    return jnp.expm1(moved - density(x))


def mean_square(made: Written, right: Written) -> float:
    """Of the scores that the model gives at its own draws."""
    with jax.enable_x64(True):
        z, x = simulated(made, DRAWS)
        return float(np.mean(scores(float64_leaves(made), x, z) ** 2))


@eqx.filter_jit
def scores(made, x, z):
    return jax.vmap(lambda x, z: score(made, x, z))(x, z)


def marginal_mean_square(made: Written, right: Written) -> float:
    """The same for averages over the posterior that its densities have, by weights of draws from
    the right prior.

    NaN where too few of these draws have a weight.
    """
    with jax.enable_x64(True):
        _, x = simulated(made, OBSERVATIONS)
        z, _ = simulated(right, PROPOSALS)
        squares, effective = posterior_squares(float64_leaves(made), x, z)
        return float(np.mean(squares)) if np.median(effective) > EFFECTIVE else np.nan


@eqx.filter_jit
def posterior_squares(made, x, z):
    def offset(z):
        lost = (1 - made.slips["jacobian"]) * made.model.log_jacobian(made.unconstrain(z))
        return made.log_prior(z) - made.model.log_prior(z) - lost

    def one(x):
        weights = jax.nn.softmax(jax.vmap(lambda z: made.log_likelihood(x, z) + offset(z))(z))
        average = weights @ jax.vmap(lambda z: score(made, x, z))(z)
        return jnp.sum(average**2), 1 / jnp.sum(weights**2)

    return jax.lax.map(one, x)

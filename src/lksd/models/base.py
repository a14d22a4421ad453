"""What a latent variable model is, and the abilities that it may have."""

# Without postponed annotations, in which Equinox does not recognise abstract fields
# (https://github.com/patrick-kidger/equinox/issues/591); they may come with Python 3.14, whose own
# annotations are lazy.
from abc import abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._jax import float64_values

ANY = -2  # in the place of a value: the sum over all values


class Ability(type(eqx.Module)):  # type: ignore[misc]
    """The metaclass of abilities: a model has one if it has what the class declares, and that is
    not None.

    ``isinstance(model, Simulates)`` looks for the method alone, so that a model need not inherit
    from ``Simulates``; one that does cannot be created without it. A model may decide when it is
    made: a property that is None is no ability.
    """

    def __instancecheck__(cls, model) -> bool:
        if eqx.Module not in cls.__bases__:  # a model that inherits from an ability
            return super().__instancecheck__(model)
        (name,) = cls.__abstractmethods__ | cls.__abstractvars__
        return getattr(model, name, None) is not None


class Simulates(eqx.Module, metaclass=Ability):
    """Samplers are tuned on its draws, chains begin at them, its densities are checked against
    them, and MMD can be had.
    """

    @abstractmethod
    def sample(self, key):
        """(z, x) from the joint distribution; a model of observations of any length takes the
        length too.
        """


class Starts(eqx.Module, metaclass=Ability):
    """Chains begin where the model says, and the shape of z is known without a simulation."""

    @abstractmethod
    def initial(self, key, x):
        """A latent at which a chain for x begins."""


class HasMarginal(eqx.Module, metaclass=Ability):
    """Scores are exact, and no chain runs."""

    @abstractmethod
    def log_marginal(self, x):
        """log p(x)."""


class HasMarginalScore(eqx.Module, metaclass=Ability):
    """Scores of real data are exact, without a derivative of log p(x)."""

    @abstractmethod
    def marginal_score(self, x):
        """The gradient of log p(x)."""


class HasMarginalRatios(eqx.Module, metaclass=Ability):
    """Scores of integers are exact; unasked only where ``exact_is_cheap(length)``."""

    @abstractmethod
    def marginal_ratios(self, x, values):
        """p(x with x_d -> v) / p(x) for values (D, M)."""


class HasPosterior(eqx.Module, metaclass=Ability):
    """``samplers.Exact`` draws independently: the default where the latent is discrete."""

    @abstractmethod
    def sample_posterior(self, key, x):
        """An exact draw of z given x."""


class HasGibbs(eqx.Module, metaclass=Ability):
    """``samplers.Gibbs`` and ``WithinGibbs`` sweep over latents that are integers, or have some."""

    @abstractmethod
    def gibbs(self, key, x, z):
        """The next z, by a sweep that leaves the posterior invariant."""


class SimulatesLikelihood(eqx.Module, metaclass=Ability):
    """``samplers.Exchange`` samples the posterior although the likelihood lacks a normaliser that
    depends on z.
    """

    @abstractmethod
    def sample_likelihood(self, key, z):
        """x given z."""


class Discrete(eqx.Module, metaclass=Ability):
    """Observations are integers in 0 .. n_values - 1, and scores come from ratios of
    probabilities.
    """

    n_values: eqx.AbstractVar[int]


class DiscreteLatent(eqx.Module, metaclass=Ability):
    """Every second chain begins at uniform values of z, in 0 .. n_latent_values - 1, which shows
    what is left of the start.
    """

    n_latent_values: eqx.AbstractVar[int]


class SumsValues(eqx.Module, metaclass=Ability):
    """Ratios at the value ``ANY`` are sums over all values, as a table of probabilities gives them
    at once; conditional probabilities then need no loop over the values.
    """

    sums_values: eqx.AbstractVar[bool]


class KnowsValues(eqx.Module, metaclass=Ability):
    """Operators order the values of integers by their frequency, where all models of a call know
    it.
    """

    @abstractmethod
    def value_probabilities(self):
        """The mean probability of each value as an (n_values,) NumPy array."""


class AveragesRatios(eqx.Module, metaclass=Ability):
    """Scores of integers are Rao-Blackwellised, and need fewer draws."""

    @abstractmethod
    def averaged_ratios(self, x, values, z):
        """``likelihood_ratios`` with part of the latent integrated out given the rest."""


class ModifiesPosterior(eqx.Module, metaclass=Ability):
    """The paper's estimator of Barker's weights (Appendix B.2) works with Gibbs sweeps and exact
    draws.
    """

    @abstractmethod
    def between(self, x, values, d, m):
        """The model whose posterior is proportional to p(z) (p(x | z) + p(x with x_d -> v | z)), v
        the m-th replacement.

        It has ``share(x, values, d, m, z)``, p(x with x_d -> v | z) as a part of its likelihood.
        """


class IsMixture(eqx.Module, metaclass=Ability):
    """A warning is given where components lie too far apart for the test to see their weights."""

    @abstractmethod
    def responsibilities(self, x):
        """P(z = k | x) for every component k."""


class Smooths(eqx.Module, metaclass=Ability):
    """``smooth=`` uses the model with noise in closed form; for other models the noise is one more
    latent.
    """

    @abstractmethod
    def smoothed(self, scale):
        """The model of x + scale * noise for a scale that is a number or one for each column."""


class LatentVariableModel(eqx.Module):
    """One observation x and its latent z: a prior and a likelihood.

    A subclass gives ``log_prior(z)`` and ``log_likelihood(x, z)``, and ``sample(key) -> (z, x)`` or
    ``initial(key, x) -> z``, from which the shape of z is known. z is any pytree of real arrays.
    Additive constants of either density may be left out. A term in x must stay, also one without z:
    the score is its gradient.

    A latent with constraints (positive, in an interval) must give ``constrain(u) -> z`` from
    unconstrained reals u and its inverse ``unconstrain(z) -> u``; chains then run on u, with the
    Jacobian found by differentiation.

    A likelihood whose missing normaliser depends on z declares ``normalised = False`` and gives
    ``sample_likelihood(key, z) -> x``, for the exchange algorithm.

    For speed it may give ``log_likelihood_at(x)``, which returns log p(x | z) as a function of z
    and computes what depends on x alone once for all z. Chains alone use it, so here a term without
    z may be left out.

    It may offer more, and what it offers is used, whether or not the class inherits from the
    ability of that name: ``HasMarginal``, ``HasPosterior``, ``HasGibbs`` and the others of this
    module, see docs/extending.md.

    A model of integers in 0 .. L-1 declares ``n_values``, L, as a field or property; its scores
    come from the ratios p(x with x_d -> v | z) / p(x | z). It declares ``exchangeable = True``
    where the order of the coordinates does not matter, and ``any_length = True`` where it takes
    observations padded with -1; ``sample(key, length)`` then takes the length.

    A model of graphs declares ``graphs = True`` and ``n_values = 2``; an observation is the edges
    (``lksd.graphs.edges``).

    A model of real numbers declares its ``support`` where that is not all of space: "positive",
    "unit" (between 0 and 1), "simplex", a pair of bounds such as ``(0, 10)``, or a tuple with one
    of these for each column. Models are then compared in coordinates without a boundary. "real"
    says that all real numbers are meant, also where the data are positive or integers.

    A model of unit vectors declares ``directional = True``; its densities are those on the sphere,
    written for any x in space.

    Fields that are integers, booleans or strings are static; numbers and arrays become float64
    leaves, so that models of one shape share one compilation.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, lksd
    >>> class Scale(lksd.models.LatentVariableModel):
    ...     spread: float = 1.0
    ...     dim: int = 3
    ...
    ...     def log_prior(self, z):
    ...         return -(z**2) / (2 * self.spread**2)
    ...
    ...     def log_likelihood(self, x, z):
    ...         return -self.dim * z - jnp.sum(x**2) * jnp.exp(-2 * z) / 2
    ...
    ...     def sample(self, key):
    ...         key_z, key_x = jax.random.split(key)
    ...         z = self.spread * jax.random.normal(key_z)
    ...         return z, jnp.exp(z) * jax.random.normal(key_x, (self.dim,))
    """

    normalised: ClassVar[bool] = True
    # whether the densities have every factor; None where the class does not say
    complete: ClassVar[bool | None] = None
    exchangeable: ClassVar[bool] = False
    any_length: ClassVar[bool] = False
    directional: ClassVar[bool] = False
    support: ClassVar[Any] = None  # nothing declared
    graphs: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...] | None] = None  # the names of x's columns
    # Without annotations, which would fix the place of a subclass's field of that name.
    vocabulary = None  # type: Any  # the words that integers stand for
    tunable = True  # whether one step size may suit all observations
    note = None  # type: Any  # what every result says of the model

    @abstractmethod
    def log_prior(self, z):
        """log p(z), up to a constant."""

    @abstractmethod
    def log_likelihood(self, x, z):
        """log p(x | z), up to a constant; a term in x alone is part of the score and must stay."""

    def constrain(self, u):
        """z from unconstrained reals."""
        return u

    def unconstrain(self, z):
        """The inverse of ``constrain``."""
        return z

    def log_jacobian(self, u):
        """log |det dz/du|; by differentiation, so override it only for speed or where z and u
        differ in size.
        """
        if type(self).constrain is LatentVariableModel.constrain:
            return jnp.zeros(())
        flat, restore = ravel_pytree(u)
        jacobian = jax.jacfwd(lambda v: ravel_pytree(self.constrain(restore(v)))[0])(flat)
        if jacobian.shape[0] != jacobian.shape[1]:
            raise ValueError(
                f"constrain: expected as many numbers out as in; got {jacobian.shape[1]} to "
                f"{jacobian.shape[0]}. Give log_jacobian(u) for such a transform."
            )
        return jnp.linalg.slogdet(jacobian)[1]

    # -------------------------------------------------- what a model may replace for speed

    def log_likelihood_at(self, x):
        """log p(x | z) as a function of z."""
        return lambda z: self.log_likelihood(x, z)

    def exact_is_cheap(self, length: int) -> bool:
        """Whether ``marginal_ratios`` of an observation of this length are used unasked."""
        return True

    def impossible(self, x: np.ndarray) -> np.ndarray:
        """Where an (n, D) array of values has one that the model cannot produce."""
        return np.zeros(x.shape, bool)

    def at(self, x, values) -> Any:
        """The model of one observation of integers and its replacements, with all it needs looked
        up.
        """
        return self

    def likelihood_ratios(self, x, values, z):
        """p(x with x_d -> v | z) / p(x | z) for values (D, M)."""
        return density_ratios(lambda y: self.log_likelihood(y, z), x, values)

    def coupled_gibbs(self, key, x, z, other):
        """A ``gibbs`` sweep of two chains that are to meet: with common random numbers."""
        return self.gibbs(key, x, z), self.gibbs(key, x, other)  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return type(self).__name__


def kind_of(model: Any) -> str:
    """What a model, or scores in its place, describes: "reals", "directions", "categories",
    "documents" (integers of any length) or "graphs".
    """
    if not isinstance(model, LatentVariableModel):
        return model.kind
    if isinstance(model, Discrete):
        return "graphs" if model.graphs else "documents" if model.any_length else "categories"
    return "directions" if model.directional else "reals"


def density_ratios(log_density: Callable, x, values):
    """exp(log_density(x with x_d -> v) - log_density(x)) for every coordinate and replacement: (D,
    M).
    """
    here = log_density(x)

    def ratio(d, value):
        return jnp.exp(log_density(x.at[d].set(value.astype(x.dtype))) - here)

    return jax.vmap(lambda d, row: jax.vmap(lambda value: ratio(d, value))(row))(
        jnp.arange(x.shape[0]), values
    )


class Around(LatentVariableModel):
    """A model that has the latent of another, and changes something else."""

    model: Any

    def log_prior(self, z):
        return self.model.log_prior(z)

    def constrain(self, u):
        return self.model.constrain(u)

    def unconstrain(self, z):
        return self.model.unconstrain(z)

    def log_jacobian(self, u):
        return self.model.log_jacobian(u)


def simulation(method):
    """The decorator of a ``sample`` that users call too: in double precision, or in the caller's
    where it is traced.
    """

    @float64_values
    @wraps(method)
    def wrapper(self, *args, **kwargs):
        return method(
            jax.tree.map(lambda leaf: leaf if callable(leaf) else jnp.asarray(leaf), self),
            *args,
            **kwargs,
        )

    return wrapper


def as_columns(names) -> tuple[str, ...] | None:
    """The converter of a model's ``columns``."""
    return None if names is None else tuple(map(str, names))


def check_columns(names: tuple[str, ...] | None, dim: int) -> None:
    if names is not None and (len(names) != dim or len(set(names)) < dim):
        raise ValueError(
            f"columns: expected {dim} different names, one for each column of x; got {names}. Name "
            "them all."
        )


def float64_leaves(tree):
    """Numbers and arrays as float64 JAX arrays; integers, booleans, strings and functions as they
    are.
    """

    def convert(leaf):
        if isinstance(leaf, (float, np.floating)) or (
            isinstance(leaf, (np.ndarray, jax.Array)) and jnp.issubdtype(leaf.dtype, jnp.floating)
        ):
            return jnp.asarray(leaf, jnp.float64)
        return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf

    return jax.tree.map(convert, tree)

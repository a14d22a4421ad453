"""Families of bounded, half-bounded and compositional data, each with a wrong scale beside the
truth.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pymc as pm

import lksd

WRONG = 1.5


class Own(lksd.models.LatentVariableModel):
    """A user's class around a density of one observation; its latent says nothing about x."""

    law: Any
    bounds: Any = None
    width: int = 1

    @property
    def support(self):
        return self.bounds

    def log_prior(self, z):
        return -(z**2) / 2

    def log_marginal(self, x):
        return jnp.sum(self.law.log_prob(x))

    def log_likelihood(self, x, z):
        return self.log_marginal(x)

    def sample(self, key):
        shape = () if self.law.event_shape else (self.width,)
        return jnp.zeros(()), self.law.sample(key, shape)


class Family(NamedTuple):
    """The true distribution of a number (or composition), the one with a wrong scale, and what an
    own class declares.

    An observation has ``width`` independent numbers. Between two bounds a scale is a concentration,
    of which one number tells little: 1 against 1.5 of a beta distribution is found in .67 of
    samples of 200.
    """

    truth: Any
    wrong: Any
    support: Any = "positive"
    width: int = 1

    def own(self, law: Any) -> Own:
        support = (-1.0, float(law.high)) if self.support is None else self.support
        return Own(law, support, self.dim)

    def numpyro(self, law: Any):
        def model(x=None):
            numpyro.sample(
                "x", law if law.event_shape else law.expand([self.width]).to_event(1), obs=x
            )

        return lksd.adapters.from_numpyro(model)

    def pymc(self, law: Any):
        with pm.Model() as model:
            # values stand for the shape alone
            PYMC[type(law)](law, np.full(self.dim, 1 / self.dim))
        return lksd.adapters.from_pymc(model)

    @property
    def ways(self) -> tuple[str, ...]:
        """To describe it: all, where PyMC has the distribution."""
        return ("own", "numpyro", "pymc") if type(self.truth) in PYMC else ("own", "numpyro")

    @property
    def dim(self) -> int:
        return self.truth.event_shape[0] if self.truth.event_shape else self.width


PYMC = {  # the same distribution in PyMC's parameters
    dist.Exponential: lambda law, x: pm.Exponential("x", law.rate, observed=x),
    dist.HalfNormal: lambda law, x: pm.HalfNormal("x", law.scale, observed=x),
    dist.HalfCauchy: lambda law, x: pm.HalfCauchy("x", law.scale, observed=x),
    dist.Gamma: lambda law, x: pm.Gamma("x", law.concentration, law.rate, observed=x),
    dist.InverseGamma: lambda law, x: pm.InverseGamma("x", law.concentration, law.rate, observed=x),
    dist.Weibull: lambda law, x: pm.Weibull("x", law.concentration, law.scale, observed=x),
    dist.LogNormal: lambda law, x: pm.LogNormal("x", law.loc, law.scale, observed=x),
    dist.Pareto: lambda law, x: pm.Pareto("x", law.alpha, law.scale, observed=x + law.scale),
    dist.LeftTruncatedDistribution: lambda law, x: pm.TruncatedNormal(
        "x", law.base_dist.loc, law.base_dist.scale, lower=law.low, observed=x
    ),
    dist.RightTruncatedDistribution: lambda law, x: pm.TruncatedNormal(
        "x", law.base_dist.loc, law.base_dist.scale, upper=law.high, observed=x - 1
    ),
    dist.TwoSidedTruncatedDistribution: lambda law, x: pm.TruncatedNormal(
        "x", law.base_dist.loc, law.base_dist.scale, lower=law.low, upper=law.high, observed=x
    ),
    dist.Uniform: lambda law, x: pm.Uniform("x", law.low, law.high, observed=x),
    dist.Beta: lambda law, x: pm.Beta("x", law.concentration1, law.concentration0, observed=x),
    dist.Dirichlet: lambda law, x: pm.Dirichlet("x", np.asarray(law.concentration), observed=x),
}
FAMILIES = {
    "exponential": Family(dist.Exponential(1.0), dist.Exponential(1 / WRONG)),
    "half-normal": Family(dist.HalfNormal(1.0), dist.HalfNormal(WRONG)),
    "half-Cauchy": Family(dist.HalfCauchy(1.0), dist.HalfCauchy(WRONG)),
    "gamma .7": Family(dist.Gamma(0.7, 1.0), dist.Gamma(0.7, 1 / WRONG)),
    "gamma 3": Family(dist.Gamma(3.0, 1.0), dist.Gamma(3.0, 1 / WRONG)),
    "inverse gamma": Family(dist.InverseGamma(2.0, 1.0), dist.InverseGamma(2.0, WRONG)),
    "Weibull 1": Family(dist.Weibull(1.0, 1.0), dist.Weibull(WRONG, 1.0)),
    "Weibull .8": Family(dist.Weibull(1.0, 0.8), dist.Weibull(WRONG, 0.8)),
    "log-normal": Family(dist.LogNormal(0.0, 1.0), dist.LogNormal(0.0, WRONG)),
    "Pareto": Family(dist.Pareto(1.0, 2.0), dist.Pareto(1.0, 2.0 / WRONG), (1.0, np.inf)),
    "shifted exponential": Family(
        dist.TransformedDistribution(
            dist.Exponential(1.0), dist.transforms.AffineTransform(2.0, 1.0)
        ),
        dist.TransformedDistribution(
            dist.Exponential(1 / WRONG), dist.transforms.AffineTransform(2.0, 1.0)
        ),
        (2.0, np.inf),
    ),
    "truncated normal": Family(
        dist.TruncatedNormal(0.5, 1.0, low=0.0), dist.TruncatedNormal(0.5, WRONG, low=0.0)
    ),
    "normal between bounds": Family(
        dist.TruncatedNormal(0.0, 1.0, low=-1.0, high=2.0),
        dist.TruncatedNormal(0.0, 1 / WRONG, low=-1.0, high=2.0),
        (-1.0, 2.0),
        3,
    ),
    "normal below a bound": Family(
        dist.TruncatedNormal(0.0, 1.0, high=0.5),
        dist.TruncatedNormal(0.0, WRONG, high=0.5),
        (-np.inf, 0.5),
    ),
    "uniform": Family(dist.Uniform(0.0, 1.0), dist.Beta(WRONG, WRONG), "unit", 3),
    "uniform on a longer interval": Family(
        dist.Uniform(-1.0, 3.0), dist.Uniform(-1.0, 3.0 * WRONG), None
    ),
    "beta .5": Family(dist.Beta(0.5, 0.5), dist.Beta(0.5 * WRONG, 0.5 * WRONG), "unit", 3),
    "beta 2, 5": Family(dist.Beta(2.0, 5.0), dist.Beta(2.0 * WRONG, 5.0), "unit", 3),
    "Dirichlet 1": Family(
        dist.Dirichlet(jnp.ones(4)), dist.Dirichlet(WRONG * jnp.ones(4)), "simplex"
    ),
    "Dirichlet .5": Family(
        dist.Dirichlet(0.5 * jnp.ones(3)), dist.Dirichlet(0.5 * WRONG * jnp.ones(3)), "simplex"
    ),
    "Dirichlet 1, 2, 5": Family(
        dist.Dirichlet(jnp.array([1.0, 2.0, 5.0])),
        dist.Dirichlet(WRONG * jnp.array([1.0, 2.0, 5.0])),
        "simplex",
    ),
}


def samples(family: Family, count: int, n: int, seed: int = 0) -> np.ndarray:
    """(count, n, D) draws of the truth."""
    shape = () if family.truth.event_shape else (family.width,)
    with jax.enable_x64(True):
        return np.asarray(
            family.truth.sample(jax.random.key(seed), (count, n, *shape)), dtype=np.float64
        )

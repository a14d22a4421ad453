"""A NumPyro model as functions of parameters, latents and one observation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from ..supports import REAL, Support
from ._laws import (
    Region,
    Unknown,
    as_support,
    base_law,
    fixed_ends,
    is_free,
    latents_used,
    numpyro_region,
)
from ._program import ProgramModel, Traced, find_quadratic, traced

COMBINATIONS = 10_000  # of discrete latents, over which a density is summed
CHUNK = 1_024  # of indices of observations, at which densities are compared
SAME = 1e-9
REMEDY = "Covariates and effects of single observations are not supported. Leave them out."


def run(model: Callable, given: dict, key, replaced: Callable | None = None) -> dict:
    """The sites of one run with these values; whatever the user's code raises is named."""
    from numpyro.handlers import seed, substitute, trace

    def value(site):
        found = given.get(site["name"])
        return replaced(site) if found is None and replaced is not None else found

    try:
        return trace(substitute(seed(model, key), substitute_fn=value)).get_trace()
    except AssertionError as error:
        if "unique names" not in str(error):
            raise failure(error) from error
        raise ValueError(
            f"model: expected sites that occur once; {error}. Rename one of them, or join them."
        ) from error
    except Exception as error:
        raise failure(error) from error


def failure(error: Exception) -> ValueError:
    if isinstance(error, NotImplementedError) and not str(error):
        return ValueError(
            "model: expected sites that can be simulated; the distribution of one cannot. Replace "
            "an improper prior by a proper one."
        )
    return ValueError(
        "model: running it fails "
        f"({': '.join([type(error).__name__, *str(error).splitlines()[:1]])}). Give what it is "
        "called with in args and kwargs, and global parameters in params."
    )


class Sites(NamedTuple):
    """What a model's sites are, from one run."""

    local: dict[str, Any]  # real latents of one observation
    discrete: dict[str, Any]  # latents that are summed out
    fixed: dict[str, Any]  # sites whose values are parameters
    plate: str | None
    size: int  # observations in the plate


class Program:
    """The model as functions; ``params`` are values at which it is looked at, ``draws`` others."""

    def __init__(
        self,
        model: Callable,
        observed: str,
        sites: Sites,
        first: dict,
        params: dict,
        draws: Collection[dict] = (),
    ):
        self.model, self.observed, self.sites = model, observed, sites
        names = (*sites.local, *sites.discrete, observed)
        values = jax.eval_shape(partial(self.simulate, params, names), jax.random.key(0))
        self.shape = values.pop(observed).shape
        latents = {name: jnp.zeros(one.shape, one.dtype) for name, one in values.items()}
        self.region = self.known_region(first[observed]["fn"])
        self.support, self.values = self.where_x_lies(first[observed]["fn"], params, latents, draws)
        self.combinations = {
            name: outcomes(
                name,
                *self.fixed_integers(name, site["fn"], params, latents, draws),
                latents[name].shape,
            )
            for name, site in sites.discrete.items()
        }
        count = int(np.prod([len(one) for one in self.combinations.values()]))
        if count > COMBINATIONS:
            raise ValueError(
                f"model: expected discrete latents with at most {COMBINATIONS:,} outcomes "
                f"together, over which to sum; {', '.join(map(repr, self.combinations))} have "
                f"{count:,}. Sum some of them out in the model."
            )
        self.check_latent_supports(params, latents)

    def run(self, params: dict, given: dict, key, index=0, replaced=None) -> dict:
        named = self.sites.plate
        plate = {} if named is None else {named: jnp.atleast_1d(jnp.asarray(index))}
        return run(self.model, jax.tree.map(jnp.asarray, params) | plate | given, key, replaced)

    def axis(self, site, event_dim: int | None = None) -> int | None:
        """Where a value has its observation."""
        frame = next(
            (one for one in site["cond_indep_stack"] if one.name == self.sites.plate), None
        )
        return (
            None
            if frame is None
            else frame.dim - (site["fn"].event_dim if event_dim is None else event_dim)
        )

    def one(self, site, value):
        """A value of a site without the axis of observations."""
        axis = self.axis(site)
        if axis is None:
            return value
        if value.shape[axis] != 1:
            raise ValueError(
                f"model: expected every observation to have the same law; site {site['name']!r} "
                f"has values for {value.shape[axis]} observations when one is wanted, so it "
                f"depends on the observation's index. {REMEDY}"
            )
        return jnp.squeeze(value, axis)

    def many(self, site, value, event_dim: int | None = None):
        axis = self.axis(site, event_dim)
        return value if axis is None else jnp.expand_dims(value, axis)

    def sample(self, params: dict, key):
        """(z, x); the discrete latents are left out."""
        z = self.simulate(params, (*self.sites.local, self.observed), key)
        x = jnp.ravel(z.pop(self.observed))
        return z, x.astype(jnp.int32) if self.values else x

    def simulate(self, params: dict, names: Collection[str], key) -> dict[str, Any]:
        """The values of some sites for one observation."""
        trace = self.run(
            params,
            {},
            key,
            replaced=lambda site: self.drawn(site, key) if site["name"] == self.observed else None,
        )
        return {name: self.one(trace[name], trace[name]["value"]) for name in names}

    def drawn(self, site, key):
        """A value of the observed site, whatever the model was given for it; in a scan each step
        has its own randomness.

        The keys of the latents come from split(key), which are fold_in(key, 0) and fold_in(key, 1).
        """
        step = site["infer"].get("_scan_current_index", 0)
        return site["fn"](rng_key=jax.random.fold_in(jax.random.fold_in(key, 2), step))

    def log_densities(self, params: dict, x, z: dict, index=0):
        """log p(z) and log p(x | z), summed over the discrete latents."""
        names, choices = list(self.combinations), list(self.combinations.values())

        def terms(outcome):
            trace = self.run(
                params, {}, jax.random.key(0), index, partial(self.value, x, z | outcome)
            )
            own = {
                name: jnp.sum(trace[name]["fn"].log_prob(trace[name]["value"]))
                for name in (*z, *outcome, self.observed)
            }
            log_prior = sum((own[name] for name in (*z, *outcome)), jnp.zeros(()))
            return log_prior, own[self.observed] + self.log_possible(trace[self.observed])

        if not names:
            return terms({})
        grid = np.array(list(itertools.product(*(range(len(one)) for one in choices))))
        every = {
            name: one[grid[:, number]]
            for number, (name, one) in enumerate(zip(names, choices, strict=True))
        }
        log_prior, log_likelihood = jax.vmap(terms)(every)
        total = logsumexp(log_prior)
        return total, logsumexp(log_prior + log_likelihood) - total

    def log_possible(self, site):
        """0 where the value lies in its support and -inf elsewhere, which densities without
        validation do not say.
        """
        if self.region.free:
            return jnp.zeros(())
        law, value = site["fn"], site["value"]
        if self.region.simplex:
            return jnp.where(jnp.all(law.support(value)), 0.0, -jnp.inf)
        region = numpyro_region(law)
        return jnp.where(
            jnp.all((value >= region.lower[0]) & (value <= region.upper[0])), 0.0, -jnp.inf
        )

    def value(self, x, latents: dict, site):
        if site["name"] == self.observed:
            # functions of narrow integers are in single precision
            wide = x.astype(jnp.int64) if self.values else x
            return self.many(site, wide.reshape(self.shape))
        return self.many(site, latents[site["name"]]) if site["name"] in latents else None

    def constrain(self, params: dict, u: dict):
        """z and the log determinant of its Jacobian; a support may depend on sites before it."""

        def free(site):
            return self.many(site, u[site["name"]], self.bijection(site).domain.event_dim)

        trace = self.run(
            params,
            {},
            jax.random.key(0),
            0,
            lambda site: self.bijection(site)(free(site)) if site["name"] in u else None,
        )
        sites = [trace[name] for name in u]
        jacobians = [
            jnp.sum(self.bijection(site).log_abs_det_jacobian(free(site), site["value"]))
            for site in sites
        ]
        return {site["name"]: self.one(site, site["value"]) for site in sites}, sum(
            jacobians, jnp.zeros(())
        )

    def unconstrain(self, params: dict, z: dict) -> dict:
        trace = self.run(
            params,
            {},
            jax.random.key(0),
            0,
            lambda site: self.many(site, z[site["name"]]) if site["name"] in z else None,
        )
        found = {}
        for name in z:
            site, bijection = trace[name], self.bijection(trace[name])
            axis, free = self.axis(site, bijection.domain.event_dim), bijection.inv(site["value"])
            found[name] = free if axis is None else jnp.squeeze(free, axis)
        return found

    def bijection(self, site):
        from numpyro.distributions import biject_to

        return biject_to(site["fn"].support)

    # ---------------------------------------------------------------- where sites lie

    def known_region(self, law) -> Region:
        try:
            return numpyro_region(law)
        except Unknown as error:
            raise ValueError(
                "observed: expected a site of real numbers, in intervals or on a simplex, or of "
                f"integers 0 .. L-1; {self.observed!r} has {error}. Use another distribution, or "
                "transform x, in the data and in the model."
            ) from error

    def ends(self, name: str, params: dict, latents: dict):
        """The ends (C, D) of a site's intervals."""

        def value(site):
            given = self.many(site, latents[site["name"]]) if site["name"] in latents else None
            return self.drawn(site, jax.random.key(0)) if site["name"] == self.observed else given

        site = self.run(params, {}, jax.random.key(0), 0, value)[name]
        region = numpyro_region(site["fn"])
        return tuple(
            self.one(site, end).reshape(len(end), -1) for end in (region.lower, region.upper)
        )

    def where_x_lies(
        self, law, params: dict, latents: dict, draws
    ) -> tuple[Support | None, int | None]:
        """The support of real x, or the number of values of a discrete one."""
        region = self.region
        if region.whole:
            return None, self.alphabet(
                law, *self.fixed_integers(self.observed, law, params, latents, draws)
            )
        if region.simplex:
            return Support(simplex=region.simplex), None
        if region.free:
            return REAL, None
        return as_support(
            *fixed_ends(self.observed, partial(self.ends, self.observed), params, latents, draws)
        ), None

    def fixed_integers(
        self, name: str, law, params: dict, latents: dict, draws
    ) -> tuple[np.ndarray, np.ndarray]:
        try:
            finite = fixed_ends(name, partial(self.ends, name), params, latents, draws)
        except Unknown:
            finite = np.zeros(1), np.full(1, np.inf)
        if np.isfinite(finite).all():
            return finite
        own = type(base_law(law)).__name__
        raise ValueError(
            f"observed: expected a site of real numbers, or of integers 0 .. L-1; {name!r} has a "
            f"{own}, whose values cannot be listed. Use a Categorical, Bernoulli or Binomial "
            "distribution."
            if name == self.observed
            else "model: expected discrete latents with finitely many values, over which to sum; "
            f"{name!r} has a {own}. "
            "Replace it, for example by a Categorical over the values that matter."
        )

    def alphabet(self, law, lower: np.ndarray, upper: np.ndarray) -> int:
        """The number of values of x, the same in all columns."""
        if lower.any() or (upper != upper[0]).any() or upper[0] < 1:
            ranges = sorted(
                {f"{low:g} .. {high:g}" for low, high in zip(lower, upper, strict=True)}
            )
            raise ValueError(
                "observed: expected integers 0 .. L-1 with the same L in all columns; "
                f"{self.observed!r} has a {type(base_law(law)).__name__} with {', '.join(ranges)}. "
                "Shift the values to begin at 0, or compare columns with different numbers of "
                "values by themselves."
            )
        return int(upper[0]) + 1

    def check_latent_supports(self, params: dict, latents: dict) -> None:
        """Real latents may not be bounded by discrete ones, which are summed out: one bijection
        must do for all outcomes.
        """

        def ends(name: str, params: dict, latents: dict):
            trace = self.run(
                params,
                {},
                jax.random.key(0),
                0,
                partial(self.value, jnp.zeros(self.shape), latents),
            )
            return [jnp.asarray(leaf) for leaf in jax.tree.leaves(trace[name]["fn"].support)]

        for name in self.sites.local if self.sites.discrete else ():
            if by := [
                one
                for one in latents_used(partial(ends, name), params, latents)
                if one in self.sites.discrete
            ]:
                raise ValueError(
                    "model: expected latents whose support does not depend on discrete ones; that "
                    f"of {name!r} depends on {', '.join(map(repr, by))}. Scale a variable of fixed "
                    "support in the model instead."
                )

    # ---------------------------------------------------------------- the model

    def check_index(self, params: dict, x, z) -> None:
        """The densities are the same for every index in the plate."""
        if self.sites.plate is None or self.sites.size == 1:
            return
        every = jax.lax.map(
            lambda index: jnp.stack(self.log_densities(params, x, z, index)),
            jnp.arange(self.sites.size),
            batch_size=CHUNK,
        )
        first, differ = every[0], np.abs(every - every[0]) > SAME * (1 + np.abs(every[0]))
        if np.any(differ):
            index, which = (int(i) for i in np.argwhere(differ)[0])
            part = ("the latents", self.observed)[which]
            raise ValueError(
                f"model: expected every observation to have the same law; the density of {part!s} "
                f"at one point differs between observations 0 and {index} "
                f"({float(first[which]):.4g} and {float(every[index, which]):.4g}), so it depends "
                f"on the observation's index. {REMEDY}"
            )

    def traced_model(self, name: str, sample: Traced, params: dict, x, z) -> ProgramModel:
        parts = {
            "log_prior": traced(lambda params, z: self.log_densities(params, x, z)[0], params, z),
            "log_likelihood": traced(
                lambda params, x, z: self.log_densities(params, x, z)[1], params, x, z
            ),
            "sample": sample,
            "unconstrain": traced(self.unconstrain, params, z),
        }
        parts["constrain"] = traced(
            self.constrain, params, jax.eval_shape(parts["unconstrain"], params, z)
        )
        free = all(is_free(site["fn"].support) for site in self.sites.local.values())
        quadratic = find_quadratic(parts, params, x, z, free)
        return ProgramModel(
            name, parts, params, quadratic, x.size, self.values, support=self.support
        )


def outcomes(name: str, lower: np.ndarray, upper: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Every value of a discrete latent of this shape, along the first axis."""
    ranges = [np.arange(low, high + 1).astype(int) for low, high in zip(lower, upper, strict=True)]
    if np.prod([float(len(one)) for one in ranges]) > COMBINATIONS:
        raise ValueError(
            f"model: expected discrete latents with at most {COMBINATIONS:,} outcomes together, "
            f"over which to sum; {name!r} has {len(ranges[0])} to the power of {len(ranges)}. Sum "
            "it out in the model."
        )
    return np.array(list(itertools.product(*ranges))).reshape(-1, *shape)

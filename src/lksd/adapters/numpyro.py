"""Models of NumPyro."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, signature
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from .._float64 import float64
from ..models import PosteriorPredictive
from ._packages import needed
from ._params import sorted_params
from ._program import ProgramModel, Traced, find_quadratic, traced, with_params

COMBINATIONS = 10_000  # of discrete latents, over which a density is summed
CHUNK = 1_024  # of indices of observations, at which densities are compared
SAME = 1e-9


def from_numpyro(
    model: Callable,
    observed: str = "x",
    params: Mapping[str, Any] | None = None,
    *,
    plate: str | None = "auto",
    args: tuple = (),
    kwargs: Mapping[str, Any] | None = None,
) -> ProgramModel | PosteriorPredictive:
    """A NumPyro model as a model of one observation.

    The function describes one observation, or many in a plate. Latents in the plate of the observed site are local: z. Those
    outside are global, as ``numpyro.param`` sites are, and need a value in ``params``. Constraints are handled by the supports.
    Finite discrete latents are summed out. The function is traced here, once: later changes of variables that it uses do not
    matter.

    Parameters
    ----------
    model : function
    observed : str
        The name of the observed site. Its value in the model, if it has one, is not used.
    params : dict, optional
        Values of global sites, or draws of them along leading axes, as ``MCMC.get_samples()`` gives; with draws the result is
        a ``PosteriorPredictive``. Names of local and deterministic sites are passed over.
    plate : str or None
        The plate over observations. "auto" takes the outermost plate of the observed site that has latents inside; None says that
        the function describes one observation.
    args, kwargs
        What the function is called with, as in ``MCMC.run``.

    Examples
    --------
    >>> import numpy as np, numpyro, numpyro.distributions as dist, lksd
    >>> def ppca(x=None):
    ...     weight = numpyro.sample("weight", dist.Normal().expand([3, 1]).to_event(2))
    ...     with numpyro.plate("n", 100):
    ...         z = numpyro.sample("z", dist.Normal().expand([1]).to_event(1))
    ...         numpyro.sample("x", dist.Normal(z @ weight.T, 0.5).to_event(1), obs=x)
    >>> model = lksd.adapters.from_numpyro(ppca, observed="x", params={"weight": np.ones((3, 1))})
    >>> x = np.random.default_rng(0).normal(size=(10, 3))
    >>> native = lksd.models.PPCA(np.ones((3, 1)), 0.5)
    >>> np.allclose(lksd.estimate_scores(model, x).score, lksd.estimate_scores(native, x).score)
    True
    """
    numpyro = needed("from_numpyro", "numpyro", "numpyro")
    if not callable(model):
        raise TypeError(f"model: expected a NumPyro model, a function; got {type(model).__name__}. Give the function itself.")
    called = partial(model, *args, **with_missing(model, observed, args, dict(kwargs or {})))
    name = f"NumPyro model {getattr(model, '__name__', type(model).__name__)}"
    # Validation adds a branch to every density, so that none is smooth; supports are checked where that matters.
    with numpyro.validation_enabled(False), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "subsample_size does not match", UserWarning)
        return adapted(numpyro, called, name, observed, dict(params or {}), plate)


def with_missing(model: Callable, observed: str, args: tuple, kwargs: dict) -> dict:
    """None for an argument of the observed site's name that has no default and is not given."""
    try:
        taken = list(signature(model).parameters.values())[len(args) :]
    except (TypeError, ValueError):
        return kwargs
    needs = [one.name for one in taken if one.default is Parameter.empty and one.kind is not Parameter.VAR_POSITIONAL]
    return {observed: None} | kwargs if observed in needs else kwargs


class Sites(NamedTuple):
    """What a model's sites are, from one run."""

    local: dict[str, Any]  # real latents of one observation
    discrete: dict[str, Any]  # latents that are summed out
    fixed: dict[str, Any]  # sites whose values are parameters
    plate: str | None
    size: int  # observations in the plate


@float64
def adapted(numpyro, model: Callable, name: str, observed: str, params: dict, plate: str | None):
    first = run(numpyro, model, {}, jax.random.key(0))
    sites = roles(first, name, observed, params, plate)
    values, draws = sorted_params(params, {key: site["value"] for key, site in sites.fixed.items()}, first, name)
    start = {key: np.asarray(value[0]) for key, value in draws.items()} | values
    program = Program(numpyro, model, observed, sites, first, start)
    sample = traced(program.sample, start, jax.random.key(0))
    z, x = sample(start, jax.random.key(0))
    program.check_index(start, x, z)
    made = program.traced_model(name, sample, start, x, z)
    if not draws:
        return made
    return PosteriorPredictive(lambda **given: with_params(made, values | given), draws)


def run(numpyro, model: Callable, given: dict, key, replaced: Callable | None = None) -> dict:
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
        raise ValueError(f"model: expected sites that occur once; {error}. Rename one of them, or join them.") from error
    except Exception as error:
        raise failure(error) from error


def failure(error: Exception) -> ValueError:
    return ValueError(
        f"model: running it fails ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}). "
        "Give what it is called with in args and kwargs, and global parameters in params."
    )


def roles(trace: dict, name: str, observed: str, params: dict, plate: str | None) -> Sites:
    """Which sites are local, which are summed out, which need a value in params."""
    samples = {key: site for key, site in trace.items() if site["type"] == "sample"}
    if observed not in samples:
        raise ValueError(
            f"observed: expected a site of {name}; there is no {observed!r}. Its sites: {', '.join(samples) or 'none'}."
        )
    if others := [key for key, site in samples.items() if site["is_observed"] and key != observed]:
        raise ValueError(
            f"observed: expected {observed!r} to be the only observed site of {name}; {', '.join(map(repr, others))} is observed "
            "too (a factor counts as observed). Join them in one site, or remove obs."
        )
    latents = {key: site for key, site in samples.items() if key != observed}
    over = observation_plate(latents, samples[observed], params, plate)
    inside = {key: site for key, site in latents.items() if over is None or over in plates_of(site)}
    fixed = {key: site for key, site in latents.items() if key not in inside or (over is None and key in params)}
    fixed |= {key: site for key, site in trace.items() if site["type"] == "param"}
    if missing := [key for key in fixed if key not in params]:
        where = f"outside the plate {over!r}" if over else "parameters"
        raise ValueError(
            f"params: expected values or draws for the global sites of {name}; {', '.join(map(repr, missing))} are {where} and "
            "have none. Give them, or say plate=None if the function describes one observation."
        )
    local = {key: site for key, site in inside.items() if key not in fixed}
    for key in (*local, observed):
        if samples[key]["scale"] not in (None, 1.0) and over is None:
            raise ValueError(f"model: expected no scaled densities; site {key!r} has a scale. Remove the handler.")
    discrete = {key: site for key, site in local.items() if site["fn"].support.is_discrete}
    real = {key: site for key, site in local.items() if key not in discrete}
    count = 1 if over is None else next(one.size for one in samples[observed]["cond_indep_stack"] if one.name == over)
    return Sites(real, discrete, fixed, over, count)


def plates_of(site) -> list[str]:
    """The outermost first."""
    return [frame.name for frame in reversed(site["cond_indep_stack"])]


def observation_plate(latents: dict, observed, params: dict, plate: str | None) -> str | None:
    """The plate over observations: as named, or the outermost of the observed site that holds the most latents, if any."""
    own = plates_of(observed)
    if plate is None or plate != "auto":
        if plate is not None and plate not in own:
            raise ValueError(
                f"plate: expected a plate of the observed site, {own or 'which has none'}; got {plate!r}. Check the name."
            )
        return plate
    held = {one: sum(one in plates_of(site) for key, site in latents.items() if key not in params) for one in own}
    held = held if any(held.values()) else {one: sum(one in plates_of(site) for site in latents.values()) for one in own}
    best = max(held.values(), default=0)
    return next((one for one in own if held[one] == best), None) if best else None


class Program:
    """The model as functions of parameters, latents and one observation."""

    def __init__(self, numpyro, model: Callable, observed: str, sites: Sites, first: dict, params: dict):
        self.numpyro, self.model, self.observed, self.sites = numpyro, model, observed, sites
        self.values = alphabet(observed, first[observed]["fn"])
        names = (*sites.local, *sites.discrete, observed)

        def values_of_one(key):
            trace = self.run(params, {}, key, replaced=lambda site: self.drawn(site, key) if site["name"] == observed else None)
            return {name: self.one(trace[name], trace[name]["value"]) for name in names}

        shapes = {name: one.shape for name, one in jax.eval_shape(values_of_one, jax.random.key(0)).items()}
        self.shape = shapes[observed]
        self.combinations = {name: outcomes(name, site["fn"], shapes[name]) for name, site in sites.discrete.items()}
        count = int(np.prod([len(one) for one in self.combinations.values()]))
        if count > COMBINATIONS:
            raise ValueError(
                f"model: expected discrete latents with at most {COMBINATIONS:,} outcomes together, over which to sum; "
                f"{', '.join(map(repr, self.combinations))} have {count:,}. Sum some of them out in the model."
            )

    def run(self, params: dict, given: dict, key, index=0, replaced=None) -> dict:
        plate = {} if self.sites.plate is None else {self.sites.plate: jnp.atleast_1d(jnp.asarray(index))}
        return run(self.numpyro, self.model, jax.tree.map(jnp.asarray, params) | plate | given, key, replaced)

    def axis(self, site, event_dim: int | None = None) -> int | None:
        """Where a value has its observation."""
        frame = next((one for one in site["cond_indep_stack"] if one.name == self.sites.plate), None)
        return None if frame is None else frame.dim - (site["fn"].event_dim if event_dim is None else event_dim)

    def one(self, site, value):
        """A value of a site without the axis of observations."""
        axis = self.axis(site)
        if axis is None:
            return value
        if value.shape[axis] != 1:
            raise ValueError(
                f"model: expected every observation to have the same law; site {site['name']!r} has values for {value.shape[axis]} "
                f"observations when one is wanted, so it depends on the observation's index. {REMEDY}"
            )
        return jnp.squeeze(value, axis)

    def many(self, site, value, event_dim: int | None = None):
        axis = self.axis(site, event_dim)
        return value if axis is None else jnp.expand_dims(value, axis)

    def sample(self, params: dict, key):
        """(z, x); the discrete latents are left out."""
        trace = self.run(params, {}, key, 0, lambda site: self.drawn(site, key) if site["name"] == self.observed else None)
        z = {name: self.one(trace[name], trace[name]["value"]) for name in self.sites.local}
        return z, jnp.ravel(self.one(trace[self.observed], trace[self.observed]["value"]))

    def drawn(self, site, key):
        """A value of the observed site, whatever the model was given for it."""
        return site["fn"](rng_key=jax.random.fold_in(key, 2))  # the first site's is one of the two that split(key) gives

    def log_densities(self, params: dict, x, z: dict, index=0):
        """log p(z) and log p(x | z), summed over the discrete latents."""
        names, choices = list(self.combinations), list(self.combinations.values())

        def terms(outcome):
            trace = self.run(params, {}, jax.random.key(0), index, partial(self.value, x, z | outcome))
            own = {name: jnp.sum(trace[name]["fn"].log_prob(trace[name]["value"])) for name in (*z, *outcome, self.observed)}
            log_prior = sum((own[name] for name in (*z, *outcome)), jnp.zeros(()))
            law, value = trace[self.observed]["fn"], trace[self.observed]["value"]
            possible = jnp.zeros(()) if is_free(law.support) else jnp.where(jnp.all(law.support(value)), 0.0, -jnp.inf)
            return log_prior, own[self.observed] + possible

        if not names:
            return terms({})
        grid = np.array(list(itertools.product(*(range(len(one)) for one in choices))))
        every = {name: one[grid[:, number]] for number, (name, one) in enumerate(zip(names, choices, strict=True))}
        log_prior, log_likelihood = jax.vmap(terms)(every)
        total = logsumexp(log_prior)
        return total, logsumexp(log_prior + log_likelihood) - total

    def value(self, x, z: dict, site):
        if site["name"] == self.observed:
            return self.many(site, x.reshape(self.shape))
        return self.many(site, z[site["name"]]) if site["name"] in z else None

    def constrain(self, params: dict, u: dict):
        """z and the log determinant of its Jacobian; a support may depend on sites before it."""
        jacobians = []

        def value(site):
            if site["name"] not in u:
                return None
            bijection = self.bijection(site)
            given = self.many(site, u[site["name"]], bijection.domain.event_dim)
            made = bijection(given)
            jacobians.append(jnp.sum(bijection.log_abs_det_jacobian(given, made)))
            return made

        trace = self.run(params, {}, jax.random.key(0), 0, value)
        return {name: self.one(trace[name], trace[name]["value"]) for name in u}, sum(jacobians, jnp.zeros(()))

    def unconstrain(self, params: dict, z: dict) -> dict:
        found = {}

        def value(site):
            if site["name"] not in z:
                return None
            given, bijection = self.many(site, z[site["name"]]), self.bijection(site)
            axis, free = self.axis(site, bijection.domain.event_dim), bijection.inv(given)
            found[site["name"]] = free if axis is None else jnp.squeeze(free, axis)
            return given

        self.run(params, {}, jax.random.key(0), 0, value)
        return {name: found[name] for name in z}

    def bijection(self, site):
        return self.numpyro.distributions.biject_to(site["fn"].support)

    def check_index(self, params: dict, x, z) -> None:
        """The densities are the same for every index in the plate."""
        if self.sites.plate is None or self.sites.size == 1:
            return
        every = jax.lax.map(
            lambda index: jnp.stack(self.log_densities(params, x, z, index)), jnp.arange(self.sites.size), batch_size=CHUNK
        )
        first, differ = every[0], np.abs(every - every[0]) > SAME * (1 + np.abs(every[0]))
        if np.any(differ):
            index, which = (int(i) for i in np.argwhere(differ)[0])
            part = ("the latents", self.observed)[which]
            raise ValueError(
                f"model: expected every observation to have the same law; the density of {part!s} at one point differs between "
                f"observations 0 and {index} ({float(first[which]):.4g} and {float(every[index, which]):.4g}), so it depends on "
                f"the observation's index. {REMEDY}"
            )

    def traced_model(self, name: str, sample: Traced, params: dict, x, z) -> ProgramModel:
        x = x.astype(jnp.int32) if self.values else x
        parts = {
            "log_prior": traced(lambda params, z: self.log_densities(params, x, z)[0], params, z),
            "log_likelihood": traced(lambda params, x, z: self.log_densities(params, x, z)[1], params, x, z),
            "sample": sample,
            "unconstrain": traced(self.unconstrain, params, z),
        }
        parts["constrain"] = traced(self.constrain, params, jax.eval_shape(parts["unconstrain"], params, z))
        free = all(is_free(site["fn"].support) for site in self.sites.local.values())
        return ProgramModel(name, parts, params, find_quadratic(parts, params, x, z, free), x.size, self.values)


REMEDY = "Covariates and effects of single observations cannot be compared; leave them out, or make them part of x."


def is_free(support) -> bool:
    """Whether a site's support is all reals."""
    from numpyro.distributions import constraints

    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    return isinstance(support, type(constraints.real))


def alphabet(name: str, law) -> int | None:
    """The number of values of a discrete observed site; None for real ones."""
    if not law.support.is_discrete:
        return None
    values = np.asarray(law.enumerate_support(expand=False)).ravel() if law.has_enumerate_support else np.array([])
    if not np.array_equal(values, np.arange(len(values))) or len(values) < 2:
        raise ValueError(
            f"observed: expected a site of real numbers, or of integers 0 .. L-1; {name!r} has a {type(law).__name__}, whose "
            "values cannot be listed. Use a Categorical, Bernoulli or Binomial distribution."
        )
    return len(values)


def outcomes(name: str, law, shape: tuple[int, ...]) -> np.ndarray:
    """Every value of a discrete latent of this shape, along the first axis."""
    if not law.has_enumerate_support:
        raise ValueError(
            f"model: expected discrete latents with finitely many values, over which to sum; {name!r} has a {type(law).__name__}. "
            "Replace it, for example by a Categorical over the values that matter."
        )
    values, size = np.asarray(law.enumerate_support(expand=False)).ravel(), int(np.prod(shape))
    if len(values) ** size > COMBINATIONS:
        raise ValueError(
            f"model: expected discrete latents with at most {COMBINATIONS:,} outcomes together, over which to sum; {name!r} has "
            f"{len(values)} to the power of {size}. Sum it out in the model."
        )
    return np.array(list(itertools.product(values, repeat=size))).reshape(-1, *shape)

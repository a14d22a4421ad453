"""Models of NumPyro."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, signature
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from .._jax import float64
from ..models import PosteriorPredictive
from ._laws import has_mask, is_discrete
from ._numpyro_program import Program, Sites, run
from ._packages import needed
from ._program import ProgramModel, sorted_params, traced

NARROW = (np.float32, np.int32)


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

    The function describes one observation, or many in a plate. Latents in the plate of the observed
    site are local: z. Those outside are global, as ``numpyro.param`` sites are, and need a value in
    ``params``. Constraints are handled by the supports. Finite discrete latents are summed out. The
    function is traced here, once: later changes of variables that it uses do not matter.

    Parameters
    ----------
    model : function
    observed : str
        The name of the observed site. Its value in the model, if it has one, is not used.
    params : dict, optional
        Values of global sites, or draws of them along leading axes, as ``MCMC.get_samples()``
        gives; with draws the result is a ``PosteriorPredictive``. Names of local and deterministic
        sites are passed over.
    plate : str or None
        The plate over observations. "auto" takes the outermost plate of the observed site that has
        latents inside; None says that the function describes one observation.
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
        raise TypeError(
            f"model: expected a NumPyro model, a function; got {type(model).__name__}. Give the "
            "function itself."
        )
    called = partial(model, *args, **with_missing(model, observed, args, dict(kwargs or {})))
    name = f"NumPyro model {getattr(model, '__name__', type(model).__name__)}"
    # Validation adds a branch to every density, so that none is smooth; supports are checked where
    # that matters.
    with numpyro.validation_enabled(False), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "subsample_size does not match", UserWarning)
        return adapted(called, name, observed, dict(params or {}), plate)


def with_missing(model: Callable, observed: str, args: tuple, kwargs: dict) -> dict:
    """None for an argument of the observed site's name that has no default and is not given."""
    try:
        taken = list(signature(model).parameters.values())[len(args) :]
    except (TypeError, ValueError):
        return kwargs
    needs = [
        one.name
        for one in taken
        if one.default is Parameter.empty and one.kind is not Parameter.VAR_POSITIONAL
    ]
    return {observed: None} | kwargs if observed in needs else kwargs


@float64
def adapted(model: Callable, name: str, observed: str, params: dict, plate: str | None):
    forget_narrow_constants(model)
    first = run(model, {}, jax.random.key(0))
    sites = roles(first, name, observed, params, plate)
    fixed = sorted_params(
        params, {key: site["value"] for key, site in sites.fixed.items()}, first, name
    )
    start = fixed.start
    program = Program(model, observed, sites, first, start, fixed.every)
    sample = traced(program.sample, start, jax.random.key(0))
    z, x = sample(start, jax.random.key(0))
    program.check_index(start, x, z)
    return fixed.given_to(program.traced_model(name, sample, start, x, z))


def forget_narrow_constants(model: Callable) -> None:
    """NumPy constants of the model that JAX holds in single precision, since another program has
    used them, are read anew.

    JAX keeps the form in which a program took a NumPy array as long as that program lives, and
    takes it for the same array in double precision too, where its type is wrong. This may go when
    constants have the precision of their own context, see
    https://github.com/jax-ml/jax/issues/5982.
    """

    def laws(key):
        return [
            jax.tree.leaves(site["fn"])
            for site in run(model, {}, key).values()
            if site["type"] == "sample"
        ]

    try:
        closed = jax.make_jaxpr(laws)(jax.random.key(0))
        literals = [
            one.val for step in closed.jaxpr.eqns for one in step.invars if isinstance(one, Literal)
        ]
        found = any(
            np.result_type(one) in NARROW
            for one in (*closed.consts, *literals)
            if not isinstance(one, jax.Array)
        )
    except ValueError:
        found = runs_in_single_precision(laws)
    if found:
        jax.clear_caches()


def runs_in_single_precision(function: Callable) -> bool:
    try:
        with jax.enable_x64(False):
            jax.eval_shape(function, jax.random.key(0))
    except ValueError:
        return False  # for a reason of its own, which the next run tells
    return True


def roles(trace: dict, name: str, observed: str, params: dict, plate: str | None) -> Sites:
    """Which sites are local, which are summed out, which need a value in params."""
    samples = {key: site for key, site in trace.items() if site["type"] == "sample"}
    if observed not in samples:
        raise ValueError(
            f"observed: expected a site of {name}; there is no {observed!r}. Its sites: "
            f"{', '.join(samples) or 'none'}."
        )
    if others := [key for key, site in samples.items() if site["is_observed"] and key != observed]:
        raise ValueError(
            f"observed: expected {observed!r} to be the only observed site of {name}; "
            f"{', '.join(map(repr, others))} is observed too (a factor counts as observed). Join "
            "them in one site, or remove obs."
        )
    latents = {key: site for key, site in samples.items() if key != observed}
    over = observation_plate(latents, samples[observed], params, plate)
    inside = {key: site for key, site in latents.items() if over is None or over in plates_of(site)}
    fixed = {
        key: site
        for key, site in latents.items()
        if key not in inside or (over is None and key in params)
    }
    fixed |= {key: site for key, site in trace.items() if site["type"] == "param"}
    if missing := [key for key in fixed if key not in params]:
        where = f"outside the plate {over!r}" if over else "parameters"
        raise ValueError(
            f"params: expected values or draws for the global sites of {name}; "
            f"{', '.join(map(repr, missing))} are {where} and have none. Give them, or say "
            "plate=None if the function describes one observation."
        )
    local = {key: site for key, site in inside.items() if key not in fixed}
    for key in (*local, observed):
        check_whole(samples[key], trace.get(over))
        if over in plates_of(samples[key]) and "_scan_current_index" in samples[key]["infer"]:
            raise ValueError(
                f"model: expected the plate of observations, {over!r}, outside of a scan; site "
                f"{key!r} has it inside, where single observations cannot be taken from it. Write "
                "the function for one observation, without that plate."
            )
    discrete = {key: site for key, site in local.items() if is_discrete(site["fn"])}
    real = {key: site for key, site in local.items() if key not in discrete}
    count = (
        1
        if over is None
        else next(one.size for one in samples[observed]["cond_indep_stack"] if one.name == over)
    )
    return Sites(real, discrete, fixed, over, count)


def check_whole(site: dict, plate: dict | None) -> None:
    """Every term of a site's density counts, and counts once, but for the weights that a plate of
    observations has by itself.
    """
    own = 1.0 if plate is None else plate["args"][0] / len(plate["value"])
    if site["scale"] is not None and not np.allclose(site["scale"], own):
        raise ValueError(
            f"model: expected no scaled densities; site {site['name']!r} has a scale. Remove the "
            "handler."
        )
    if has_mask(site["fn"]):
        raise ValueError(
            f"model: expected whole densities; site {site['name']!r} has a mask. Missing values "
            "are not supported. Remove it."
        )


def plates_of(site) -> list[str]:
    """The outermost first."""
    return [frame.name for frame in reversed(site["cond_indep_stack"])]


def observation_plate(latents: dict, observed, params: dict, plate: str | None) -> str | None:
    """The plate over observations: as named, or the outermost of the observed site that holds the
    most latents, if any.
    """
    own = plates_of(observed)
    if plate is None or plate != "auto":
        if plate is not None and plate not in own:
            raise ValueError(
                f"plate: expected a plate of the observed site, {own or 'which has none'}; got "
                f"{plate!r}. Check the name."
            )
        return plate
    held = {
        one: sum(one in plates_of(site) for key, site in latents.items() if key not in params)
        for one in own
    }
    held = (
        held
        if any(held.values())
        else {one: sum(one in plates_of(site) for site in latents.values()) for one in own}
    )
    best = max(held.values(), default=0)
    return next((one for one in own if held[one] == best), None) if best else None

"""Models of PyMC."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import float64
from ..models import PosteriorPredictive
from ..supports import REAL, Support
from ._laws import Region, Unknown, as_support, fixed_ends, pymc_region
from ._packages import needed, settings_kept
from ._program import ProgramModel, find_quadratic, sorted_params, traced


def from_pymc(
    model: Any, observed: str = "x", params: Mapping[str, Any] | None = None
) -> ProgramModel | PosteriorPredictive:
    """A PyMC model of one observation, through its log densities in JAX.

    Build the model on one observation (``build(x[0])`` or ``build(x[:1])`` where ``build`` makes it
    from data): PyMC has no plates from which to read what belongs to which. Its unobserved
    variables are the latents z of that observation, except those in ``params``.

    Parameters
    ----------
    model : pymc.Model
    observed : str
        The name of the observed variable. The value that it has in the model is not used.
    params : dict, optional
        Values of global variables, or draws of them along leading axes
        (``idata.posterior["w"].values``); with draws the result is a ``PosteriorPredictive``.

    Examples
    --------
    >>> import numpy as np, pymc as pm, lksd
    >>> with pm.Model() as ppca:
    ...     z = pm.Normal("z", shape=1)
    ...     x = pm.Normal("x", np.ones((3, 1)) @ z, 0.5, observed=np.zeros(3))
    >>> model = lksd.adapters.from_pymc(ppca, observed="x")
    >>> x = np.random.default_rng(0).normal(size=(10, 3))
    >>> native = lksd.models.PPCA(np.ones((3, 1)), 0.5)
    >>> np.allclose(lksd.estimate_scores(model, x).score, lksd.estimate_scores(native, x).score)
    True
    """
    pymc = needed("from_pymc", "pymc", "pymc")
    needed("from_pymc", "pymc.sampling.jax", "pymc")
    if not isinstance(model, pymc.Model):
        raise TypeError(
            f"model: expected a pymc.Model; got {type(model).__name__}. Give what `with pm.Model() "
            "as model:` names."
        )
    with settings_kept(), warnings.catch_warnings():
        # of which JAX makes no use, while PyTensor looks for it whatever it compiles for
        # (https://github.com/pymc-devs/pytensor/pull/1165)
        warnings.filterwarnings("ignore", "PyTensor could not link to a BLAS", UserWarning)
        return adapted(pymc, model, observed, dict(params or {}))


@float64
def adapted(pymc, model, observed: str, params: dict):
    name = f"PyMC model {model.name}".rstrip()
    graph = Graph(pymc, model, name, observed, params)
    fixed = sorted_params(
        params, {rv.name: graph.shapes[rv.name] for rv in graph.fixed}, graph.names, name
    )
    start, sample = fixed.start, graph.sample()
    z, x = sample(start, jax.random.key(0))
    parts = {
        "log_prior": traced(graph.log_prior(), start, z),
        "log_likelihood": traced(graph.log_likelihood(), start, x, z),
        "sample": traced(sample, start, jax.random.key(0)),
        "unconstrain": traced(graph.unconstrain(), start, z),
    }
    parts["constrain"] = traced(graph.constrain(), start, parts["unconstrain"](start, z))
    support = graph.support(start, z, fixed.every)
    quadratic = find_quadratic(parts, start, x, z, graph.free)
    return fixed.given_to(
        ProgramModel(name, parts, start, quadratic, x.size, support=support, columns=graph.columns)
    )


class Graph:
    """The variables of a model by their roles, and its densities as JAX functions of parameters, x
    and z.
    """

    def __init__(self, pymc, model, name: str, observed: str, params: dict):
        self.pymc, self.model, self.names = pymc, model, list(model.named_vars)
        variables = {rv.name: rv for rv in (*model.free_RVs, *model.observed_RVs)}
        if observed not in variables:
            listed = ", ".join(variables) or "none"
            raise ValueError(
                f"observed: expected a variable of {name}; there is no {observed!r}. Its "
                f"variables: {listed}."
            )
        others = [rv.name for rv in (*model.observed_RVs, *model.potentials) if rv.name != observed]
        if others:
            raise ValueError(
                f"observed: expected {observed!r} to be the only observed variable of {name}; "
                f"{', '.join(map(repr, others))} is observed too (a potential counts as observed). "
                "Join them in one variable."
            )
        self.x = variables.pop(observed)
        self.fixed = [rv for key, rv in variables.items() if key in params]
        self.local = [rv for key, rv in variables.items() if key not in params]
        discrete = [
            rv.name for rv in (self.x, *self.local) if rv.dtype.startswith(("int", "uint", "bool"))
        ]
        if discrete:
            raise ValueError(
                f"model: expected real variables; {', '.join(map(repr, discrete))} of {name} are "
                "integers. Sum a discrete latent out with pm.Mixture, or write the model in "
                "NumPyro, where it is summed out here."
            )
        every = [*self.fixed, *self.local, self.x]
        run = self.simulated([], every)
        self.shapes = {
            rv.name: one
            for rv, one in zip(every, jax.eval_shape(run, {}, jax.random.key(0)), strict=True)
        }
        self.check_one_observation(name, observed)

    def check_one_observation(self, name: str, observed: str) -> None:
        shape = self.shapes[observed].shape
        rows = [
            rv.name
            for rv in self.local
            if len(shape) > 1 and shape[0] > 1 and self.shapes[rv.name].shape[:1] == shape[:1]
        ]
        if rows:
            raise ValueError(
                f"model: expected a model of one observation; {observed!r} of {name} has shape "
                f"{shape}, and {', '.join(map(repr, rows))} a first axis of {shape[0]} too. Build "
                "the model on one row of the data, x[:1], and give global variables in params."
            )

    @property
    def free(self) -> bool:
        return all(self.model.rvs_to_transforms[rv] is None for rv in self.local)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns of x, where the model has them as coordinates."""
        dims = self.model.named_vars_to_dims.get(self.x.name) or (None,)
        names = self.model.coords.get(dims[-1]) or ()
        size = int(np.prod(self.shapes[self.x.name].shape))
        return (
            tuple(names)
            if len(names) == size and all(isinstance(one, str) for one in names)
            else None
        )

    def support(self, params: dict, z: dict, draws: list[dict]) -> Support | None:
        """Where x can lie; None where PyMC does not know it."""
        try:
            region = pymc_region(self.x)
        except Unknown as error:
            raise ValueError(
                "observed: expected a variable of real numbers, in intervals or on a simplex; "
                f"{self.x.name!r} has {error}. Use another distribution, or transform x, in the "
                "data and in the model."
            ) from error
        if region is None or region.free:
            return None if region is None else REAL
        if region.simplex:
            return Support(simplex=region.simplex)
        return as_support(*fixed_ends(self.x.name, self.ends(region), params, z, draws))

    def ends(self, region: Region) -> Callable:
        """The ends (C, D) of the intervals of x as a function of parameters and latents."""
        import pytensor.tensor as pt

        values = self.values((*self.fixed, *self.local))
        sides = [
            pt.as_tensor(end, dtype="float64")
            for side in (region.lower, region.upper)
            for end in side
        ]
        function = jaxified(list(values.values()), replaced(sides, values))
        shape = self.shapes[self.x.name].shape

        def ends(params, z):
            found = [
                jnp.broadcast_to(end, shape).ravel() for end in function(*self.listed(params, z))
            ]
            return jnp.stack(found[: len(region.lower)]), jnp.stack(found[len(region.lower) :])

        return ends

    def values(self, rvs) -> dict:
        return {rv: rv.type(name=rv.name) for rv in rvs}

    def log_prior(self) -> Callable:
        values = self.values((*self.fixed, *self.local))
        terms = self.pymc.logprob.conditional_logp(values)
        function = jaxified(list(values.values()), [total(terms[values[rv]] for rv in self.local)])
        return lambda params, z: function(*self.listed(params, z))[0]

    def log_likelihood(self) -> Callable:
        values = self.values((*self.fixed, *self.local, self.x))
        terms = self.pymc.logprob.conditional_logp(values)
        function = jaxified(list(values.values()), [terms[values[self.x]].sum()])
        shape = self.shapes[self.x.name].shape
        return lambda params, x, z: function(*self.listed(params, z), x.reshape(shape))[0]

    def constrain(self) -> Callable:
        """z and the log determinant of its Jacobian; a transform may depend on
        variables before it.
        """
        known, inputs, jacobians = self.values(self.fixed), [], []

        for rv in self.local:
            transform, value = self.model.rvs_to_transforms[rv], self.model.rvs_to_values[rv]
            u = value.type(name=rv.name)
            inputs.append(u)
            z, jacobian = (
                (u, u.sum() * 0)
                if transform is None
                else (
                    transform.backward(u, *rv.owner.inputs),
                    transform.log_jac_det(u, *rv.owner.inputs).sum(),
                )
            )
            known[rv], jacobian = replaced([z, jacobian], known)
            jacobians.append(jacobian)
        function = jaxified(
            [*(known[rv] for rv in self.fixed), *inputs],
            [*(known[rv] for rv in self.local), total(jacobians)],
        )

        def constrain(params, u):
            *z, jacobian = function(*self.listed(params, u))
            return self.named(z), jacobian

        return constrain

    def unconstrain(self) -> Callable:

        known = self.values((*self.fixed, *self.local))
        transforms = [self.model.rvs_to_transforms[rv] for rv in self.local]
        free = [
            known[rv] if one is None else one.forward(known[rv], *rv.owner.inputs)
            for rv, one in zip(self.local, transforms, strict=True)
        ]
        if not free:
            return lambda params, z: {}
        function = jaxified(list(known.values()), replaced(free, known))
        return lambda params, z: self.named(function(*self.listed(params, z)))

    def sample(self) -> Callable:
        run = self.simulated(self.fixed, [*self.local, self.x])

        def sample(params, key):
            *z, x = run(params, key)
            return self.named(z), jnp.ravel(x)

        return sample

    def simulated(self, fixed: list, rvs: list) -> Callable:
        """Draws of variables, with JAX's random numbers, as a function of the values of those that
        are fixed, and a key.
        """

        values = self.values(fixed)
        try:
            return self.drawn(values, replaced(rvs, values))
        except Missing:
            return self.drawn(values, self.by_quantiles(values, rvs))

    def drawn(self, values: dict, outputs: list) -> Callable:
        from pytensor.compile import SharedVariable
        from pytensor.graph.traversal import graph_inputs
        from pytensor.tensor.random.type import RandomType

        shared = [
            one
            for one in graph_inputs(outputs)
            if isinstance(one, SharedVariable) and isinstance(one.type, RandomType)
        ]
        generators: dict[Any, Any] = {one: one.type() for one in shared}
        function = jaxified([*values.values(), *generators.values()], replaced(outputs, generators))

        def run(params, key):
            keys = jax.random.split(key, len(shared))
            return function(
                *(params[rv.name] for rv in values), *({"jax_state": one} for one in keys)
            )

        jax.eval_shape(run, {rv.name: np.zeros(shape_of(rv)) for rv in values}, jax.random.key(0))
        return run

    def by_quantiles(self, values: dict, rvs: list) -> list:
        """Draws of variables as quantiles of uniform ones, where PyMC has them: JAX cannot draw
        from all distributions.
        """
        import pytensor.tensor as pt

        known = dict(values)
        for number, rv in enumerate(rvs):
            alone = self.values((*values, *rvs[:number]))
            drawn = rv
            try:
                self.drawn(alone, replaced([rv], alone))
            except Missing as error:
                try:
                    drawn = quantile(self.pymc, rv, pt.random.uniform(size=shape_of(rv)))
                except NotImplementedError:
                    raise error from None
            known[rv] = replaced([drawn], known)[0]
        return [known[rv] for rv in rvs]

    def listed(self, params: dict, z: dict) -> list:
        return [*(params[rv.name] for rv in self.fixed), *(z[rv.name] for rv in self.local)]

    def named(self, z) -> dict:
        return {rv.name: value for rv, value in zip(self.local, z, strict=True)}


def replaced(outputs: list, values: dict) -> list:
    """Graphs with these values in place of variables."""
    from pytensor.graph.replace import clone_replace

    return clone_replace(outputs, replace=dict(values))


def quantile(pymc, rv, probability):
    """Where the distribution function of a variable has this value; PyMC has none for the truncated
    normal distribution.
    """
    import pytensor.tensor as pt

    if not isinstance(rv.owner.op, pymc.TruncatedNormal.rv_type):
        return pymc.icdf(rv, probability)
    mean, deviation, *ends = rv.owner.op.dist_params(rv.owner)
    low, high = (pt.exp(pymc.logcdf(pymc.Normal.dist(mean, deviation), end)) for end in ends)
    return mean + deviation * np.sqrt(2) * pt.erfinv(2 * (low + (high - low) * probability) - 1)


def shape_of(rv) -> tuple[int, ...]:
    """The shape of a variable, computed where its type does not say it."""
    return (
        rv.type.shape if None not in rv.type.shape else tuple(int(size) for size in rv.shape.eval())
    )


def total(terms):
    """The sum of all entries of all terms."""
    import pytensor.tensor as pt

    return pt.add(pt.constant(0.0), pt.constant(0.0), *(term.sum() for term in terms))


class Missing(ValueError):
    """A part of a model of which there is no form in JAX."""


def jaxified(inputs: list, outputs: list) -> Callable:
    """A graph of PyTensor as a function in JAX."""
    from pymc.sampling.jax import get_jaxified_graph

    def checked(function: Callable) -> Callable:
        def call(*arguments, **named):
            try:
                return function(*arguments, **named)
            except NotImplementedError as error:
                raise Missing(
                    "model: expected distributions that PyMC has in JAX; it lacks one "
                    f"({str(error).splitlines()[0]}). Use another distribution, write the model in "
                    "NumPyro, or give your own draws to lksd.adapters.from_draws."
                ) from error

        return call

    return checked(checked(get_jaxified_graph)(inputs=inputs, outputs=outputs))

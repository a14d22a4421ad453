"""Do a model's densities fit what it simulates? Stein's identity on its own draws, before they are
trusted.

A pair (z, x) that the model simulates has z distributed as the posterior given x, so that no chain
is needed: one gradient a pair. What fails on some draws is looked at again, alone, on four times as
many, and reported only if it fails there too.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float
from scipy.special import stdtrit

from .._jax import compiled, float64, once
from .._keys import simulation_key
from .._text import reason_of
from .._validation import warn
from ..models import PosteriorPredictive
from ..models.base import Discrete, HasGibbs, HasPosterior, Simulates, float64_leaves, kind_of
from ..models.behaviour import behaviour
from ..models.simulation import of_length
from ..options import Chains
from ..samplers import Exact, Gibbs, WithinGibbs
from ..samplers.base import split_latent
from .chains import Point, conditional_score, model_at
from .estimate import check_model
from .exact import check_exact, exact_at, exact_score, has_exact_ratios
from .plans import check_latent, choose_sampler, kinds, latent_shapes
from .result import ScoreEstimate
from .watch import control_variate
from .witnesses import PAIRS, Chart, Frame, Neighbours, Regression, Statistics, regression

NUMBERS = 4_096  # simulated in all, in observations of D numbers
# observations: where scores are exact, and so cheap, and where chains run
FEWEST = {True: 40, False: 512}
BATCH = 256
AGAIN = 4  # times as many draws, to confirm
LENIENT, STRICT = 0.05, 0.0001  # levels, of all statistics together and of those looked at again
CANDIDATES = 8  # looked at again
FINITE = 0.99  # share of draws at which scores must be finite
CAUSES = (
    "Usually a term in x is missing from the density, a sign or a Jacobian is wrong, x has a "
    "boundary that support does not declare, or sample draws from another law; the verdict then "
    "rests on wrong scores. check=False turns this check off."
)


class Draws(NamedTuple):
    """m pairs of latent and observation, and what the model says of them."""

    x: np.ndarray  # (m, D)
    score: np.ndarray  # (m, D); of a discrete model the ratios (m, D, 2) at its neighbours
    u: Float[np.ndarray, "m q"]  # the real part of the latent, unconstrained
    # (m, q), the gradient of log p(x, z) in u; (m, 0) where its normaliser is unknown
    slope: np.ndarray
    integers: Float[np.ndarray, "m r"]  # the rest of the latent

    def rows(self, kept) -> Draws:
        return Draws(*(part[kept] for part in self))


class Way(NamedTuple):
    """How the scores of a call come about."""

    length: int
    exact: bool
    move: str | None  # the model's own draw of z, if it is used


def check_identities(
    models: dict[str, Any], x: np.ndarray, seed: int, chains: Chains, coordinates=None
) -> None:
    """A warning for each model that does not fit its own draws, which are as long as the
    observations ``x``.
    """
    for name, model in models.items():
        if not is_open(model):
            continue
        prefix = f"{name}: " if name else ""
        length = int(np.median((x >= 0).sum(1))) if model.any_length else x.shape[1]
        try:
            check_model(model)
            found = check_identity(
                model, x[:1, :length], seed, chains.exact, chains.sampler, coordinates
            )
        except ValueError as error:
            raise ValueError(f"{prefix}{error}") from error
        for misfit in found:
            warn(f"{prefix}{misfit}")


def is_open(model: Any) -> bool:
    """Whether a model can simulate and is somebody else's: those that come with this library are
    proved by its tests.

    The network of a ``Decoder`` is somebody else's, but its densities and its draws use it in the
    same way.
    """
    if isinstance(model, ScoreEstimate) or not isinstance(model, Simulates):
        return False
    if type(model) is PosteriorPredictive:
        return is_open(model.models)
    return not type(model).__module__.startswith("lksd.models.")


@float64
def check_identity(
    model: Any, one, seed: int, exact=None, sampler=None, coordinates=None
) -> tuple[str, ...]:
    """What is wrong with the scores of a model at its own draws, which have the shape of the
    observations ``one`` (1, D).

    ``coordinates`` map x to reals without a boundary, in which the scores are used.
    """
    model, point = float64_leaves(model), jnp.asarray(one)
    way = way_of(model, point, exact, sampler)
    count = max(FEWEST[way.exact], NUMBERS // way.length)
    count = count if count < BATCH else -(-count // BATCH) * BATCH
    rng, key = np.random.default_rng(seed), simulation_key(seed)

    def simulate(part: int) -> tuple[Draws, float]:
        arguments = (model, key, jnp.asarray(part), count, way)
        return usable(Draws(*map(np.asarray, program(*arguments)(*arguments))), coordinates)

    draws, finite = simulate(0)
    if finite < FINITE:
        _, finite = several(simulate)
        return (
            (
                f"the scores are finite at {finite:.1%} of {AGAIN * count:,} of the model's own "
                f"draws alone. {CAUSES}",
            )
            if finite < FINITE
            else ()
        )
    if len(draws.x) < FEWEST[True] // 2:  # nearly all outside the coordinates' domain
        return ()
    test = make_test(model, draws, rng)
    candidates = suspects(test.statistics(draws, own=True), len(draws.x))
    if not candidates:
        return ()
    fresh, _ = several(simulate)
    return confirm(candidates, test.statistics(fresh, own=False), len(fresh.x))


def program(*arguments):
    """``joint_draws`` compiled for its arguments; whatever the user's code raises is named."""
    try:
        return compiled(
            joint_draws, *arguments, seen=partial(behaviour, arguments[0], arguments[-1].length)
        )
    except Exception as error:
        raise ValueError(
            f"model: sample(key) of {arguments[0]}, or a density at its draws, fails "
            f"({reason_of(error)}). Write it in jax.numpy and jax.random; check=False leaves this "
            "test of the model out."
        ) from error


def several(simulate) -> tuple[Draws, float]:
    """Fresh draws, to confirm what the first ones show."""
    parts, finite = zip(*(simulate(part) for part in range(1, AGAIN + 1)), strict=True)
    return Draws(*(np.concatenate(part) for part in zip(*parts, strict=True))), float(
        np.mean(finite)
    )


def way_of(model: Any, point, exact: bool | None, sampler) -> Way:
    length, discrete = point.shape[1], isinstance(model, Discrete)
    given, look = (model, point), partial(behaviour, model, length)
    if exact is not False and (
        has_exact_ratios(model, length, exact) if discrete else exact_score(model) is not None
    ):
        check_exact(model, point, neighbours(model, point))
        once(latent_shapes, given, partial(latent_shapes, *given), look)
        return Way(length, exact=True, move=None)
    latent = once(check_latent, given, partial(check_latent, *given), look)
    chosen = choose_sampler(sampler, model, kinds(latent))
    sweeps = isinstance(chosen, (Gibbs, WithinGibbs)) and isinstance(model, HasGibbs)
    move = (
        "gibbs"
        if sweeps
        else "sample_posterior"
        if isinstance(chosen, Exact) and isinstance(model, HasPosterior)
        else None
    )
    return Way(length, exact=False, move=move)


def joint_draws(model: Any, key, part, count: int, way: Way):
    """Pairs that the model simulates, and its scores there; those of every ``part`` are others."""

    def one(key):
        key_pair, key_move = jax.random.split(key)
        z, x = of_length(model, way.length).sample(key_pair)
        x = x.astype(jnp.int32 if isinstance(model, Discrete) else jnp.float64)
        point, nothing = Point(x, neighbours(model, x)), jnp.zeros(0)
        if way.exact:
            return x, exact_at(model, point.x, point.values), nothing, nothing, nothing
        here = model_at(model, point)
        if way.move is not None:  # leaves the law of the pair as it is
            z = (
                here.gibbs(key_move, x, z)
                if way.move == "gibbs"
                else here.sample_posterior(key_move, x)
            )
        u = here.unconstrain(z)
        reals, integers = (ravel_pytree(part)[0].astype(jnp.float64) for part in split_latent(u))
        score = conditional_score(here, point, here.constrain(u), averaged=False)[1].reshape(
            *x.shape, -1
        )
        slope = control_variate(here, x, u) if model.normalised and reals.size else nothing
        return x, score if isinstance(model, Discrete) else score[:, 0], reals, slope, integers

    keys = jax.random.split(jax.random.fold_in(key, part), count).reshape(-1, min(count, BATCH))
    return jax.tree.map(
        lambda found: found.reshape(count, *found.shape[2:]), jax.lax.map(jax.vmap(one), keys)
    )


def neighbours(model: Any, x):
    """The two values beside each of integers, on the cycle of all."""
    return jnp.stack([x + 1, x - 1], -1) % model.n_values if isinstance(model, Discrete) else None


def usable(draws: Draws, coordinates) -> tuple[Draws, float]:
    """The draws inside the coordinates' domain whose scores are finite, in these coordinates, and
    the share that is finite.
    """
    if coordinates is not None:
        draws = draws.rows(coordinates.inside(draws.x).all(1))
        draws = draws._replace(
            x=coordinates.forward(draws.x), score=coordinates.score(draws.x, draws.score)
        )
    # of ratios
    score = (
        draws.score if draws.score.ndim == 2 else np.nan_to_num(draws.score, nan=np.nan, posinf=0.0)
    )
    parts = [part.reshape(len(draws.x), -1) for part in draws._replace(score=score)]
    finite = np.all([np.isfinite(part).all(1) for part in parts], 0)
    return draws.rows(finite), float(np.mean(finite)) if len(finite) else 1.0


class Test(NamedTuple):
    """The statistics of a model, everything in them fixed."""

    size: int | None  # of the alphabet of a discrete model
    sphere: bool
    residual: Regression | None
    frames: tuple[Frame, ...] = ()

    def statistics(self, draws: Draws, own: bool) -> list[Statistics]:
        """``own`` says that these are the draws by which the rest was chosen."""
        pairs = zip(self.charts(draws, own), self.frames, strict=True)
        return [one for chart, frame in pairs for one in chart.statistics(frame)]

    def charts(self, draws: Draws, own: bool) -> list[Chart | Neighbours]:
        x, score, u, slope, integers = draws
        width, latent = x.shape[1], np.hstack([u, integers])
        if self.size is not None or self.sphere:
            found: list[Chart | Neighbours] = [
                Chart(x, score, latent, width, sphere=True)
                if self.size is None
                else Neighbours(x, score, latent, self.size)
            ]
            return [*found, Chart(u, slope, np.hstack([x, integers]), 0)] if slope.size else found
        with_score, others = (u, integers) if slope.size else (slope, latent)
        found = [Chart(np.hstack([x, with_score]), np.hstack([score, slope]), others, width)]
        if self.residual is not None:
            rest, moved = self.residual.apply(x, u, score, slope, own)
            found.append(
                Chart(
                    np.hstack([rest, with_score]),
                    np.hstack([score, moved]),
                    others,
                    width,
                    "residual x",
                )
            )
        return found


def make_test(model: Any, draws: Draws, rng: np.random.Generator) -> Test:
    size = int(model.n_values) if isinstance(model, Discrete) else None
    residual = regression(draws.x, draws.u, rng) if kind_of(model) == "reals" else None
    test = Test(size, model.directional, residual)
    return test._replace(
        frames=tuple(chart.make_frame(rng) for chart in test.charts(draws, own=True))
    )


class Candidate(NamedTuple):
    """One statistic that is too far from zero."""

    order: int
    family: int
    number: int
    t: float


def suspects(found: list[Statistics], m: int) -> list[Candidate]:
    """The worst of each family of statistics that are beyond chance, leniently, half the level
    being that of the pairs.
    """
    counts = {
        pairs: sum(one.mean.size for one in found if (one.order == PAIRS) is pairs)
        for pairs in (False, True)
    }
    limits = {
        pairs: -stdtrit(m - 1, LENIENT / 4 / max(count, 1)) for pairs, count in counts.items()
    }
    beyond = []
    for family, one in enumerate(found):
        t = one.t
        number = int(np.argmax(np.abs(t))) if t.size else 0
        if t.size and abs(t[number]) > limits[one.order == PAIRS]:
            beyond.append(Candidate(one.order, family, number, float(t[number])))
    return sorted(beyond, key=lambda one: -abs(one.t))[:CANDIDATES]


def confirm(candidates: list[Candidate], found: list[Statistics], m: int) -> tuple[str, ...]:
    """The simplest of the statistics that fail on fresh draws too, in the same direction."""
    limit = -stdtrit(m - 1, STRICT / len(candidates))
    for _, family, number, t in sorted(candidates):
        if np.sign(t) * found[family].t[number] > limit:
            return (note_of(found[family], number, m),)
    return ()


def note_of(found: Statistics, number: int, m: int) -> str:
    mean, error = found.mean[number] + found.expected, found.error[number]
    return (
        f"the model does not fit its own draws. Over {m:,} pairs (z, x) from sample(key) the mean "
        f"of {found.name} at {found.place(number)} is {mean:.3g} +- {error:.2g}; it should be "
        f"{found.expected}, w being the coordinate in units of its spread. {CAUSES}"
    )

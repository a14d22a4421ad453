"""Bounded data: coordinates without a boundary, one set for all models of a call."""

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import pandas
import polars
import pytest
from bounded import FAMILIES, Own, samples
from numpyro import distributions as dist
from scipy.stats import binom

import lksd
from lksd.problem import moved
from lksd.supports import Coordinates, Support, read_support

RNG = np.random.default_rng(0)
INSIDE = {  # points inside of a declared support
    "real": RNG.normal(size=(20, 3)),
    "positive": RNG.exponential(size=(20, 3)),
    "unit": RNG.uniform(size=(20, 3)),
    "simplex": RNG.dirichlet(np.ones(3), 20),
    (1.0, 3.0): RNG.uniform(1, 3, size=(20, 3)),
    (-np.inf, 2.0): 2 - RNG.exponential(size=(20, 3)),
    ("real", "positive", (-1, 1)): np.stack(
        [RNG.normal(size=20), RNG.exponential(size=20), RNG.uniform(-1, 1, 20)], 1
    ),
}


def back(coordinates: Coordinates, u):
    """x from u, in JAX."""
    if coordinates.simplex:
        return jax.nn.softmax(jnp.asarray(coordinates.basis) @ u)

    def one(u, low: float, high: float):
        if np.isfinite(low) and np.isfinite(high):
            return low + (high - low) * jax.nn.sigmoid(u)
        return (
            low + jnp.exp(u) if np.isfinite(low) else high - jnp.exp(-u) if np.isfinite(high) else u
        )

    return jnp.stack(
        [
            one(*each)
            for each in zip(u, coordinates.lower.tolist(), coordinates.upper.tolist(), strict=True)
        ]
    )


@pytest.mark.parametrize("declared", INSIDE, ids=str)
def test_scores_in_coordinates_are_those_of_the_transformed_density(declared):
    x = INSIDE[declared]
    coordinates = Coordinates.of(read_support(declared, 3), 3)
    assert coordinates.inside(x).all()

    def log_density(x):
        return jnp.sum(jnp.sin(3 * x) + x**2 * jnp.arange(1.0, 4.0))

    def transformed(u):
        jacobian = jax.jacfwd(lambda v: back(coordinates, v)[: u.size])(u)
        return log_density(back(coordinates, u)) + jnp.linalg.slogdet(jacobian)[1]

    with jax.enable_x64(True):
        u = coordinates.forward(x)
        raw = np.asarray(jax.vmap(jax.grad(log_density))(x))
        exact = np.asarray(jax.vmap(jax.grad(transformed))(u))
        assert np.allclose(jax.vmap(lambda v: back(coordinates, v))(u), x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(coordinates.score(x, raw), exact, rtol=1e-9, atol=1e-9)
    many = np.stack([raw, 2 * raw], 1)[:, None]  # batch means, (n, C, B, D)
    np.testing.assert_allclose(
        coordinates.score(x, many)[:, 0, 1], coordinates.score(x, 2 * raw), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("half", "expected one of"),
        (3, "expected 'real'"),
        ((1, 0), "below the upper"),
        (("simplex", "real"), "takes all columns"),
    ],
)
def test_a_support_that_means_nothing_is_refused(declared, said):
    with pytest.raises((ValueError, TypeError), match=said):
        read_support(declared, 2)


@pytest.mark.parametrize("name", ["exponential", "uniform", "Dirichlet 1"])
def test_true_models_of_bounded_data_are_kept_and_wrong_ones_rejected(name):
    family = FAMILIES[name]
    truth, wrong = family.own(family.truth), family.own(family.wrong)
    kept = [lksd.goodness_of_fit(x, truth).reject for x in samples(family, 20, 200)]
    lost = [ksd.compare(x, truth, wrong).reject for x in samples(family, 10, 200, seed=1)]
    found = [lksd.goodness_of_fit(x, wrong).reject for x in samples(family, 10, 200, seed=2)]
    assert binom.sf(sum(kept) - 1, 20, 0.05) > 0.01
    assert binom.sf(sum(lost) - 1, 10, 0.05) > 0.01
    assert binom.cdf(sum(found), 10, 0.8) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "through"), [(name, through) for name in FAMILIES for through in FAMILIES[name].ways]
)
def test_levels_and_powers_on_bounded_data(name, through):
    """All ways see the same samples, so that they differ by rounding alone."""
    family = FAMILIES[name]
    truth, wrong = (getattr(family, through)(law) for law in (family.truth, family.wrong))
    sets = samples(family, 200, 200)
    kept = sum(lksd.goodness_of_fit(x, truth).reject for x in sets)
    found = sum(lksd.goodness_of_fit(x, wrong).reject for x in sets)
    lost = sum(ksd.compare(x, truth, wrong).reject for x in sets)
    print(
        f"{name}, {through}: truth rejected {kept}, wrong scale {found}, truth loses {lost} of 200"
    )
    assert kept <= 22
    assert found >= 160
    assert binom.sf(lost - 1, 200, 0.05) > 0.01


class Frailty(lksd.models.LatentVariableModel):
    """Two survival times with a common gamma frailty."""

    rate: float = 1.0
    support = "positive"

    def constrain(self, u):
        return jnp.exp(u)

    def unconstrain(self, z):
        return jnp.log(z)

    def log_prior(self, z):
        return 2 * jnp.log(z) - z

    def log_likelihood(self, x, z):
        return jnp.sum(jnp.log(z * self.rate) - z * self.rate * x)

    def log_density(self, x):
        """log p(x), the frailty integrated out: E[z^2 exp(-z t)] for z ~ Gamma(3)."""
        return 2 * np.log(self.rate) + np.log(12) - 5 * np.log1p(self.rate * x.sum(1))

    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.gamma(key_z, 3.0)
        return z, jax.random.exponential(key_x, (2,)) / (z * self.rate)


def survival_times(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(n, 2)) / rng.gamma(3, size=(n, 1))


def test_survival_times_with_frailty_are_compared_as_the_likelihood_compares_them():
    p, q = Frailty(), Frailty(0.6)
    x = survival_times(300, 0)
    assert (p.log_density(x) - q.log_density(x)).sum() > 10
    result = ksd.compare(x, p, q, alternative="two-sided")
    assert result.reject
    assert result.difference < 0
    assert "log(x)" in result.operator
    assert any("coordinates without a boundary" in note for note in result.notes)
    assert not lksd.goodness_of_fit(x, p).reject


def test_scores_by_chains_in_coordinates_have_honest_errors():
    x = survival_times(60, 1)
    estimate = lksd.estimate_scores(Frailty(), x, control_variates="none", draws=2_000)
    exact = np.repeat(-5 / (1 + x.sum(1)), 2).reshape(-1, 2)
    coordinates = Coordinates.of(estimate.support, 2)
    there = moved(estimate, x, coordinates)
    z = (there.score - coordinates.score(x, exact)) / there.mcse
    assert 0.5 < np.mean(z**2) < 1.8


def normal(mean: float, support="real") -> Own:
    return Own(dist.Normal(mean, 1.0), support)


def test_a_model_with_mass_outside_of_the_domain_is_scored_as_restricted_to_it():
    x = samples(FAMILIES["half-normal"], 1, 200)[0]
    half, whole = Own(dist.HalfNormal(1.0), "positive"), normal(0.0)
    result = ksd.compare(x, half, whole)  # restricted to positive numbers they are the same
    assert result.indistinguishable
    assert any("restricted" in note and "Q" in note for note in result.notes)
    undeclared = ksd.compare(x, half, normal(0.0, None))
    assert any("no support is declared by Q" in note for note in undeclared.notes)
    ranking = ksd.rank(x, {"half": half, "far": normal(2.0), "near": normal(0.5)})
    assert ranking.names[0] == "half"
    assert "log(x)" in ranking.operator


def test_a_model_whose_support_misses_a_datum_is_named():
    x = np.array([[0.5], [0.2], [1.5], [0.7], [0.3]])
    with pytest.raises(
        ValueError,
        match=r"Q \(Own\) describes numbers between 0 and 1; observation 2 has 1.5 in column 0",
    ):
        ksd.compare(x, Own(dist.Exponential(1.0), "positive"), Own(dist.Beta(1.0, 1.0), "unit"))


@pytest.mark.parametrize(
    ("value", "law", "support"),
    [(0.0, dist.Exponential(1.0), "positive"), (1.0, dist.Beta(2.0, 2.0), "unit")],
)
def test_exact_values_at_an_end_are_refused(value, law, support):
    x = np.array([[0.5], [0.2], [value], [0.7], [0.3]])
    with pytest.raises(
        ValueError, match=r"observation 2 has .* No density describes exact values at an end"
    ):
        lksd.goodness_of_fit(x, Own(law, support))


class Above(lksd.models.LatentVariableModel):
    """Waiting times after ``start``, a number of the model that is an end of its support too."""

    start: float
    rate: float

    @property
    def support(self):
        return (self.start, np.inf)

    def log_prior(self, z):
        return -(z**2) / 2

    def log_likelihood(self, x, z):
        return -self.rate * jnp.sum(x)

    def sample(self, key):
        keys = jax.random.split(key)
        return jax.random.normal(keys[0]), self.start + jax.random.exponential(
            keys[1], (1,)
        ) / self.rate


@pytest.mark.parametrize("number", [float, np.asarray, jnp.asarray])
def test_bounds_may_be_fields_of_a_model(number):
    x = 2 + np.random.default_rng(0).exponential(size=(50, 1))
    result = ksd.compare(x, Above(number(2.0), 3.0), Above(number(2.0), 1.0))
    assert result.operator == "Langevin, u = log(x - 2)"
    assert lksd.goodness_of_fit(x, Own(dist.Uniform(1.0, 30.0), (1.0, 30.0))).operator.startswith(
        "Langevin, u = log((x - 1)"
    )


def test_a_composition_is_not_compared_with_a_density_on_all_of_space():
    x = RNG.dirichlet(np.ones(3), 50)
    composition = Own(dist.Dirichlet(jnp.ones(3)), "simplex")
    with pytest.raises(ValueError, match="simplex"):
        ksd.compare(x, composition, lksd.models.PPCA(np.ones((3, 1)), 1.0))
    with pytest.raises(ValueError, match="observation 4"):
        lksd.goodness_of_fit(np.where(np.arange(50)[:, None] == 4, 0.5, x), composition)


@pytest.mark.parametrize(("name", "support"), [("exponential", "positive"), ("uniform", "unit")])
def test_data_that_look_bounded_ask_for_a_declaration(name, support):
    family = FAMILIES[name]
    x = samples(family, 1, 100)[0][:, :1]
    with pytest.warns(lksd.LksdWarning, match=f"declare support = '{support}'"):
        result = ksd.compare(x, normal(0.0, None), normal(0.5, None), check=False)
    assert any("declare" in note for note in result.notes)
    ksd.compare(x, normal(0.0), normal(0.5))  # warnings are errors in these tests


def test_smoothing_and_foreign_holdouts_are_refused_in_coordinates():
    x = samples(FAMILIES["exponential"], 1, 50)[0]
    model, other = Own(dist.Exponential(1.0), "positive"), Own(dist.Exponential(2.0), "positive")
    with pytest.raises(ValueError, match="smooth: expected models of all real numbers"):
        ksd.compare(x, model, other, smooth="auto")
    with pytest.raises(ValueError, match=r"holdout: .* row 0 lies outside"):
        ksd.compare(x, model, other, holdout=-x)


def test_a_kernel_that_vanishes_at_the_edges_keeps_the_data_as_they_are():
    x = samples(FAMILIES["uniform"], 1, 100)[0][:, :1]
    kernel = lksd.kernels.Weighted(lksd.kernels.IMQ(), lksd.kernels.BoxBump(0.0, 1.0))
    declared, silent = (Own(dist.Beta(1.0, 1.0), support) for support in ("unit", None))
    result = lksd.goodness_of_fit(x, declared, kernel=kernel)
    assert result.operator == "Langevin"
    assert any("kernel's weight" in note for note in result.notes)
    assert lksd.goodness_of_fit(x, silent, kernel=kernel).ksd == result.ksd


def test_scores_keep_their_support_in_a_file(tmp_path):
    x = samples(FAMILIES["exponential"], 1, 60)[0]
    models = [Own(dist.Exponential(rate), "positive") for rate in (1.0, 2.0)]
    scores = [lksd.estimate_scores(model, x) for model in models]
    for number, one in enumerate(scores):
        one.save(tmp_path / f"{number}.npz")
    loaded = [lksd.load_scores(tmp_path / f"{number}.npz") for number in range(2)]
    assert loaded[0].support == Support((0.0,), (np.inf,))
    assert ksd.compare(x, *loaded).statistic == ksd.compare(x, *models).statistic


def test_the_mmd_stands_in_the_same_coordinates():
    x = samples(FAMILIES["gamma 3"], 1, 200)[0]
    result = ksd.compare(x, normal(3.0), Own(dist.Gamma(3.0, 1.0), "positive"), also_mmd=True)
    assert result.mmd.difference > 0
    assert np.isfinite(result.mmd.statistic)


# ------------------------------------------------------------- integers


def test_integers_are_refused_by_a_model_that_declares_nothing():
    x = np.random.default_rng(0).poisson(3, size=(60, 2))
    model = Own(dist.Normal(3.0, 2.0), None, 2)
    for data in (x, x.astype(float), np.stack([RNG.normal(size=60), x[:, 0]], 1)):
        with pytest.raises(ValueError, match=r"n_values .*counts.*support = 'real'"):
            ksd.compare(data, model, Own(dist.Normal(2.0, 2.0), None, 2))
        with pytest.raises(ValueError, match="holds integers only"):
            lksd.estimate_scores(model, data)
    result = ksd.compare(
        x, Own(dist.Normal(3.0, 2.0), "real", 2), Own(dist.Normal(2.0, 2.0), "real", 2)
    )
    assert any("integers only, which are treated as real numbers" in note for note in result.notes)


def test_families_of_real_numbers_take_integers_with_a_note():
    x = np.random.default_rng(0).poisson(3, size=(120, 2))
    models = [
        lksd.models.GaussianMixture([1.0], [[mean, mean]], [np.eye(2)]) for mean in (3.0, 1.0)
    ]
    assert any("integers only" in note for note in ksd.compare(x, *models).notes)
    assert any("integers only" in note for note in lksd.goodness_of_fit(x, models[0]).notes)


# ------------------------------------------------------------- columns by name


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_columns_are_matched_by_name(frame):
    rng = np.random.default_rng(0)
    weight, mean = rng.normal(size=(3, 1)), np.array([0.0, 5.0, 10.0])
    values = rng.normal(size=(120, 1)) @ weight.T + rng.normal(size=(120, 3)) + mean
    x, turned = (
        frame(dict(zip("abc", values.T, strict=True))),
        frame(dict(zip("cab", values.T[[2, 0, 1]], strict=True))),
    )
    p, q = (lksd.models.PPCA(weight, noise, mean, columns=("a", "b", "c")) for noise in (1.0, 1.4))
    assert np.array_equal(
        lksd.estimate_scores(p, turned).score, lksd.estimate_scores(p, x).score[:, [2, 0, 1]]
    )
    by_chains = [lksd.estimate_scores(p, each, exact=False).batch_means for each in (x, turned)]
    assert np.array_equal(by_chains[1], by_chains[0][..., [2, 0, 1]])
    one, other = (ksd.compare(each, p, q, holdout=x) for each in (x, turned))
    assert one.statistic == pytest.approx(other.statistic, rel=1e-9)
    assert lksd.goodness_of_fit(turned, p).ksd == pytest.approx(
        lksd.goodness_of_fit(x, p).ksd, rel=1e-9
    )
    with pytest.raises(ValueError, match="lacks 'b' and has also 'z'"):
        ksd.compare(frame(dict(zip("azc", values.T, strict=True))), p, q)


def test_scores_with_names_follow_those_of_the_data():
    x = pandas.DataFrame(RNG.normal(size=(50, 2)), columns=["a", "b"])
    kernel = lksd.kernels.IMQ.median(x)
    score_p, score_q = -x, -(x - 1) / 2
    straight = lksd.compare_scores(x, score_p, score_q, kernel)
    assert (
        lksd.compare_scores(x, score_p[["b", "a"]], score_q, kernel).statistic == straight.statistic
    )
    with pytest.raises(ValueError, match="score_p: expected the columns of x"):
        lksd.compare_scores(x, score_p.rename(columns={"a": "c"}), score_q, kernel)
    samples_p, samples_q = x + 1, x * 2
    direct = lksd.relative_mmd(x, samples_p, samples_q, kernel)
    assert (
        lksd.relative_mmd(x, samples_p[["b", "a"]], samples_q, kernel).statistic == direct.statistic
    )

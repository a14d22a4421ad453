"""Scores from draws of other programs, and models from functions, against exact answers."""

import csv
import re

import arviz
import jax
import jax.numpy as jnp
import ksd
import numpy as np
import pytest
import xarray

import lksd
from lksd.adapters import from_draws, from_functions
from lksd.adapters._files import read_one

RNG = np.random.default_rng(0)
N, D = 12, 3
X = RNG.normal(size=(N, D))
EXACT = -X / 1.25  # z ~ N(0, I), x | z ~ N(z, I / 4): x ~ N(0, 1.25 I), z | x ~ N(0.8 x, 0.2 I)
DRAWS = 0.8 * X + np.sqrt(0.2) * RNG.normal(size=(4, 300, N, D))


def log_likelihood(x, z):
    return -2 * jnp.sum((x - z) ** 2)


def by_name(x, z):
    return log_likelihood(x, z["z"])


def inference_data():
    return arviz.from_dict(
        {"z": DRAWS, "scale": np.ones((4, 300))}, dims={"z": ["observation", "coordinate"]}
    )


def check(found, chains=4, length=300):
    z = (found.score - EXACT) / found.mcse
    assert np.abs(z).max() < 5
    assert 0.6 < z.std() < 1.5
    assert found.batch_means.shape[:2] == (N, chains)
    assert found.method == f"given draws, {chains} chain{'s' if chains > 1 else ''} of {length}"
    return found


def test_arrays():
    found = check(from_draws(log_likelihood, DRAWS, X))
    np.testing.assert_allclose(found.score, 4 * (DRAWS.mean((0, 1)) - X), rtol=1e-12)
    assert np.nanmax(found.rhat) < 1.03
    check(from_draws(log_likelihood, DRAWS.reshape(1200, N, D), X), chains=1, length=1200)


def test_diagnostics_are_those_of_arviz():
    wandering = DRAWS + np.cumsum(0.03 * RNG.normal(size=DRAWS.shape), 1)
    with pytest.warns(lksd.LksdWarning, match="chains have not converged at .* Run them longer"):
        found = from_draws(log_likelihood, wandering, X)
    log_density = -2 * ((X - wandering) ** 2).sum(-1)
    norm = 4 * np.linalg.norm(X - wandering, axis=-1)
    traces = {"a": log_density, "b": norm}
    rhat, ess = (method(arviz.convert_to_dataset(traces)) for method in (arviz.rhat, arviz.ess))
    np.testing.assert_allclose(
        found.rhat, np.maximum(rhat["a"].values, rhat["b"].values), rtol=1e-9
    )
    np.testing.assert_allclose(found.ess, np.minimum(ess["a"].values, ess["b"].values), rtol=1e-9)


def test_named_draws():
    same = from_draws(log_likelihood, DRAWS, X).score
    tree = xarray.DataTree.from_dict({"posterior": inference_data().posterior})
    for draws in (
        inference_data(),
        tree,
        tree["posterior"].to_dataset(),
        {"z": DRAWS, "scale": np.ones((4, 300))},
    ):
        np.testing.assert_array_equal(from_draws(by_name, draws, X).score, same)
        np.testing.assert_array_equal(
            from_draws(log_likelihood, draws, X, variables="z").score, same
        )


def write_csv(path, chain):
    lines = ["# model = x", "lp__,accept_stat__,z.1,z.2,z.3", "# Adaptation terminated"]
    lines += [",".join(["0", "0.9", *(repr(float(one)) for one in draw)]) for draw in chain]
    path.write_text("\n".join([*lines, "# elapsed"]), encoding="utf-8")


def test_files(tmp_path):
    same = from_draws(log_likelihood, DRAWS, X).score
    arrays, stan, netcdf = [], [], []
    for number in range(N):
        own = DRAWS[:, :, number]
        arrays.append(tmp_path / f"{number}.npy")
        np.save(arrays[-1], own.reshape(-1, D))
        stan.append([tmp_path / f"{number}-{chain}.csv" for chain in range(4)])
        for path, chain in zip(stan[-1], own, strict=True):
            write_csv(path, chain)
        netcdf.append(str(tmp_path / f"{number}.nc"))
        arviz.from_dict({"z": own}).to_netcdf(netcdf[-1])
    assert from_draws(log_likelihood, arrays, X).batch_means.shape[1] == 1
    np.testing.assert_allclose(from_draws(log_likelihood, arrays, X).score, same, rtol=1e-12)
    for files in (stan, netcdf):
        found = check(from_draws(by_name, files, X))
        np.testing.assert_allclose(found.score, same, rtol=1e-12)
    with pytest.raises(
        ValueError, match="expected 12 files, one for each observation in x; got 11"
    ):
        from_draws(log_likelihood, arrays[1:], X)
    np.save(arrays[3], np.zeros((5, D)))
    with pytest.raises(ValueError, match="observation 3 has"):
        from_draws(log_likelihood, arrays, X)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        from_draws(log_likelihood, ["nowhere.npy"] * N, X)
    (tmp_path / "a.txt").write_text("1", encoding="utf-8")
    with pytest.raises(ValueError, match=r"expected .npy, .npz, .csv or .nc files; got .*\.txt"):
        from_draws(log_likelihood, [tmp_path / "a.txt"] * N, X)


def stan_header(*names):
    return ["lp__", "accept_stat__", *names]


def written(path, header, rows, comment="# model = x\n"):
    """A table as programs write it: names with commas in quotes."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(comment)
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def chained(values, first):
    """Chain, iteration and draw of every row, all chains one after the other."""
    count, length = values.shape[:2]
    for chain in range(count):
        for draw in range(length):
            yield (chain + first, draw + first, chain * length + draw + first), values[chain, draw]


Z = np.random.default_rng(3).normal(size=(2, 5, 2, 3))
SPOKEN = {
    "CmdStan": (
        [*stan_header(*(f"z.{i}.{j}" for j in (1, 2, 3) for i in (1, 2))), "w"],
        [[0, 0.9, *z.T.ravel(), 1.0] for z in Z[0]],
        1,
    ),
    "cmdstanpy": (
        [
            "",
            "chain__",
            "iter__",
            "draw__",
            "lp__",
            *(f"z[{i},{j}]" for j in (1, 2, 3) for i in (1, 2)),
            "w",
        ],
        [[k, *numbers, 0.0, *z.T.ravel(), 1.0] for k, (numbers, z) in enumerate(chained(Z, 1))],
        2,
    ),
    "posterior": (
        [
            "",
            *(f"z[{i},{j}]" for i in (1, 2) for j in (1, 2, 3)),
            "w",
            ".chain",
            ".iteration",
            ".draw",
        ],
        [[k, *z.ravel(), 1.0, *numbers] for k, (numbers, z) in enumerate(chained(Z, 1))],
        2,
    ),
    "a data frame of R": (
        ["", *(f"z.{i}.{j}." for i in (1, 2) for j in (1, 2, 3)), "w"],
        [[k, *z.ravel(), 1.0] for k, z in enumerate(Z[0])],
        1,
    ),
    "zero-based": (
        [f"z[{i}][{j}]" for i in (1, 0) for j in (0, 1, 2)] + ["w"],
        [[*z[::-1].ravel(), 1.0] for z in Z[0]],
        1,
    ),
}


@pytest.mark.parametrize("program", SPOKEN)
def test_tables_as_programs_write_them(tmp_path, program):
    header, rows, chains = SPOKEN[program]
    found = read_one(written(tmp_path / "draws.csv", header, rows))
    assert set(found) == {"z", "w"}
    np.testing.assert_array_equal(found["z"], Z[:chains])
    np.testing.assert_array_equal(found["w"], np.ones((chains, 5)))


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, in ArviZ
@pytest.mark.parametrize("include_index", [True, False])
def test_tables_of_arviz(tmp_path, include_index):
    data = arviz.from_dict({"z": Z, "w": np.ones((2, 5))})
    data.to_dataframe(groups="posterior", include_index=include_index).to_csv(
        tmp_path / "draws.csv", index=False
    )
    found = read_one(tmp_path / "draws.csv")
    np.testing.assert_array_equal(found["z"], Z)
    np.testing.assert_array_equal(found["w"], np.ones((2, 5)))
    data.posterior.to_dataframe().to_csv(tmp_path / "long.csv")
    with pytest.raises(
        ValueError, match=r"some for the same draw\. Write one column for each part"
    ):
        read_one(tmp_path / "long.csv")


def test_zero_based_names_give_the_scores(tmp_path):
    files = [
        written(tmp_path / f"{i}.csv", ["z[0]", "z[1]", "z[2]"], DRAWS[:, :, i].reshape(-1, D))
        for i in range(N)
    ]
    np.testing.assert_allclose(
        from_draws(by_name, files, X).score,
        from_draws(log_likelihood, DRAWS.reshape(-1, N, D), X).score,
        rtol=1e-12,
    )


NOT_WHOLE = {
    "gap": ["z.1", "z.3"],
    "first missing": ["z.2", "z.3"],
    "absurd": ["z.999999999"],
    "more digits than a number has": ["z.1", "z." + "9" * 5000],
    "negative": ["z[-1]", "z[0]"],
    "hole": ["z[1,1]", "z[2,2]", "z[1,2]"],
    "axis without its first": ["z[0,1]", "z[0,2]"],
    "scalar and vector": ["z", "z.1"],
    "vector and matrix": ["z.1", "z.1.1"],
}


@pytest.mark.parametrize("case", NOT_WHOLE)
def test_parts_that_are_no_whole_array_are_refused(tmp_path, case):
    names = NOT_WHOLE[case]
    path = written(tmp_path / "draws.csv", names, np.zeros((10, len(names))))
    with pytest.raises(
        ValueError, match=f"all parts of 'z' in .* without gaps; got {re.escape(', '.join(names))}"
    ):
        read_one(path)


TABLES = {
    "twice": ("z.1,z.2,z.1\n1,2,3\n", "every part once in .*'z.1' comes twice"),
    "one part by two names": ("z.1,z.01\n1,2\n", "'z.01' comes twice"),
    "two bases": ("z[0],z[1],w[1],w[2]\n1,2,3,4\n", "some variables begin with 0, others with 1"),
    "names with commas that are not quoted": (
        "z[1,1],z[1,2]\n1,2\n",
        "expected numbers under a header",
    ),
    "empty": ("", "expected numbers under a header"),
    "other text": ("z.1\nhello\n", "expected numbers under a header"),
    "ragged": ("z.1,z.2\n1,2\n3\n", "expected numbers under a header"),
    "chains of different lengths": (
        "chain,draw,z\n0,0,1\n0,1,2\n1,0,3\n",
        "as many of every chain; got 3 rows of 2 chains",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_bad_tables(tmp_path, case):
    text, message = TABLES[case]
    (tmp_path / "draws.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_one(tmp_path / "draws.csv")


@pytest.mark.parametrize("kind", [".npy", ".npz"])
def test_files_that_are_something_else(tmp_path, kind):
    for number, content in enumerate([b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"\xff\xfe\x00"]):
        path = tmp_path / f"{number}{kind}"
        path.write_bytes(content)
        with pytest.raises(ValueError, match="draws: expected NumPy arrays"):
            read_one(path)


def test_scores_of_draws_enter_a_comparison():
    p, q = from_draws(log_likelihood, DRAWS, X), lksd.models.PPCA(np.eye(D), 2.0)
    result = ksd.compare(X, p, q)
    assert result.diagnostics.noise_share > 0
    assert result.diagnostics.start_shift is None  # nothing is known of where these chains began


STUCK = np.array(DRAWS)
STUCK[:, :, 2] = 0.5
APART = DRAWS + 5 * np.arange(4)[:, None, None, None]
BAD = {
    "wrong leading axis": (
        lambda: from_draws(log_likelihood, np.moveaxis(DRAWS, 2, 0), X),
        ValueError,
        r"draws: expected shape \(draws, 12, ...\) or \(chains, draws, 12, ...\).*got \(12, 4, "
        r"300, 3\)",
    ),
    "draws of other data": (
        lambda: from_draws(log_likelihood, DRAWS[:, :, 1:], X),
        ValueError,
        "x has 12 observations",
    ),
    "both shapes fit": (
        lambda: from_draws(log_likelihood, np.zeros((4, N, N, D)), X),
        ValueError,
        "could be .* Say chains=True or False",
    ),
    "chains apart": (
        lambda: from_draws(log_likelihood, APART, X),
        ValueError,
        "expected chains that agree; R-hat is .* above 1.5",
    ),
    "chains that never move": (
        lambda: from_draws(log_likelihood, STUCK, X),
        ValueError,
        "those of observation 2 never move",
    ),
    "too few": (
        lambda: from_draws(log_likelihood, DRAWS[:, :5], X),
        ValueError,
        "at least 8 draws a chain, to judge them; got 5",
    ),
    "not finite": (
        lambda: from_draws(log_likelihood, np.where(DRAWS > 1, np.nan, DRAWS), X),
        ValueError,
        "expected finite numbers",
    ),
    "density not finite": (
        lambda: from_draws(lambda x, z: jnp.log(z[0] * x[0]), DRAWS, X),
        ValueError,
        "finite values at every draw",
    ),
    "density of another shape": (
        lambda: from_draws(lambda x, z: x - z, DRAWS, X),
        ValueError,
        r"one number; got shape \(3,\)",
    ),
    "density that fails": (
        lambda: from_draws(lambda x, z: x @ z[:2], DRAWS, X),
        ValueError,
        "log_likelihood: it fails at",
    ),
    "no function": (
        lambda: from_draws(3, DRAWS, X),
        TypeError,
        "log_likelihood: expected a function",
    ),
    "unknown variable": (
        lambda: from_draws(by_name, {"z": DRAWS}, X, variables="y"),
        ValueError,
        "some of z; got y",
    ),
    "variables of an array": (
        lambda: from_draws(by_name, DRAWS, X, variables="z"),
        ValueError,
        "with named draws only",
    ),
    "lengths that differ": (
        lambda: from_draws(by_name, {"z": DRAWS, "y": DRAWS[:, :100]}, X),
        ValueError,
        "as many chains and draws of every variable",
    ),
    "no posterior": (
        lambda: from_draws(by_name, xarray.Dataset({"z": ("a", np.zeros(3))}), X),
        ValueError,
        "chain, draw is missing",
    ),
    "functions without a shape": (
        lambda: from_functions(log_likelihood, log_likelihood),
        ValueError,
        "initial: .*got neither",
    ),
    "functions that are none": (
        lambda: from_functions(3, log_likelihood, initial=0.0),
        TypeError,
        "log_prior: expected a function",
    ),
    "functions with both": (
        lambda: from_functions(jnp.sum, log_likelihood, initial=0.0, sample=jnp.sum),
        TypeError,
        "Give one of the two",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()


def test_a_few_effective_draws_are_warned_of():
    with pytest.warns(lksd.LksdWarning, match="worth .* independent ones"):
        from_draws(log_likelihood, DRAWS[:, :20], X)


# ---------------------------------------------------------------- a pair of log densities


def log_prior(z):
    return -jnp.sum(z**2) / 2


def test_a_pair_of_densities_is_enough():
    """Chains tune themselves: nothing can be simulated."""
    found = lksd.estimate_scores(
        from_functions(log_prior, log_likelihood, initial=np.zeros(D)), X, control_variates="none"
    )
    assert found.method.startswith("AdaptiveHMC")
    z = (found.score - EXACT) / found.mcse
    assert np.abs(z).max() < 5
    assert 0.6 < z.std() < 1.5
    assert 0.6 < found.acceptance.mean() < 0.95


def test_other_starts():
    keys = jax.random.split(jax.random.key(0), 5)
    from_function = from_functions(log_prior, log_likelihood, initial=lambda key, x: {"z": x})
    assert (
        jax.vmap(lambda key: from_function.initial(key, jnp.ones(3))["z"])(keys).tolist()
        == np.ones((5, 3)).tolist()
    )
    near = from_functions(log_prior, log_likelihood, initial={"a": np.ones(2), "b": 5})
    starts = jax.vmap(lambda key: near.initial(key, None))(keys)
    assert starts["a"].shape == (5, 2)
    assert np.abs(starts["b"] - 5).max() <= 1
    simulated = from_functions(
        log_prior, log_likelihood, sample=lambda key: (jnp.zeros(3), jax.random.normal(key, (3,)))
    )
    assert simulated.sample(keys[0])[1].dtype == np.float64

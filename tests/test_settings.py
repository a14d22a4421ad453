"""Results are the same whatever JAX's settings are."""

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from lksd._keys import key_of

PROGRAM = """
import json, sys
import jax, jax.numpy as jnp, numpy as np
import lksd

if sys.argv[1:]:
    jax.config.update(sys.argv[1], json.loads(sys.argv[2]))


class Own(lksd.models.LatentVariableModel):
    spread: float

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        return -jnp.sum((x - z[0]) ** 2) / (2 * self.spread**2) - x.size * jnp.log(self.spread)

    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.normal(key_z, (1,))
        return z, z + self.spread * jax.random.normal(key_x, (3,))


rng = np.random.default_rng(0)
x, weight = rng.normal(size=(40, 3)), rng.random((3, 1))
documents = rng.integers(0, 6, size=(30, 5))
topics = [lksd.models.LDA(np.full(2, 0.5), rng.dirichlet(np.ones(6), 2)) for _ in range(2)]
short = {"warmup": 20, "draws": 40}
own = lksd.compare(x, Own(1.0), Own(2.0), smooth=None, **short)
half = lksd.estimate_scores(Own(1.0), x[20:], index=np.arange(20, 40), **short)
print(json.dumps([
    own.statistic, own.pvalue, own.contributions.tolist(), half.score.tolist(),
    lksd.estimate_scores(topics[0], documents, exact=False, warmup=5, draws=10).score[0].tolist(),
    lksd.compare(documents, *topics).statistic,
    lksd.goodness_of_fit(x, lksd.models.PPCA(weight, 1.0)).pvalue,
    lksd.rank(x, {str(s): lksd.models.PPCA(weight, s) for s in (1.0, 2.0, 3.0)}).pvalues.tolist(),
]))
"""
SETTINGS = {
    "jax_default_prng_impl": "rbg",
    "jax_threefry_partitionable": False,
    "jax_enable_x64": True,
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_debug_nans": True,
    "jax_default_matmul_precision": "bfloat16",
    "jax_disable_jit": True,
    "jax_random_seed_offset": 7,
    "jax_transfer_guard": "disallow",
    "jax_debug_key_reuse": True,
}


def results(*arguments):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def usual():
    return results()


@pytest.mark.parametrize("name", SETTINGS)
def test_results_do_not_depend_on_a_setting(name, usual):
    assert results(name, json.dumps(SETTINGS[name])) == usual


def test_keys_are_those_that_jax_makes_of_a_seed():
    with jax.enable_x64(True):
        for seed in (0, 1, 2**32 - 1, 2**32 + 5, 2**63 - 1):
            expected = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), 3)
            found = key_of(seed, 3)
            np.testing.assert_array_equal(*map(jax.random.key_data, (found, expected)))

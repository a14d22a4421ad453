"""Adapters leave the process as it was, and say what to install."""

import subprocess
import sys

import pytest

NOTHING_LOADED = """
import sys
import lksd
lksd.adapters.from_numpyro, lksd.adapters.from_pymc, lksd.models.Decoder
lazy = {"numpyro", "pymc", "pytensor", "sklearn", "gensim", "tomotopy", "arviz", "xarray", "flax"}
assert not lazy & set(sys.modules), lazy & set(sys.modules)
"""

SETTINGS = """
import os, warnings
os.environ["XLA_FLAGS"] = "--xla_cpu_enable_fast_math=false"
import threadpoolctl  # PyMC imports it, and it sets KMP_DUPLICATE_LIB_OK
import jax, numpy as np
names = [name for name in dir(jax.config) if name.startswith("jax_")]
before, environment = {name: str(getattr(jax.config, name)) for name in names}, dict(os.environ)
import lksd
import numpyro, numpyro.distributions as dist
def model(x=None):
    z = numpyro.sample("z", dist.Normal())
    numpyro.sample("x", dist.Normal(z, 1.0).expand([2]).to_event(1), obs=x)
lksd.adapters.from_numpyro(model)
import pymc as pm
with pm.Model() as same:
    z = pm.Normal("z")
    pm.Normal("x", z, shape=2, observed=np.zeros(2))
lksd.adapters.from_pymc(same)
assert "pymc.sampling.jax" in __import__("sys").modules
after = {name: str(getattr(jax.config, name)) for name in names}
changed = {name: (before[name], after[name]) for name in names if before[name] != after[name]}
assert not changed, changed
assert environment == dict(os.environ), set(environment.items()) ^ set(dict(os.environ).items())
assert jax.numpy.zeros(1).dtype == np.float32
"""


@pytest.mark.parametrize("probe", [NOTHING_LOADED, SETTINGS], ids=["nothing is loaded", "settings"])
def test_the_process_is_left_alone(probe):
    subprocess.run([sys.executable, "-W", "error", "-c", probe], check=True)


MISSING = """
import sys
sys.modules[{module!r}] = None
import lksd
try:
    lksd.adapters.{call}
except ImportError as error:
    said = "{name} needs {module}, which is not installed. Run: pip install 'lksd[{extra}]'"
    assert str(error) == said, error
else:
    raise AssertionError("no error")
"""


def test_a_missing_package_is_named_with_the_command():
    cases = [
        ("from_numpyro", "numpyro", "numpyro"),
        ("from_pymc", "pymc", "pymc"),
        ("from_sklearn", "sklearn", "sklearn"),
        ("from_gensim", "gensim", "topics"),
        ("from_tomotopy", "tomotopy", "tomotopy"),
    ]
    code = "".join(
        MISSING.format(module=module, call=f"{name}(print)", name=name, extra=extra)
        for name, module, extra in cases
    )
    subprocess.run([sys.executable, "-c", code], check=True)

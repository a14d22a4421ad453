"""The package as a whole: what importing it does and does not do."""

import subprocess
import sys

import lksd

PROBE = """
import jax, json, os, sys
names = [name for name in dir(jax.config) if name.startswith("jax_")]
before, flags = {name: str(getattr(jax.config, name)) for name in names}, dict(os.environ)
import lksd
after = {name: str(getattr(jax.config, name)) for name in names}
assert before == after, {n for n in names if before[n] != after[n]}
assert flags == dict(os.environ)
lazy = {"matplotlib", "jinja2", "typer", "polars", "sklearn", "pandas"}
lazy |= {"scipy.stats", "scipy.spatial"}
assert not lazy & set(sys.modules), lazy & set(sys.modules)
"""


def test_import_leaves_the_process_alone():
    subprocess.run([sys.executable, "-W", "error", "-c", PROBE], check=True)


def test_public_names():
    for name in lksd.__all__:
        assert getattr(lksd, name) is not None
    assert lksd.__version__

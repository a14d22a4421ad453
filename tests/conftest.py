"""Shapes and types are checked while the tests run, by jaxtyping and beartype; processes share the
programs they compile.
"""

import os
import sys
from pathlib import Path

from jaxtyping import install_import_hook

TESTS = Path(__file__).parent
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(TESTS.parent / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
sys.path[:0] = [str(TESTS), str(TESTS / "cli"), str(TESTS / "inference")]

CLUSTERS = ("tests/engines/", "tests/choosing/test_runs.py")  # whose tests start some

# Everything behind the door; at the door the library's own checks must speak, in its own words.
INNER = [
    "lksd.kernels.gram",
    "lksd.stein.gram",
    "lksd.stein.langevin",
    "lksd.stein.moves",
    "lksd.statistics.nulls",
    "lksd.statistics.multiplicity",
    "lksd.statistics.ustatistic",
]
install_import_hook(INNER, "beartype.beartype")

import jax  # noqa: E402
import pytest  # noqa: E402

from lksd import _jax  # noqa: E402


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of a file run in one process, which traces and compiles their programs once; and
    so do all that start clusters, which would be in each other's way.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return "clusters" if file.startswith(CLUSTERS) else file

    return ByFile(config, log)


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Compiled programs of one file are of no use to the next, and hundreds of them
    take gigabytes.
    """
    yield
    _jax.programs.clear()
    jax.clear_caches()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder of a user's files."""
    from files import write_files

    made = tmp_path_factory.mktemp("files")
    write_files(made)
    return made


@pytest.fixture
def lksd_command(folder, monkeypatch, capsys):
    """Calls the command line in the folder: (exit code, what was printed, what was said
    beside it).
    """
    from lksd.cli import main

    monkeypatch.chdir(folder)

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call

"""Fits depend on the data and the seed alone: not on threads, processes or what else runs."""

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lksd.fitting import base, fit_factors, fit_mixture, fit_states
from lksd.models.files import to_bytes

FITS = """
import hashlib
import numpy as np
from lksd.fitting import fit_factors, fit_mixture, fit_states, fit_topics
from lksd.models.files import to_bytes

rng = np.random.default_rng(0)
x = rng.normal(size=(1500, 5)) @ rng.normal(size=(5, 60)) + rng.normal(size=(1500, 60))
sequences, documents = rng.integers(0, 4, (40, 12)), rng.integers(0, 50, (60, 20)).tolist()
fits = {
    "factors": lambda: fit_factors(x, 4, 1),
    "mixture": lambda: fit_mixture(x[:, :4], 3, 1),
    "states": lambda: fit_states(sequences, 3, 1),
    "topics": lambda: fit_topics(documents, 3, 1),
}


def digest(name):
    return hashlib.sha256(to_bytes(fits[name]().model)).hexdigest()
"""
names: dict = {}
exec(FITS, names)


def test_threads_and_processes():
    wanted = {name: names["digest"](name) for name in names["fits"]}
    state = np.random.get_state()[1].copy()  # noqa: NPY002  (nobody may change it)
    filters = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(names["digest"], list(wanted) * 4))
    assert found == list(wanted.values()) * 4
    assert warnings.filters == filters
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    code = FITS + SETTINGS + "\nprint(*map(digest, fits))"
    threads = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | threads,
    )
    assert ended.stdout.split() == list(wanted.values()), ended.stderr[-2000:]
    assert ended.stderr == ""


SETTINGS = """
import threading, warnings
from threadpoolctl import threadpool_info
from lksd.fitting.base import steady


def blas():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def fit(ready, end):
    with steady():
        ready.set()
        end.wait(30)
        assert blas() == {1}


digest("mixture")
filters, before = list(warnings.filters), blas()
events = [(threading.Event(), threading.Event()) for _ in range(2)]
threads = [threading.Thread(target=fit, args=pair) for pair in events]
for thread, (ready, _) in zip(threads, events):
    thread.start()
    ready.wait(30)
events[0][1].set()  # the first to begin is the first to end
threads[0].join()
assert blas() == {1}
told = dict(category=UserWarning, filename="x.py", lineno=1)
warnings.warn_explicit("nobody hears it while a fit runs", module="sklearn.mixture", **told)
try:
    warnings.warn_explicit("what others say is heard", module="script", **told)
except UserWarning:
    pass
else:
    raise AssertionError("a warning of the caller's was lost")
events[1][1].set()
threads[1].join()
assert blas() == before, (blas(), before)
assert warnings.filters == filters
"""


@pytest.mark.parametrize("fit", [fit_factors, fit_mixture, fit_states])
def test_how_numbers_are_stored_does_not_matter(fit):
    x = names["x"][:50, :4]
    rows, columns = (to_bytes(fit(array(x), 2, 0).model) for array in (np.array, np.asfortranarray))
    assert rows == columns


def test_settings_come_back_after_an_error():
    filters = list(warnings.filters)
    with pytest.raises(ZeroDivisionError), base.steady():
        1 / 0  # noqa: B018
    assert warnings.filters == filters


def test_seeds_of_packages():
    found = [base.seed_of_package(seed) for seed in (0, 1, 2**32, 2**62)]
    assert len(set(found)) == 4
    assert all(0 <= seed < 2**32 for seed in found)

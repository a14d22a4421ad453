"""What a user may give as an engine, this process as one, and several devices."""

import subprocess
import sys
import threading
import time

import jax
import ksd
import numpy as np
import pytest
from distributed import Client, LocalCluster

import lksd
from lksd.engines import EngineError, Local, opened
from lksd.engines.cluster import ANSWER
from lksd.models import PPCA

X = np.random.default_rng(0).normal(size=(20, 3))
MODEL = PPCA(np.ones((3, 1)), 1.0)
CASES = {
    "a name": ("dusk", ValueError, "engine: expected None, \"dask\", the address .*; got 'dusk'"),
    "an address without a scheme": (
        "localhost:8786",
        ValueError,
        "such as \"tcp://host:8786\".*got 'localhost:8786'",
    ),
    "an unknown scheme": (
        "http://host:8786",
        ValueError,
        "engine: expected an address such as 'tcp://host:8786'.*unknown address",
    ),
    "no port": ("tcp://", ValueError, "missing port"),
    "a number": (3, TypeError, "engine: expected None.*got 3. Leave it out"),
    "a class": (Client, TypeError, "engine: expected"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_engines(name):
    engine, kind, message = CASES[name]
    with pytest.raises(kind, match=message):
        lksd.estimate_scores(MODEL, X, engine=engine)


def test_an_address_that_does_not_answer():
    assert ANSWER < 15  # seconds
    with pytest.raises(
        EngineError,
        match=r"engine: expected a Dask scheduler at 'tcp://127.0.0.1:9'; nothing answered. Check",
    ):
        ksd.compare(X, MODEL, PPCA(np.ones((3, 1)), 2.0), engine="tcp://127.0.0.1:9")


def test_an_address_and_clients_without_workers():
    with (
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        with (
            opened(cluster.scheduler_address) as engine,
            pytest.warns(lksd.LksdWarning, match="has no workers yet; the work waits"),
        ):
            assert engine.workers == 1
        with (
            pytest.raises(TypeError, match=r"engine: expected a dask.distributed.Client; got"),
            opened(cluster),
        ):
            pass
    with (
        pytest.raises(
            EngineError, match="engine: expected a client that is connected; this one is closed"
        ),
        opened(client),
    ):
        pass


def test_without_dask():
    code = (
        "import sys; sys.modules['distributed'] = None; import lksd.engines as e; "
        "e.opened('dask').__enter__()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (
        "ImportError: engine: Dask is not installed. Run: pip install 'lksd[dask]'" in ended.stderr
    )


def test_this_process_keeps_the_order_and_a_bound():
    started, lock = [], threading.Lock()

    def setup(shared):
        def one(item):
            with lock:
                started.append(item)
            time.sleep(0.01 * (item % 3))
            return item * shared

        return one

    done = Local().map(setup, 2, iter(range(1000)), at_once=3)
    assert [next(done) for _ in range(30)] == [2 * item for item in range(30)]
    assert len(started) <= 30 + 2 * 3 * len(jax.local_devices())
    done.close()
    count = len(started)
    time.sleep(0.1)
    assert len(started) == count


def test_this_process_obeys_the_chosen_device():
    with jax.default_device(jax.local_devices()[0]):
        assert list(
            Local().map(lambda shared: lambda item: jax.numpy.zeros(1).devices(), None, [1])
        ) == [{jax.local_devices()[0]}]


DIGITS = """
import jax, numpy as np, lksd
rng = np.random.default_rng(0)
model, x = lksd.models.PPCA(rng.random((3, 1)), 0.8), rng.normal(size=(40, 3))
scores = lksd.estimate_scores(model, x, exact=False, warmup=10, draws=20)
pair = np.stack([-x, -x / 2])
langevin, kernel = lksd.stein.Langevin(), lksd.kernels.IMQ()
tiles = lksd.stein.gram_sums(langevin, kernel, x, pair, [1.0, -1.0], tile=4)
digits = [array.tobytes().hex() for array in (scores.score, scores.mcse, tiles.rows)]
"""
DEVICES = """
import time
from lksd.engines import Local
def setup(shared):
    def one(item):
        time.sleep(0.01)
        return str(jax.numpy.zeros(1).devices())
    return one
print(len(set(Local().map(setup, None, range(64)))), *digits)
"""


def test_eight_devices_have_the_same_digits(monkeypatch):
    assert len(jax.local_devices()) == 1
    here: dict = {}
    exec(DIGITS, here)
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    printed = subprocess.run(
        [sys.executable, "-c", DIGITS + DEVICES], check=True, capture_output=True, text=True
    ).stdout.split()
    assert printed == ["8", *here["digits"]]

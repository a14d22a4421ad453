"""Work on a Dask cluster has the digits of one process, also where workers are killed in the
middle.
"""

import os
import signal
from collections.abc import Callable
from contextlib import contextmanager

import equinox as eqx
import jax
import jax.numpy as jnp
import ksd
import numpy as np
import pytest
from distributed import Client, LocalCluster

import lksd
from lksd.engines import Engine, EngineError, opened
from lksd.engines.cluster import Dask, run_item, versions
from lksd.kernels import IMQ, BagOfWords
from lksd.models import LDA, PPCA, LatentVariableModel
from lksd.reproduce.problems import experiment_named
from lksd.reproduce.runner import run_experiment
from lksd.reproduce.store import Store
from lksd.samplers import MALA
from lksd.scores import batches
from lksd.stein import Difference, Langevin, gram_sums

RNG = np.random.default_rng(0)
OPTIONS = {"exact": False, "warmup": 10, "draws": 20, "batch_size": 16}
PROBLEMS = {
    "real": (PPCA(RNG.random((3, 1)), 0.8), RNG.normal(size=(200, 3))),
    "documents": (LDA(np.full(2, 0.5), RNG.dirichlet(np.ones(6), 2)), RNG.integers(0, 6, (400, 5))),
}


@contextmanager
def two_workers():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def client():
    with two_workers() as made:
        yield made


@pytest.fixture
def doomed():
    """A cluster for workers to be killed on, since Dask does not always start them again."""
    with two_workers() as made:
        yield made


@pytest.fixture(scope="module", params=PROBLEMS)
def problem(request):
    model, x = PROBLEMS[request.param]
    return model, x, lksd.estimate_scores(model, x, **OPTIONS)


def assert_same(found, wanted):
    for name in ("score", "mcse", "batch_means"):
        for a, b in zip(found.part(name), wanted.part(name), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found.rhat, wanted.rhat)


class Killing(Engine):
    """A cluster some of whose workers are killed when a few results have come."""

    def __init__(self, client, count):
        self.inner, self.count, self.killed = Dask(lambda: client), count, []

    @property
    def workers(self):
        return self.inner.workers

    @property
    def backend(self):
        return self.inner.backend

    @property
    def memory(self):
        return self.inner.memory

    def map(self, setup, shared, items, at_once=None):
        for number, result in enumerate(self.inner.map(setup, shared, items, at_once)):
            if number == 3:
                self.killed = list(self.inner.client.run(os.getpid).values())[: self.count]
                for process in self.killed:
                    os.kill(process, signal.SIGKILL)
            yield result


def test_scores_have_the_same_digits(client, problem, monkeypatch):
    model, x, wanted = problem
    advanced = []
    monkeypatch.setattr(batches, "track", recorder(advanced))
    assert_same(lksd.estimate_scores(model, x, **OPTIONS, engine=client), wanted)
    assert sum(advanced) == len(x)
    assert len(advanced) > 4  # progress is shown as parts end


def recorder(amounts):
    @contextmanager
    def track(label, total):
        yield amounts.append if label == "chains" else lambda amount: None

    return track


@pytest.mark.slow
def test_reruns_have_the_same_digits(client):
    model, x = PROBLEMS["real"]
    stuck = {"exact": False, "sampler": MALA(step_size=1e-6), "warmup": 10, "draws": 200}
    found = lksd.estimate_scores(model, x[:20], **stuck, engine=client)
    assert found.notes[0].startswith("20 observations were run again by themselves")
    assert_same(found, lksd.estimate_scores(model, x[:20], **stuck))


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_killed_workers_cost_their_tasks_only(doomed, count):
    model, x = PROBLEMS["real"]
    engine = Killing(doomed, count)
    found = lksd.estimate_scores(model, x, **OPTIONS, engine=engine)
    assert len(engine.killed) == count
    assert not set(engine.killed) & set(doomed.run(os.getpid).values())
    assert_same(found, lksd.estimate_scores(model, x, **OPTIONS))


@pytest.mark.parametrize("pairs", [pytest.param(None, marks=pytest.mark.slow), 3_000])
def test_tiles_have_the_same_digits_when_a_worker_is_killed(doomed, pairs):
    x = PROBLEMS["real"][1]
    engine = Killing(doomed, 1)
    arguments = (Langevin(), IMQ(), x, np.stack([-x, -x / 2]), [1.0, -1.0])
    here, there = (
        gram_sums(*arguments, tile=16, pairs=pairs, engine=place) for place in (None, engine)
    )
    assert engine.killed
    for name in ("rows", "model_rows", "squares", "diagonal"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))


def test_tiles_of_documents_have_the_same_digits(client):
    x = PROBLEMS["documents"][1].astype(np.int32)
    scores = np.random.default_rng(1).random((2, *x.shape))
    arguments = (Difference(6, witness="shared"), BagOfWords(IMQ(), 6), x, scores, [1.0, -1.0])
    here, there = (
        gram_sums(*arguments, tile=80, sensitive=True, engine=place)
        for place in (None, Dask(lambda: client))
    )
    np.testing.assert_array_equal(there.rows, here.rows)
    np.testing.assert_array_equal(there.sensitivity.scores, here.sensitivity.scores)


def test_trials_have_the_same_digits_when_a_worker_is_killed(doomed, tmp_path):
    experiment = experiment_named("mixture")
    wanted = {"trials": 12, "sizes": (8, 12), "methods": ("ksd-imq",), "cases": ("0.5",)}
    alone, spread = Store(tmp_path / "alone.sqlite"), Store(tmp_path / "spread.sqlite")
    engine = Killing(doomed, 1)
    assert run_experiment(experiment, spread, **wanted, engine=engine) == 12
    assert engine.killed
    assert run_experiment(experiment, alone, **wanted) == 12
    assert spread.rows() == alone.rows()
    assert len(alone.rows()) == 24


def test_a_whole_comparison(client):
    """Of a model whose class the workers cannot import, as those of a script or a notebook."""

    class Net(eqx.Module):
        weight: np.ndarray
        activation: Callable = eqx.field(static=True, default=lambda z: jnp.tanh(z))

        def __call__(self, z):
            return self.activation(self.weight @ z)

    class Own(LatentVariableModel):
        net: Net
        scale: float = 0.8

        def log_prior(self, z):
            return -jnp.sum(z**2) / 2

        def log_likelihood(self, x, z):
            return -jnp.sum((x - self.net(z)) ** 2) / (2 * self.scale**2)

        def sample(self, key):
            key_z, key_x = jax.random.split(key)
            z = jax.random.normal(key_z, (1,))
            return z, self.net(z) + self.scale * jax.random.normal(key_x, (3,))

    (p, x), q = PROBLEMS["real"], Own(Net(RNG.random((3, 1))))
    there, here = (ksd.compare(x, p, q, **OPTIONS, engine=engine) for engine in (client, None))
    assert (there.statistic, there.pvalue, there.settings) == (
        here.statistic,
        here.pvalue,
        here.settings,
    )
    assert client.status == "running"


def failing(shared):
    def one(item):
        if item == shared:
            raise ZeroDivisionError(f"item {item}")
        return item

    return one


def ending(shared):
    return lambda item: os._exit(1)


def without_module(shared):
    raise ModuleNotFoundError("No module named 'theirs'", name="theirs")


def test_errors_of_the_work_reach_the_caller(client):
    with opened(client) as engine:
        done = engine.map(failing, 3, range(100))
        assert [next(done) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ZeroDivisionError, match="item 3"):
            next(done)
        with pytest.raises(
            ModuleNotFoundError,
            match=r"engine: No module named 'theirs' on a worker. Install there",
        ):
            list(engine.map(without_module, None, [1]))


def test_a_model_that_fails_says_so_as_in_one_process(client):
    model, x = PROBLEMS["real"]
    step = lksd.samplers.HMC(step_size=1e4)
    messages = []
    for engine in (None, client):
        with pytest.raises(ValueError, match="sampler: ") as caught:
            lksd.estimate_scores(
                model, x, **OPTIONS, sampler=step, control_variates="none", engine=engine
            )
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_work_that_ends_every_worker(doomed):
    doomed.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    with (
        opened(doomed) as engine,
        pytest.raises(
            EngineError, match=r"engine: a part of the work ended 1 workers.*smaller batch_size"
        ),
    ):
        list(engine.map(ending, None, [1]))


def test_workers_of_another_version(client):
    other = versions() | {"lksd": "0.0.1"}
    with pytest.raises(
        EngineError,
        match=r"engine: expected workers with lksd 0\.0\.1, jax .* as here; one has lksd",
    ):
        client.submit(run_item, other, b"", b"").result()


def test_a_cluster_of_its_own_on_the_command_line(lksd_command, folder):
    arguments = [
        "compare",
        "x.npy",
        "--p",
        "models.py:p",
        "--q",
        "models.py:q",
        "--no-exact",
        "--draws",
        "20",
        "--warmup",
        "10",
        "--json",
    ]
    here, there = lksd_command(*arguments), lksd_command(*arguments, "--engine", "dask")
    assert (there[0], there[2]) == (0, "")
    assert there[1] == here[1]

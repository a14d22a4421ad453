"""A run that was killed goes on with the same digits; a checkpoint of anything else is refused and
stays as it is.
"""

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import jax.numpy as jnp
import numpy as np
import pytest

import lksd
from lksd.engines import Engine, Local
from lksd.models import LDA, PPCA, LatentVariableModel
from lksd.scores.checkpoint import Checkpoint

PROBLEM = """
import numpy as np, lksd
rng = np.random.default_rng(0)
model, x = lksd.models.PPCA(rng.random((3, 1)), 0.8), rng.normal(size=(200, 3))
options = {"exact": False, "warmup": 10, "draws": 20}
"""
names: dict = {}
exec(PROBLEM, names)
MODEL, X, OPTIONS = names["model"], names["x"], names["options"]
FEW = OPTIONS | {"batch_size": 16}


class Counting(Engine):
    """This process, with the observations whose chains ran."""

    workers, backend, memory = 1, "cpu", None

    def __init__(self):
        self.rows = 0

    def map(self, setup, shared, items, at_once=None):
        for item, found in zip(
            items := list(items), Local().map(setup, shared, items, 1), strict=True
        ):
            chains = getattr(shared, "label", "") == "chains"  # others are tiles, or simulations
            self.rows += len(item[0].x) if chains else 0
            yield found


class Stopped(Exception):
    pass


class Stopping(Counting):
    """A run that ends after a few parts."""

    def map(self, setup, shared, items, at_once=None):
        for number, found in enumerate(super().map(setup, shared, items)):
            if number == 4:
                raise Stopped
            yield found


@pytest.fixture(scope="module")
def whole():
    return lksd.estimate_scores(MODEL, X, **OPTIONS)


@pytest.fixture
def stopped(tmp_path):
    """A checkpoint of four parts of 16 observations."""
    path = tmp_path / "scores.zarr"
    with pytest.raises(Stopped):
        lksd.estimate_scores(MODEL, X, **FEW, checkpoint=path, engine=Stopping())
    return path


def assert_same(found, wanted):
    for name in ("score", "mcse", "batch_means"):
        for a, b in zip(found.part(name), wanted.part(name), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found.rhat, wanted.rhat)
    np.testing.assert_array_equal(found.divergences, wanted.divergences)


def parts_in(path):
    if not path.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection, connection:
            return connection.execute("SELECT COUNT(*) FROM parts").fetchone()[0]
    except sqlite3.OperationalError:  # not made yet
        return 0


def test_a_killed_run_goes_on(tmp_path, whole):
    path = tmp_path / "scores.zarr"
    # Every part waits a little after it is written, so that the kill falls in the middle.
    code = f"""{PROBLEM}
import time
from lksd.scores import checkpoint
write = checkpoint.Stage.write
def slowly(*given):
    write(*given)
    time.sleep(0.2)
checkpoint.Stage.write = slowly
lksd.estimate_scores(model, x, **options, batch_size=16, checkpoint={str(path)!r})
"""
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        while parts_in(path) < 3 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    kept = parts_in(path)
    assert 3 <= kept < 13
    engine = Counting()
    assert_same(
        lksd.estimate_scores(MODEL, X, **OPTIONS, batch_size=48, checkpoint=path, engine=engine),
        whole,
    )
    assert engine.rows == len(X) - 16 * kept  # what was finished is not run again


def test_what_is_whole_is_not_run_again(stopped, whole):
    assert_same(lksd.estimate_scores(MODEL, X, **OPTIONS, checkpoint=str(stopped)), whole)
    engine = Counting()
    assert_same(lksd.estimate_scores(MODEL, X, **OPTIONS, checkpoint=stopped, engine=engine), whole)
    assert engine.rows == 0


def test_two_runs_at_the_same_time(tmp_path, whole):
    path, found = tmp_path / "scores", []

    def run():
        found.append(lksd.estimate_scores(MODEL, X, **FEW, checkpoint=path))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    for one in (*found, lksd.estimate_scores(MODEL, X, **FEW, checkpoint=path)):
        assert_same(one, whole)


def call(model=MODEL, x=X, **changed):
    return lambda path: lksd.estimate_scores(model, x, **(OPTIONS | changed), checkpoint=path)


OTHERS = {
    "data": (call(x=X + 1e-9), "is of other data. It was left"),
    "fewer data": (call(x=X[:100]), "is of other data"),
    "model": (call(PPCA(MODEL.weight, 0.9)), "is of another model"),
    "both": (call(PPCA(MODEL.weight, 0.9), X[::-1]), "is of other data and another model"),
    "seed": (call(seed=1), "is of other settings"),
    "index": (call(index=np.arange(200) + 1), "is of other settings"),
    "lengths": (call(draws=30), "is of other settings"),
    "sampler": (call(sampler=lksd.samplers.MALA()), "is of other settings"),
    "step": (call(sampler=lksd.samplers.HMC(step_size=0.1)), "is of other settings"),
    "means": (call(control_variates="none"), "is of other settings"),
    "start": (call(initial=lksd.samplers.NormalStart(1.0)), "is of other settings"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_run_is_refused(name, stopped):
    content = stopped.read_bytes()
    other, message = OTHERS[name]
    with pytest.raises(
        ValueError,
        match=f"checkpoint: expected one of the same data, model and settings; .*{message}",
    ):
        other(stopped)
    assert stopped.read_bytes() == content


class Shifted(LatentVariableModel):
    weight: np.ndarray

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        return -jnp.sum((x - self.weight @ z) ** 2) / 2

    def initial(self, key, x):
        return jnp.zeros(1)


def test_a_model_whose_code_changed_is_refused(tmp_path):
    path, sampler = tmp_path / "scores", lksd.samplers.MALA(step_size=0.1)

    def run(model):
        return lksd.estimate_scores(
            model(np.ones((3, 1))), X[:20], warmup=2, draws=4, sampler=sampler, checkpoint=path
        )

    run(Shifted)
    changed = type(
        "Shifted",
        (Shifted,),
        {"log_likelihood": lambda self, x, z: -jnp.sum((x - self.weight @ z) ** 2) / 3},
    )
    with pytest.raises(ValueError, match="is of a model or sampler whose code or options differ"):
        run(changed)


@pytest.mark.slow
def test_stages_are_kept_apart(tmp_path):
    """The modified posterior of every neighbour runs after the chains of the observations."""
    rng = np.random.default_rng(0)
    model, x, path = (
        LDA(np.full(2, 0.5), rng.dirichlet(np.ones(5), 2)),
        rng.integers(0, 5, (8, 2)),
        tmp_path / "scores",
    )
    options = OPTIONS | {
        "chains": 1,
        "control_variates": "none",
        "operator": ("difference", "barker"),
    }
    alone = lksd.estimate_scores(model, x, **options)
    for _ in range(2):
        engine = Counting()
        assert_same(
            lksd.estimate_scores(model, x, **options, checkpoint=path, engine=engine), alone
        )
    assert engine.rows == 0
    with closing(sqlite3.connect(path)) as connection, connection:
        assert [row[0] for row in connection.execute("SELECT stage FROM stages")] == ["/0", "/1"]


def other_database(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE trials (number INTEGER)")


FILES = {
    "text": lambda path: path.write_text("some notes"),
    "saved scores": lambda path: lksd.estimate_scores(MODEL, X).save(path),
    "another database": other_database,
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_something_else_stays_as_it_is(name, tmp_path):
    path = tmp_path / "file"
    FILES[name](path)
    content = path.read_bytes()
    with pytest.raises(
        ValueError,
        match=r"checkpoint: expected a file that an earlier run made, or none; .* is something "
        r"else",
    ):
        lksd.estimate_scores(MODEL, X, **OPTIONS, checkpoint=path)
    assert path.read_bytes() == content


def test_bad_paths(tmp_path):
    with pytest.raises(ValueError, match=r"is something else. Name another"):
        Checkpoint(tmp_path)
    with pytest.raises(ValueError, match="checkpoint: expected a folder that exists"):
        lksd.estimate_scores(MODEL, X, **OPTIONS, checkpoint=tmp_path / "none" / "scores")
    with pytest.raises(TypeError, match="checkpoint: expected the path of a file; got 3"):
        lksd.estimate_scores(MODEL, X, **OPTIONS, checkpoint=3)


def test_an_empty_file_is_a_new_checkpoint(tmp_path, whole):
    path = tmp_path / "scores"
    path.touch()  # as a kill at the very first moment leaves it
    assert_same(lksd.estimate_scores(MODEL, X, **OPTIONS, checkpoint=path), whole)


def test_on_the_command_line(lksd_command, folder):
    arguments = [
        "rank",
        "x.npy",
        "models.py:p",
        "models.py:q",
        "--no-exact",
        "--draws",
        "20",
        "--warmup",
        "10",
        "--json",
    ]
    plain = lksd_command(*arguments)
    for _ in range(2):
        assert lksd_command(*arguments, "--checkpoint", "ranked.scores") == plain
    code, _, error = lksd_command(*arguments, "--checkpoint", "ranked.scores", "--seed", "1")
    assert (code, error.count("\n")) == (2, 1)
    assert (
        "is of other settings (seed, index, operator, sampler or lengths) for models.py:p" in error
    )

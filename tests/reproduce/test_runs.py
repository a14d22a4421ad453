"""Runs that are killed, go on, run over processes or share a store give the same digits as one that
is left alone.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lksd.cli import main
from lksd.reproduce.experiment import Outcome, Task
from lksd.reproduce.problems import experiment_named
from lksd.reproduce.runner import missing
from lksd.reproduce.store import Store

# Exact scores of the mixture: the quickest trials there are.
TRIALS = 60
WHAT = [
    "reproduce",
    "mixture",
    "--methods",
    "ksd-imq",
    "--cases",
    "0.5,1.5",
    "--n",
    "8,12",
    "--trials",
    str(TRIALS),
]


def start(store, processes):
    code = "from lksd.cli import run; run()"
    command = [
        sys.executable,
        "-c",
        code,
        *WHAT,
        "--store",
        str(store),
        "--processes",
        str(processes),
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def trials_in(store):
    return len({row[4] for row in Store(store).rows()}) if Path(store).exists() else 0


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory):
    store = tmp_path_factory.mktemp("alone") / "study.sqlite"
    assert main([*WHAT, "--store", str(store), "--processes", "1"]) == 0
    return Store(store).rows()


def children(pid):
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    found = (
        [Path(f"/proc/{pid}/task/{thread}/children") for thread in os.listdir(f"/proc/{pid}/task")]
        if listed.exists()
        else []
    )
    return [int(child) for path in found for child in path.read_text().split()]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_run_goes_on_with_the_same_digits(tmp_path, left_alone):
    store = tmp_path / "study.sqlite"
    with start(store, processes=2) as run:
        began = time.monotonic()
        while trials_in(store) < 5 and run.poll() is None and time.monotonic() - began < 120:
            time.sleep(0.02)
        workers = children(run.pid)
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
    assert 5 <= trials_in(store) < TRIALS
    assert all(
        len([row for row in Store(store).rows() if row[4] == trial]) == 4
        for trial in {row[4] for row in Store(store).rows()}
    )
    assert main([*WHAT, "--store", str(store), "--processes", "1"]) == 0
    assert Store(store).rows() == left_alone
    began = time.monotonic()
    # they end with the trial that they are in
    while any(map(alive, workers)) and time.monotonic() - began < 60:
        time.sleep(0.1)
    assert not any(map(alive, workers))


def test_two_processes_share_a_store(tmp_path, left_alone):
    store = tmp_path / "study.sqlite"
    with start(store, processes=1) as one, start(store, processes=1) as other:
        for run in (one, other):
            _, error = run.communicate(timeout=200)
            assert (run.returncode, error) == (0, b"")
    assert Store(store).rows() == left_alone


def test_another_seed_gives_other_trials(tmp_path, left_alone):
    store = tmp_path / "study.sqlite"
    assert main([*WHAT[:-1], "2", "--store", str(store), "--processes", "1", "--seed", "1"]) == 0
    rows = Store(store).rows()
    assert len(rows) == 8
    assert {row[5] for row in rows}.isdisjoint({row[5] for row in left_alone})


def test_only_what_is_missing_is_run():
    task = Task(0, 1, (8, 12), ("a", "b"), ("",), (0.01, 0.05))
    everything = {
        ("", method, n, alpha) for method in "ab" for n in (8, 12) for alpha in (0.01, 0.05)
    }
    assert missing(task, everything) is None
    left = missing(task, everything - {("", "b", 12, 0.01)})
    assert (left.methods, left.sizes) == (("b",), (12,))


def test_rows_stay_as_they_were_written(tmp_path):
    experiment, store = experiment_named("mixture"), Store(tmp_path / "a.sqlite")
    first = Outcome("0.5", "ours", 50, 0.05, float("nan"), 1.0, False, 0.1)
    store.write(experiment, 0, 7, [first])
    store.write(
        experiment, 0, 7, [first._replace(pvalue=0.0, reject=True), first._replace(case="1.5")]
    )
    rows = store.rows()
    assert [(row[0], row[6], row[7], row[8]) for row in rows] == [
        ("mixture[0.5]", None, 1.0, 0),
        ("mixture[1.5]", None, 1.0, 0),
    ]
    assert store.done(experiment, 0, 7) == {("0.5", "ours", 50, 0.05), ("1.5", "ours", 50, 0.05)}
    assert store.done(experiment_named("ppca-problem1"), 0, 7) == set()

"""Where choices run: killed and taken up again, on a cluster, on a terminal."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from terminal import on_terminal

import lksd

PROGRAM = """
import json, os, pathlib, sys, time
import numpy as np
import lksd
from lksd.fitting import fit_factors

folder = pathlib.Path(sys.argv[1])

def fit(train, count, seed):
    with (folder / "fits").open("a") as file:
        file.write("one\\n")
    time.sleep(float(os.environ["SLOW"]))  # what a function reads must stay as it was
    return fit_factors(train, count, seed)

x = np.random.default_rng(0).normal(size=(60, 5)) @ np.random.default_rng(1).normal(size=(5, 5))
result = lksd.choose(x, fit, [1, 2, 3], folds=4, checkpoint=folder / "fits.db")
(folder / "result.json").write_text(result.to_json())
"""
FITS = 3 * 4 + 1  # the last is that to all observations


def run(folder, slow):
    environment = os.environ | {"SLOW": str(slow)}
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], env=environment)


def count_fits(folder):
    path = folder / "fits"
    return len(path.read_text().splitlines()) if path.exists() else 0


def answer(folder):
    record = json.loads((folder / "result.json").read_text())
    record.pop("checksum")
    record["settings"].pop("fit")
    return record


def test_a_killed_run_loses_one_fit_and_no_digit(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir(), killed.mkdir()
    assert run(whole, 0).wait() == 0
    assert count_fits(whole) == FITS
    first = run(killed, 0.5)
    until = time.monotonic() + 120
    while count_fits(killed) < 6 and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    begun = count_fits(killed)
    assert 6 <= begun < FITS
    assert run(killed, 0).wait() == 0
    assert count_fits(killed) <= FITS + 1  # the one that was killed is done again
    assert answer(killed) == answer(whole)


def test_a_checkpoint_of_other_data_or_candidates_is_refused(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 4))
    path = tmp_path / "fits.db"
    lksd.choose(x, "factors", [1, 2], folds=2, checkpoint=path)
    again = lksd.choose(x, "factors", [1, 2], folds=2, checkpoint=path)
    assert again.n == 40
    for arguments, options in (
        ((x + 1, "factors", [1, 2]), {}),
        ((x, "factors", [1, 3]), {}),
        ((x, "mixture", [1, 2]), {}),
        ((x, "factors", [1, 2]), {"seed": 1}),
    ):
        with pytest.raises(ValueError, match="checkpoint: expected one of the same data"):
            lksd.choose(*arguments, **({"folds": 2, "checkpoint": path} | options))


def test_a_checkpoint_of_another_procedure_is_refused(tmp_path):
    from sklearn.decomposition import PCA, FactorAnalysis
    from sklearn.mixture import GaussianMixture

    x = np.random.default_rng(0).normal(size=(40, 4))
    scale = 1.0
    first = {
        "function": lambda train, k: PCA(k).fit(train),
        "estimator": GaussianMixture(),
        "value": lambda train, k: PCA(k).fit(scale * train),
    }
    second = {
        "function": lambda train, k: FactorAnalysis(k).fit(train),
        "estimator": GaussianMixture(covariance_type="diag"),
        "value": first["value"],
    }
    for name in first:
        path, scale = tmp_path / f"{name}.db", 1.0
        lksd.choose(x, first[name], [1, 2], folds=2, checkpoint=path)
        lksd.choose(x, first[name], [1, 2], folds=2, checkpoint=path)
        scale = 2.0
        with pytest.raises(ValueError, match="checkpoint: expected one of the same data"):
            lksd.choose(x, second[name], [1, 2], folds=2, checkpoint=path)


def test_the_same_digits_in_other_processes():
    from sklearn.mixture import GaussianMixture

    x = np.random.default_rng(0).normal(size=(60, 3))
    here = lksd.choose(x, GaussianMixture(n_init=2), [1, 2, 3], folds=3)
    there = lksd.choose(x, GaussianMixture(n_init=2), [1, 2, 3], folds=3, engine="dask")
    np.testing.assert_array_equal(here.losses, there.losses)
    assert str(here) == str(there)


def test_a_bar_from_the_first_second(tmp_path):
    """A line with the share that is done, long before two seconds have passed."""
    x = np.random.default_rng(0).normal(size=(60, 4))
    np.savetxt(tmp_path / "x.csv", x, delimiter=",", header="a,b,c,d", comments="")
    arguments = ["choose", "x.csv", "--family", "factors", "--candidates", "1:3"]
    shown, code = on_terminal([sys.executable, "-m", "lksd", *arguments], cwd=tmp_path)
    assert code == 0
    assert "choosing among 3 candidates" in shown
    assert "How many factors describe the data best?" in shown

"""A small run of every experiment, from the command to the table; and the parts that experiments
share.
"""

from itertools import product

import numpy as np
import pytest
from snapshot import write_snapshot

import lksd
from lksd.cli import main
from lksd.inference import kernel_sums
from lksd.inference.mmd import judge_means
from lksd.kernels import IMQ, Gaussian
from lksd.reproduce.experiment import Task, trial_seed
from lksd.reproduce.problems import (
    EXPERIMENTS,
    arxiv,
    experiment_named,
    experiments_named,
    ppca,
    ppca_chains,
    topics,
)
from lksd.reproduce.store import Store
from lksd.reproduce.testing import means_of, sample_sums

N = 16
NEEDS_DATA = [one.name for one in EXPERIMENTS if one.prepare is not None]


def small_run(experiment, store, *more):
    """One trial of the first and the last case."""
    options = ["--trials", "1", "--n", str(N), "--processes", "1", "--store", str(store), *more]
    if experiment.cases != ("",):
        options += ["--cases", f"{experiment.cases[0]},{experiment.cases[-1]}"]
    assert main(["reproduce", experiment.name, *options]) == 0
    cases = dict.fromkeys((experiment.cases[0], experiment.cases[-1]))
    return {
        (case, method, N, alpha)
        for case in cases
        for method in experiment.all_methods
        for alpha in experiment.alphas
    }


@pytest.mark.parametrize("name", [one.name for one in EXPERIMENTS if one.name not in NEEDS_DATA])
def test_every_experiment_runs(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ppca, "EXTRA", 500)
    experiment, store = experiment_named(name), tmp_path / "study.sqlite"
    wanted = small_run(experiment, store)
    assert set(Store(store).counts(experiment)) == wanted
    printed = capsys.readouterr().out
    assert experiment.title in printed
    assert "1 trials run" in printed
    small_run(experiment, store)
    assert "0 trials run" in capsys.readouterr().out


@pytest.mark.parametrize("name", NEEDS_DATA)
def test_every_experiment_on_arxiv_runs(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(arxiv, "ALL", 600)
    monkeypatch.setattr(arxiv, "LENGTHS", dict.fromkeys(arxiv.LENGTHS, topics.Lengths(100, 200)))
    data = write_snapshot(tmp_path / "snapshot.jsonl.gz")
    experiment, store = experiment_named(name), tmp_path / "study.sqlite"
    wanted = small_run(experiment, store, "--data", str(data))
    assert set(Store(store).counts(experiment)) == wanted
    capsys.readouterr()
    assert (
        main(
            [
                "reproduce",
                name,
                "--data",
                str(data),
                "--store",
                str(store),
                "--trials",
                "1",
                "--processes",
                "1",
            ]
        )
        == 2
    )
    assert (
        "n: expected at most 16, the articles of stat.TH with 100 words; got 500"
        in capsys.readouterr().err
    )


def test_words_of_an_abstract():
    text = "We study $x^2$-estimators [1], with 3.5 (or 2,000) STATE-space models."
    assert (
        " ".join(arxiv.words(text))
        == "we study xmathx estimators xnumx with xnumx or xnumx state-space models"
    )


def test_names_are_unique_and_tables_have_all_their_parts():
    names = [one.name for one in EXPERIMENTS]
    assert len(set(names)) == len(names)
    assert [one.name for one in experiments_named("Table 2")] == ["lda-problem1", "lda-problem2"]
    aliases = {alias for one in EXPERIMENTS for alias in one.aliases}
    assert {f"table{number}" for number in range(1, 9)} | {
        f"figure{number}" for number in range(1, 17)
    } <= aliases


@pytest.mark.parametrize("make", [IMQ.median, IMQ.covariance, Gaussian.median])
def test_the_mmd_on_prefixes_is_the_mmd(make, monkeypatch):
    monkeypatch.setattr(kernel_sums, "TILE", 64)
    rng = np.random.default_rng(0)
    x, p, q = rng.normal(size=(50, 4)), rng.normal(size=(200, 4)), rng.normal(0.1, 1, (200, 4))
    kernel, sizes, counts = make(x), (30, 50), (130, 150, 190)
    (of_p,), (of_q,) = (sample_sums((kernel,), x, y, sizes, counts) for y in (p, q))
    (of_data,) = kernel_sums.own_sums((kernel,), x, sizes)
    for n, count in product(sizes, counts):
        ours = judge_means(*means_of(of_p, of_q, of_data, n, count), kernel, 0.05)
        theirs = lksd.relative_mmd(x[:n], p[:count], q[:count], kernel)
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-9)
        assert ours.mmd_p == pytest.approx(theirs.mmd_p, abs=1e-12)
        assert (ours.n, ours.n_p, ours.n_q) == (n, count, count)


def test_smaller_samples_are_prefixes():
    task = Task(0, trial_seed("a", 0), (10,), (), ("",), (0.05,))
    weight = ppca.weight(100)
    np.testing.assert_array_equal(
        ppca.draws(weight, 10, task, 0), ppca.draws(weight, 30, task, 0)[:10]
    )
    model = topics.Documents({}).model((0.0, 0.0))
    np.testing.assert_array_equal(
        topics.documents(model, 10, 3), topics.documents(model, 30, 3)[:10]
    )


def test_seeds_follow_from_name_and_number():
    assert trial_seed("ppca-problem1", 3) == trial_seed("ppca-problem1", 3)
    seeds = [
        trial_seed(name, trial, base)
        for name in ("a", "b")
        for trial in range(100)
        for base in (0, 1)
    ]
    assert len(set(seeds)) == 400


def test_one_chain_serves_the_grid_of_warmups_and_draws():
    task = Task(0, 5, (N,), (), ("",), (0.05,))
    x, model = ppca.draws(ppca.weight(100), N, task, 0), ppca.perturbed(1.0, 100)
    sums = ppca_chains.chain_sums(model, x, ppca_chains.NUTS(), ppca_chains.BoxStart(), 5)
    (exact,) = ppca.scores("ksd", model, x, 0).parts
    errors = {
        m: np.abs(ppca_chains.score(model, x, sums, 200, m) - exact).mean()
        for m in ppca_chains.DRAWS
    }
    assert errors[1] > errors[10] > errors[100] > errors[1000]
    assert errors[1000] < 0.05 * errors[1]

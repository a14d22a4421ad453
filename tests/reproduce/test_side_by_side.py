"""Published numbers, marks, tables, figures, the page, and what bad commands are told."""

import csv
import re

import pytest

from lksd.cli import main
from lksd.reproduce import folder, problems
from lksd.reproduce.experiment import Outcome
from lksd.reproduce.figures import draw
from lksd.reproduce.problems import EXPERIMENTS, experiment_named
from lksd.reproduce.published import PUBLISHED, TABLES, TRIALS, published
from lksd.reproduce.show import (
    AGREES,
    BETTER,
    NOTHING,
    WORSE,
    cells,
    interval,
    mark,
    method_name,
    summary,
)
from lksd.reproduce.store import Count, Store


def test_published_cells_are_cells_of_the_experiments():
    for cell in PUBLISHED:
        experiment = experiment_named(cell.experiment)
        assert cell.method in experiment.methods
        assert cell.n in experiment.sizes
        assert cell.alpha in experiment.alphas
        # A few rates of the paper are cut, and one is halfway between two counts.
        assert abs(cell.rate - round(cell.rate * TRIALS) / TRIALS) < 0.0018
    keys = [cell[:4] for cell in PUBLISHED]
    assert len(set(keys)) == len(keys)


def test_published_tables_are_whole():
    assert {table.source for table in TABLES} == {
        "Table 1",
        "Table 2a",
        "Table 2b",
        *(f"Table {number}" for number in range(3, 9)),
    }
    assert sum(len(table.methods) * 5 for table in TABLES) == 195
    assert published("lda-problem2")["lksd-imq", 500, 0.05].rate == 0.570
    assert published("arxiv-probability")["lksdextra-imq", 100, 0.05].rate == 0.673
    assert published("lda-sparse-problem2")["mmd-imq", 500, 0.01].rate == 0.146


def test_intervals():
    low, high = interval(Count(0, 20))
    assert (low, high) == (0.0, pytest.approx(1 - 0.025 ** (1 / 20)))
    low, high = interval(Count(5, 10))
    assert (low, high) == (pytest.approx(0.1871, abs=1e-4), pytest.approx(0.8129, abs=1e-4))


@pytest.mark.parametrize(
    ("count", "rate", "null", "expected"),
    [
        (Count(60, 100), 0.57, False, AGREES),
        (Count(90, 100), 0.57, False, BETTER),
        (Count(30, 100), 0.57, False, WORSE),
        (Count(30, 100), None, False, NOTHING),
        (Count(0, 100), 0.05, True, AGREES),
        (Count(8, 100), None, True, AGREES),
        (Count(15, 100), 0.20, True, WORSE),
    ],
)
def test_marks(count, rate, null, expected):
    assert mark(count, rate, 0.05, null) == expected


@pytest.fixture
def study(tmp_path):
    """A store with trials of every experiment that were never run."""
    path = tmp_path / "study.sqlite"
    store = Store(path)
    for experiment in EXPERIMENTS:
        for trial in range(3):
            outcomes = [
                Outcome(case, method, n, alpha, 1.0, 0.02, (trial + n // 100) % 3 == 0, 0.1)
                for case in experiment.cases
                for method in experiment.all_methods
                for n in experiment.sizes[:2]
                for alpha in experiment.alphas
            ]
            store.write(experiment, trial, trial, outcomes)
    return path


def test_show_prints_published_beside_ours(study, capsys):
    assert main(["reproduce", "show", "table2", "--store", str(study)]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"LKSD \(IMQ\) +0\.05 +100 +0\.070 +0\.333 +\[0\.008, 0\.906\] +3 +agrees", out
    )
    assert "LDA Problem 1" in out
    assert "published is the paper's best" in out
    found = cells(experiment_named("lda-problem2"), Store(study))
    ours = next(cell for cell in found if (cell.method, cell.n, cell.alpha) == ("ours", 200, 0.05))
    assert (ours.published, ours.source) == (0.183, "Table 2b, LKSD (IMQ)")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lda-problem2", r"24 cells of 3 trials: \d+ agrees, \d+ better, \d+ worse\.$"),
        (
            "ppca-heatmap",
            r"600 cells of 3 trials: \d+ agrees, 0 better, \d+ worse, 270 not judged\.$",
        ),
        ("ppca-scale", r"for which the paper has no numbers\.$"),
    ],
)
def test_a_sentence_on_all_cells(study, name, expected):
    assert re.search(expected, summary(cells(experiment_named(name), Store(study))))


def test_figures_are_written(study, tmp_path, capsys):
    names = ["ppca-problem1", "ppca-heatmap", "ppca-sampler", "mixture", "ppca-scale"]
    assert (
        main(["reproduce", "figure", *names, "--store", str(study), "--output", str(tmp_path)]) == 0
    )
    for name in names:
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()
    assert capsys.readouterr().out.count("Figure: ") == 10


@pytest.mark.parametrize(("rejected", "highest"), [(0, 0.3), (30, 1.0)])
def test_rates_near_the_level_fill_the_figure(tmp_path, rejected, highest):
    experiment, store = experiment_named("ppca-identical"), Store(tmp_path / "study.sqlite")
    for trial in range(40):
        store.write(
            experiment,
            trial,
            trial,
            [Outcome("", "ustat-imq", 100, 0.05, 1.0, 0.5, trial < rejected, 0.1)],
        )
    (ax,) = draw(experiment, cells(experiment, store)).axes
    assert ax.get_ylim()[1] == pytest.approx(1.03 * highest)


def test_the_page_has_every_experiment(study, tmp_path, capsys):
    page = tmp_path / "all.html"
    assert main(["reproduce", "report", "--store", str(study), "--output", str(page)]) == 0
    text = page.read_text()
    for experiment in EXPERIMENTS:
        assert f'<h2 id="{experiment.name}">' in text
    assert text.count("<svg") == len(EXPERIMENTS)
    assert "Content-Security-Policy" in text
    assert not re.search(r'(src|href)="(?!#)', text)


def test_a_study_as_a_folder(study, tmp_path, capsys, monkeypatch):
    kept = [experiment_named(name) for name in ("lda-problem2", "mixture", "ppca-heatmap")]
    monkeypatch.setattr(problems, "EXPERIMENTS", kept)
    assert main(["reproduce", "export", "--store", str(study), "--output", str(tmp_path)]) == 0
    assert "index.md and 7 files beside it" in capsys.readouterr().out
    page = (tmp_path / "index.md").read_text()
    assert "| 0.05 | LKSD (IMQ) | 0.333 (0.070) agrees | 0.333 (0.183) agrees |" in page
    assert "| 1.5 | 0.05 | ours | 0.333 | 0.333 |" in page
    assert "    lksd reproduce mixture --trials 3\n" in page
    assert "1.01/1.01" not in page  # a heat map is a picture
    with (tmp_path / "seeds.csv").open() as file:
        seeds = {
            (row["experiment"], row["trial"]): int(row["seed"]) for row in csv.DictReader(file)
        }
    for experiment in kept:
        assert f"![{experiment.title}]({experiment.name}.svg)" in page
        with (tmp_path / f"{experiment.name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        stored = Store(study).trials(experiment)
        assert len(rows) == len(stored) == len(experiment.cases) * 2 * 3
        grid = experiment.name == "ppca-heatmap"
        for row in rows:
            one = stored[
                row["case"], int(row["n"]), int(row["trial"]), seeds[experiment.name, row["trial"]]
            ]
            for name in experiment.all_methods:
                statistic, pvalue = one[name]
                assert float(row[f"{name} p"]) == pvalue
                assert (
                    f"{name} statistic" not in row
                    if grid
                    else float(row[f"{name} statistic"]) == statistic
                )


def test_trials_of_the_same_number_have_their_seeds_beside_them(tmp_path):
    experiment, store = experiment_named("lda-problem2"), Store(tmp_path / "study.sqlite")
    for trial, seed in ((0, 5), (1, 6), (1, 7)):
        store.write(
            experiment,
            trial,
            seed,
            [Outcome("", "ours", 100, alpha, 1.0, 0.16, False, 1.0) for alpha in experiment.alphas],
        )
    folder.write_folder([experiment], store, tmp_path)
    assert (tmp_path / "lda-problem2.csv").read_text() == (
        "case,n,trial,seed,ours statistic,ours p\n,100,0,5,1,0.16\n,100,1,6,1,0.16\n"
        ",100,1,7,1,0.16\n"
    )
    assert (
        tmp_path / "seeds.csv"
    ).read_text() == "experiment,trial,seed\nlda-problem2,0,5\nlda-problem2,1,6\nlda-problem2,1,7\n"


@pytest.mark.parametrize(
    ("pvalue", "expected"),
    [
        (0.123456, "0.1235"),
        (0.0500004, "0.0500004"),
        (0.04999999, "0.05"),
        (0.0099999, "0.01"),
        (1.0, "1"),
    ],
)
def test_decisions_follow_from_the_digits_that_are_kept(pvalue, expected):
    assert folder.rounded(pvalue, (0.01, 0.05)) == expected


def test_list_has_a_line_for_each(capsys):
    assert main(["reproduce", "list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        one.name for one in EXPERIMENTS
    ]


def test_methods_have_names():
    assert method_name("lksd-cov") == "LKSD (IMQ-cov)"
    assert method_name("ours") == "ours"
    every = {method for experiment in EXPERIMENTS for method in experiment.all_methods}
    assert all(
        method_name(method).partition(" (")[0] not in method.split("-")
        for method in every - {"ours"}
    )


BAD = {
    "an unknown experiment": (
        ("table99",),
        "'table99': expected an experiment, or a table or figure",
    ),
    "a name after list": (("list", "table1"), "list: expected no name after it; got 'table1'"),
    "show without a name": (("show",), "show: expected the name of an experiment"),
    "a name after export": (
        ("export", "table1"),
        "export: expected no name after it; got 'table1'",
    ),
    "no trials": (("table1", "--trials", "0"), "--trials: expected at least 1; got 0"),
    "no processes": (("table1", "--processes", "0"), "--processes: expected at least 1"),
    "a sample of two": (("table1", "--n", "2"), "--n: expected sample sizes of at least 4"),
    "words as sizes": (("table1", "--n", "few"), "--n: expected sample sizes"),
    "an empty list of sizes": (("table1", "--n", ""), "--n: expected sample sizes"),
    "an unknown method": (("table1", "--methods", "hsic"), "--methods: expected one of 'mmd-eq'"),
    "an unknown case": (("figure6", "--cases", "7"), "--cases: expected one of '0.5'"),
    "a negative seed": (("table1", "--seed", "-1"), "seed: expected an integer of at least 0"),
    "a store in no folder": (
        ("table1", "--store", "no/a.sqlite"),
        "store: expected a folder that exists",
    ),
    "arXiv without data": (
        ("table3", "--trials", "1"),
        "arxiv-probability needs a snapshot of arXiv",
    ),
    "arXiv with no such data": (
        ("table3", "--data", "none.gz"),
        "expected a snapshot of arXiv; there is no such file",
    ),
    "arXiv with other lines": (("table3", "--data", "lines.json"), "line 1 is not"),
    "arXiv without a category": (("table3", "--data", "few.json"), "none is of"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_commands(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.json").write_text("[1, 2]\n")
    (tmp_path / "few.json").write_text('{"abstract": "one word", "categories": "math.PR"}\n')
    arguments, message = BAD[name]
    assert main(["reproduce", *arguments]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize("verb", ["show", "figure", "report", "export"])
def test_without_trials_there_is_nothing_to_show(verb, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = [] if verb in ("report", "export") else ["table1"]
    assert main(["reproduce", verb, *names]) == 2
    assert "'reproduction.sqlite' does not exist" in capsys.readouterr().err
    Store("reproduction.sqlite")
    assert main(["reproduce", verb, *names]) == 2
    assert "yet. Run" in capsys.readouterr().err


def test_a_store_that_is_no_store(tmp_path, capsys):
    path = tmp_path / "notes.sqlite"
    path.write_text("these are notes, not trials " * 100)
    assert main(["reproduce", "show", "table1", "--store", str(path)]) == 2
    assert "store: expected a file of trials" in capsys.readouterr().err

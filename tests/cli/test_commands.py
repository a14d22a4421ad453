"""The commands, called as users call them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from files import documents, numbers
from terminal import on_terminal

import lksd

PAIR = ("--p", "models.py:p", "--q", "models.py:q")
TOPICS = ("--p", "a.npz", "--q", "b.npz")
LKSD = [str(Path(sys.executable).with_name("lksd"))]


def test_a_comparison_prints_its_table_and_sentence(lksd_command):
    code, out, err = lksd_command("compare", "x.npy", *PAIR)
    assert code == 0
    assert err == ""
    assert out.startswith("P: models.py:p\nQ: models.py:q\n")
    assert "log loss" in out
    assert "squared KSD" not in out
    assert out.rstrip().endswith(lksd_result().sentence)


def lksd_result():
    weight = np.array([[1.0], [0.5], [-0.5]])
    return lksd.compare(numbers(), lksd.models.PPCA(weight, 2.0), lksd.models.PPCA(weight, 1.0))


def test_json_is_the_result(lksd_command, tmp_path):
    _, out, _ = lksd_command("compare", "x.npy", *PAIR, "--json", "--seed", 7, "--alpha", 0.01)
    path = tmp_path / "result.json"
    path.write_text(out)
    loaded, record = lksd.load_result(path), json.loads(out)
    assert loaded.to_json() + "\n" == out
    assert (loaded.seed, loaded.alpha) == (7, 0.01)
    assert record["settings"]["seed"] == 7
    assert record["settings"]["data"] == "x.npy"
    assert record["settings"]["p"] == "models.py:p"
    assert {"lksd", "jax", "numpy", "scipy", "python"} <= set(record["versions"])


RANKED = ("rank", "x.npy", "models.py:p", "models.py:q")


def test_a_ranking_prints_writes_and_loads(lksd_command, tmp_path):
    report = tmp_path / "ranking.html"
    code, out, err = lksd_command(*RANKED, "--name", "wide", "--name", "right", "--report", report)
    assert (code, err) == (0, "")
    assert "adjusted p" in out
    assert "right fits best (level 0.05); the kernel Stein discrepancy agrees." in out
    assert "right fits best" in report.read_text()
    code, out, _ = lksd_command(
        *RANKED,
        "--json",
        "--correction",
        "holm",
        "--margin",
        0.01,
        "--kernel",
        "family",
        "--criterion",
        "ksd",
    )
    (tmp_path / "ranking.json").write_text(out)
    loaded = lksd.load_result(tmp_path / "ranking.json")
    assert (code, loaded.correction, loaded.margin, len(loaded.tests)) == (0, "holm", 0.01, 5)
    assert json.loads(out)["settings"]["models"] == ["models.py:p", "models.py:q"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("models.py:p",), "expected at least two models to rank; got 1"),
        (("models.py:p", "models.py:p"), "got 'models.py:p' twice"),
        (
            ("models.py:p", "models.py:q", "--name", "a"),
            "--name: expected one for each of 2 models; got 1",
        ),
        (
            ("models.py:p", "models.py:q", "--margin", "-1"),
            "margin: expected a number of at least 0; got -1.0",
        ),
        (("models.py:p", "a.npz"), "expected models of the same kind of data"),
    ],
)
def test_bad_rankings(arguments, message, lksd_command):
    code, out, err = lksd_command("rank", "x.npy", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_the_same_command_gives_the_same_digits(lksd_command):
    command = (
        "compare",
        "x.npy",
        *PAIR,
        "--no-exact",
        "--draws",
        40,
        "--warmup",
        20,
        "--json",
        "--seed",
        3,
    )
    first, second = lksd_command(*command), lksd_command(*command)
    assert first[0] == 0
    assert first[1] == second[1]
    assert lksd_command(*command[:-1], 4)[1] != first[1]


def written(name: str, folder: Path) -> Path:
    """The numbers in a file of another kind."""
    import polars

    path, frame = folder / name, polars.DataFrame(numbers(), schema=["a", "b", "c"])
    if name.endswith(".csv"):
        frame.write_csv(path)
    elif name.endswith(".tsv"):
        frame.write_csv(path, separator="\t", include_header=False)
    elif name.endswith(".parquet"):
        frame.write_parquet(path)
    elif name.endswith(".npz"):
        np.savez(path, numbers())
    return path


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.parquet", "data.npz"])
def test_every_kind_of_file_gives_the_same_answer(name, lksd_command, tmp_path):
    expected = lksd_command("compare", "x.npy", *PAIR)[1]
    code, out, err = lksd_command("compare", written(name, tmp_path), *PAIR)
    assert (code, out, err) == (0, expected, "")


def test_columns_and_arrays_by_name(lksd_command, tmp_path):
    expected = lksd_command("compare", "x.npy", *PAIR)[1]
    wide = tmp_path / "wide.csv"
    rows = ["name,c,a,b"] + [
        f"no {i},{c!r},{a!r},{b!r}" for i, (a, b, c) in enumerate(numbers().tolist())
    ]
    wide.write_text("\n".join(rows))
    assert lksd_command("compare", "two.npz", "--array", "x", *PAIR)[1] == expected
    code, _, err = lksd_command("compare", wide, *PAIR)
    assert code == 2
    assert "column 'name'" in err
    code, out, err = lksd_command("compare", wide, "--columns", "a,b,c", *PAIR)
    assert (code, err) == (0, "")
    assert out == expected


def test_options_reach_the_test(lksd_command):
    options = (
        "--criterion",
        "ksd",
        "--alternative",
        "two-sided",
        "--calibration",
        "normal",
        "--variance",
        "vstat",
        "--standardise",
    )
    code, out, _ = lksd_command(
        "compare",
        "x.npy",
        *PAIR,
        *options,
        "--kernel",
        "imq",
        "--kernel",
        "models.py:kernel",
        "--json",
    )
    record = json.loads(out)
    assert code == 0
    assert record["result"]["alternative"] == "two-sided"
    assert record["result"]["variance"] == "vstat"
    assert record["settings"]["standardise"] is True
    assert len(record["result"]["tests"]) == 2
    _, out, _ = lksd_command(
        "compare", "x.npy", *PAIR, "--no-exact", "--sampler", "nuts", "--draws", 40, "--warmup", 20
    )
    assert "NUTS, 2 chains of 20 draws after 20" in out


def test_saved_scores_are_models_too(lksd_command, folder):
    weight = np.array([[1.0], [0.5], [-0.5]])
    lksd.estimate_scores(lksd.models.PPCA(weight, 2.0), numbers()).save(folder / "scores.npz")
    _, out, _ = lksd_command("compare", "x.npy", "--p", "scores.npz", "--q", "models.py:q")
    assert out == lksd_command("compare", "x.npy", *PAIR, "--criterion", "ksd")[1].replace(
        "P: models.py:p", "P: scores.npz"
    )


def test_topics_takes_words_and_ids_and_counts(lksd_command, folder):
    ids = [[int(word.removeprefix("word")) for word in words] for words in documents()]
    (folder / "ids.jsonl").write_text(
        "\n".join(json.dumps({"id": i, "tokens": row}) for i, row in enumerate(ids))
    )
    code, out, err = lksd_command("topics", "docs.jsonl", *TOPICS)
    assert (code, err) == (0, "")
    assert "word" in out
    assert lksd_command("topics", "ids.jsonl", *TOPICS)[1] == out
    counts = np.zeros((len(ids), 12), int)
    for row, words in zip(counts, ids, strict=True):
        np.add.at(row, words, 1)
    np.save(folder / "counts.npy", counts)
    code, counted, _ = lksd_command("topics", "counts.npy", *TOPICS, "--counts")
    assert code == 0
    assert statistics(counted) == statistics(out)


def statistics(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("T = "))


def test_words_that_no_model_knows_are_said(lksd_command, folder):
    rows = [[*words, "unheard", "of"] for words in documents()]
    (folder / "odd.jsonl").write_text("\n".join(json.dumps({"text": row}) for row in rows))
    code, out, _ = lksd_command("topics", "odd.jsonl", *TOPICS, "--field", "text")
    assert code == 0
    assert "60 of" in out
    assert "(2 different) are not in the models' vocabulary and are left out." in out
    assert statistics(out) == statistics(lksd_command("topics", "docs.jsonl", *TOPICS)[1])


def test_a_gensim_model_needs_trust(lksd_command, folder):
    pytest.importorskip("gensim")
    from gensim.corpora import Dictionary
    from gensim.models import LdaModel

    dictionary = Dictionary(documents())
    bags = [dictionary.doc2bow(words) for words in documents()]
    for name, count in (("small.model", 2), ("large.model", 3)):
        LdaModel(bags, count, dictionary, random_state=0).save(str(folder / name))
    command = ("topics", "docs.jsonl", "--p", "small.model", "--q", "large.model")
    code, out, err = lksd_command(*command)
    assert (code, out) == (2, "")
    assert "--trust-pickle" in err
    code, out, _ = lksd_command(*command, "--trust-pickle")
    assert code == 0
    assert "word" in out


def test_a_pickle_is_not_opened_without_trust(lksd_command, folder):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(folder / "sprung"),))

    import pickle

    for name in ("trap.pkl", "trap.model", "trap.joblib", "trap.pickle"):
        (folder / name).write_bytes(pickle.dumps(Trap()))
        code, _, err = lksd_command("compare", "x.npy", "--p", name, "--q", "models.py:q")
        assert code == 2
        assert "pickle" in err
    np.save(folder / "objects.npy", np.array([Trap(), 1], dtype=object), allow_pickle=True)
    np.savez(folder / "objects.npz", x=np.array([Trap(), 1], dtype=object))
    for name in ("objects.npy", "objects.npz"):
        code, _, err = lksd_command("compare", name, *PAIR)
        assert code == 2
        assert "Python objects" in err
    assert not (folder / "sprung").exists()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["compare", "--help"], ["topics", "--help"], ["demo", "--help"], []]
)
def test_help_has_examples_and_says_that_models_are_code(arguments, lksd_command):
    code, out, err = lksd_command(*arguments)
    assert (code, err) == (0, "")
    if "compare" in arguments or "topics" in arguments:
        assert "Examples" in out
        assert "is code" in " ".join(out.replace("│", " ").split())


# As a user does: by the program.


def run(*arguments, cwd, **options):
    return subprocess.run(
        [*LKSD, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, **options
    )


def test_the_program_prints_its_version(folder):
    done = run("--version", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"lksd {lksd.__version__}\n", "")


def test_the_program_compares_and_reports(folder):
    done = run("compare", "x.npy", *PAIR, "--report", "out.html", cwd=folder)
    assert done.returncode == 0
    assert done.stderr == ""  # piped, so no progress
    assert done.stdout.endswith("Report: out.html\n")
    assert "<h1>" in (folder / "out.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare"], "Missing argument"),
        (["compare", "none.npy", *PAIR], "none.npy: expected a file"),
        (["compare", "x.npy", "--p", "models.py", "--q", "models.py:q"], "expected file.py:name"),
        (["compare", "x.npy", *PAIR, "--alpha", "2"], "strictly between 0 and 1"),
        (["compare", "x.npy", *PAIR, "--report", "no/where.html"], "expected a folder that exists"),
        (["forecast"], "No such command"),
    ],
)
def test_the_program_says_one_sentence_and_exits_with_2(arguments, said, folder):
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


BROKEN = """
import sys
import lksd.cli.answer
from lksd.cli import main

def lost(*arguments, **options):
    raise KeyError("lost")

lksd.cli.answer.compare = lost
sys.exit(main(sys.argv[1:]))
"""


def test_an_internal_error_exits_with_1(folder):
    command = [sys.executable, "-c", BROKEN, "compare", "x.npy", *PAIR]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Internal error: KeyError: 'lost'.")
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(folder):
    command = f"{LKSD[0]} compare x.npy {' '.join(PAIR)} --json | head -c 20"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=folder, capture_output=True, text=True
    )
    assert done.stderr == ""


def test_ctrl_c_stops_and_leaves_nothing(folder):
    command = [
        *LKSD,
        "compare",
        "x.npy",
        *PAIR,
        "--no-exact",
        "--draws",
        "2000000",
        "--report",
        "stopped.html",
    ]
    started = time.monotonic()
    shown, code = on_terminal(command, interrupt_after=12, cwd=folder)
    assert code == 130
    assert "Comparing on 60 observations" in shown
    assert "Stopped. Nothing was written." in shown
    assert "Traceback" not in shown
    assert not list(folder.glob("*stopped*"))
    assert time.monotonic() - started < 40


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--name-p", "wide"), ("wide", "Q")),
        (("--name-p", "wide", "--name-q", "narrow"), ("wide", "narrow")),
    ],
)
def test_models_are_called_by_their_names(lksd_command, folder, options, names):
    p, q = names
    _, out, _ = lksd_command("compare", "x.npy", *PAIR, *options, "--report", "named.html")
    assert out.startswith(
        f"{p}: models.py:p\n{q}: models.py:q\n\nH0: {p} and {q} fit equally well;"
    )
    assert f"\n{p} - {q} " in out
    assert f"Which of {p} and {q} fits the data better?" in (folder / "named.html").read_text()
    _, out, _ = lksd_command("compare", "x.npy", *PAIR, *options, "--json")
    (folder / "named.json").write_text(out)
    assert lksd.load_result(folder / "named.json").names == names


def test_hostile_names_are_text_on_a_terminal(folder):
    hostile = "\x1b]0;owned\x07<script>alert(1)</script>\x1b[2J[bold]\u202e"
    command = [*LKSD, "compare", "x.npy", *PAIR, "--name-p", hostile]
    shown, code = on_terminal(command, cwd=folder)
    assert code == 0
    assert "\\x1b]0;owned\\x07<script>alert(1)</script>\\x1b[2J[bold]\\u202e: models.py:p" in shown
    assert "\x1b]0;" not in shown
    assert "\x1b[2J" not in shown
    shown, code = on_terminal([*LKSD, "compare", f"{hostile}.npy", *PAIR], cwd=folder)
    assert code == 2
    assert "\x1b]0;" not in shown


def raised_by(function, *arguments) -> Exception:
    try:
        function(*arguments)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_faults_are_told_from_bad_input():
    """What our code refuses by a raise, a missing file, and the user's own errors are the user's;
    the rest is not.
    """
    from lksd._text import line_of, number
    from lksd._validation import check_seed
    from lksd.cli.main import concerns_input

    def users_model():
        raise ValueError("my own check")

    assert concerns_input(raised_by(check_seed, -1))
    assert concerns_input(raised_by(open, "no such file"))
    assert line_of(raised_by(users_model)).startswith("test_commands.py:")
    assert line_of(raised_by(check_seed, -1)) is None
    assert not concerns_input(raised_by(number, "text"))  # formatting fails inside of this package
    assert not concerns_input(raised_by(np.load, 3))


def test_a_field_called_shape_is_a_field_like_any_other(lksd_command, tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        "import numpy as np, lksd\n"
        "class Own(lksd.models.PPCA):\n"
        "    shape: float = 1.0\n"
        "p, q = (Own(np.ones((3, 1)), scale, shape=scale) for scale in (1.0, 2.0))\n"
    )
    code, out, err = lksd_command("compare", "x.npy", "--p", f"{path}:p", "--q", f"{path}:q")
    assert (code, err) == (0, "")
    assert out.startswith("P: ")


FORGETFUL = """
import jax
import jax.numpy as jnp
import lksd

class Forgetful(lksd.models.LatentVariableModel):
    def log_prior(self, z):
        return -z**2 / 2

    def log_likelihood(self, x, z):
        return z * jnp.sum(x) - 3 * z**2 / 2

    def log_marginal(self, x):
        return jnp.sum(x)**2 / 8

    def sample(self, key):
        keys = jax.random.split(key)
        z = jax.random.normal(keys[0])
        return z, z + jax.random.normal(keys[1], (3,))

m = Forgetful()
"""


@pytest.mark.filterwarnings("always:.*own draws:UserWarning")
def test_a_model_that_does_not_fit_its_own_draws(lksd_command, folder):
    (folder / "own.py").write_text(FORGETFUL)
    for command in (
        ("compare", "x.npy", "--p", "models.py:p", "--q", "own.py:m"),
        ("rank", "x.npy", "models.py:p", "own.py:m"),
    ):
        code, out, err = lksd_command(*command)
        assert code == 0
        assert "does not fit its own draws" in out
        assert (
            f"{'Q' if command[0] == 'compare' else 'own.py:m'}: the model does not fit its own "
            "draws" in err
        )
        code, out, err = lksd_command(*command, "--no-check")
        assert (code, err) == (0, "")
        assert "own draws" not in out


def test_columns_of_a_file_are_matched_by_their_names(lksd_command, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2)) + np.array([0, 5])
    (tmp_path / "own.py").write_text(
        "import numpy as np, lksd\n"
        "p, q = (lksd.models.PPCA(np.ones((2, 1)), noise, [0.0, 5.0], columns=('a', 'b')) for "
        "noise in (1.0, 2.0))\n"
    )
    models = ("--p", f"{tmp_path}/own.py:p", "--q", f"{tmp_path}/own.py:q", "--json")
    statistics = []
    for order in ([0, 1], [1, 0]):
        names = ",".join("ab"[i] for i in order)
        path = tmp_path / f"{names}.csv"
        path.write_text(
            "\n".join([names, *(",".join(map(repr, row.tolist())) for row in rows[:, order])])
        )
        code, out, _ = lksd_command("compare", path, *models)
        assert code == 0
        statistics.append(json.loads(out)["result"]["statistic"])
    assert statistics[0] == pytest.approx(statistics[1], rel=1e-9)
    path.write_text(path.read_text().replace("b,a", "c,a"))
    code, _, err = lksd_command("compare", path, *models)
    assert code == 2
    assert "lacks 'b' and has also 'c'" in err

"""Topic models on the command line: empty documents, kernels and pairs."""

import json

import ksd
import numpy as np
import pytest
from files import documents, topic_models

import lksd
from lksd.models import LDA

TOPICS = ("--p", "a.npz", "--q", "b.npz")
KSD = ("--criterion", "ksd", "--alternative", "greater")
MODELS = [
    LDA(one["concentration"], one["topics"], one["vocabulary"].tolist())
    for one in topic_models().values()
]


@pytest.fixture
def gaps(tmp_path):
    """Documents of which two have no known word, and the file that they are in."""
    given = documents()
    given[2], given[17] = [], ["zebra", "yak"]
    path = tmp_path / "gaps.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in given))
    return given, path


@pytest.mark.parametrize(
    "command",
    [("topics", *TOPICS), ("compare", *TOPICS), ("rank", "a.npz", "b.npz")],
    ids=lambda one: one[0],
)
def test_empty_documents_are_dropped_on_demand(command, gaps, lksd_command):
    name, *rest = command
    code, _, err = lksd_command(name, gaps[1], *rest)
    assert code == 2
    assert "document 2 (counting from 0): none of its 0 words" in err
    assert "--drop-empty" in err
    code, out, _ = lksd_command(name, gaps[1], *rest, "--drop-empty")
    assert code == 0
    assert "2 of 30 documents have no words" in out
    assert "2, 17 (counting from 0)" in out


def test_a_report_of_documents_some_of_which_were_dropped(gaps, lksd_command, tmp_path):
    given, path = gaps
    code, out, _ = lksd_command(
        "topics", path, *TOPICS, "--drop-empty", "--json", "--report", tmp_path / "report.html"
    )
    assert code == 0
    (tmp_path / "result.json").write_text(out)
    number, _ = lksd.load_result(tmp_path / "result.json").documents()[0]
    assert " ".join(given[number]) in (tmp_path / "report.html").read_text()


KERNELS = {
    "bag-of-words": lksd.kernels.BagOfWords(lksd.kernels.IMQ(), 12),
    "bag-of-words:4": lksd.kernels.BagOfWords(lksd.kernels.IMQ(4.0), 12),
    "bag-of-words-gaussian:9": lksd.kernels.BagOfWords(lksd.kernels.Gaussian(9.0), 12),
}


def test_counts_in_a_table_whose_columns_are_words(lksd_command, tmp_path):
    """In another order than that of the models, and with one that they do not know."""
    words = [*(f"word{i}" for i in range(11, -1, -1)), "zebra"]
    rows = [[document.count(word) for word in words[:-1]] + [2] for document in documents()]
    path = tmp_path / "counts.csv"
    path.write_text("\n".join([",".join(words), *(",".join(map(str, row)) for row in rows)]))
    code, out, _ = lksd_command(
        "topics", path, *TOPICS, *KSD, "--counts", "--kernel", "bag-of-words", "--json"
    )
    assert code == 0
    ordered = [sorted(document, key=lambda word: int(word[4:])) for document in documents()]
    wanted = ksd.compare(ordered, *MODELS, kernel=lksd.kernels.BagOfWords(lksd.kernels.IMQ(), 12))
    found = json.loads(out)["result"]
    assert found["statistic"] == pytest.approx(wanted.statistic, rel=1e-9)
    assert any(note.startswith("60 of ") and "(1 different)" in note for note in found["notes"])


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_by_name_and_scale(name, lksd_command):
    code, out, _ = lksd_command("topics", "docs.jsonl", *TOPICS, *KSD, "--kernel", name, "--json")
    assert code == 0
    found = json.loads(out)["result"]
    wanted = ksd.compare(documents(), *MODELS, kernel=KERNELS[name])
    assert (found["statistic"], found["kernel"]) == (wanted.statistic, wanted.kernel)


def test_kernels_of_files_and_pairs(lksd_command, tmp_path):
    (tmp_path / "own.py").write_text(
        "import lksd\nkernel = lksd.kernels.BagOfWords(lksd.kernels.IMQ(2.0), 12)\n"
    )
    code, out, _ = lksd_command(
        "topics",
        "docs.jsonl",
        *TOPICS,
        *KSD,
        "--kernel",
        f"{tmp_path / 'own.py'}:kernel",
        "--pairs",
        120,
        "--json",
    )
    assert code == 0
    wanted = ksd.compare(
        documents(), *MODELS, kernel=lksd.kernels.BagOfWords(lksd.kernels.IMQ(2.0), 12), pairs=120
    )
    assert json.loads(out)["result"]["statistic"] == wanted.statistic
    assert "pairs of observations are taken" in out


def test_the_words_of_both_vocabularies_count(lksd_command, tmp_path):
    """A kernel by name fits models of different words, of which documents of words need all."""
    other = topic_models()["b"] | {"vocabulary": np.array([f"word{i}" for i in range(1, 13)])}
    np.savez(tmp_path / "c.npz", **other)
    code, out, _ = lksd_command(
        "topics",
        "docs.jsonl",
        "--p",
        "a.npz",
        "--q",
        tmp_path / "c.npz",
        "--kernel",
        "bag-of-words:2",
    )
    assert code == 0
    assert "BagOfWords(IMQ(Lambda = 2" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("topics", "docs.jsonl", *TOPICS, "--kernel", "bag"),
            "--kernel: expected one of 'standardised'",
        ),
        (
            ("topics", "docs.jsonl", *TOPICS, "--kernel", "bag-of-words:wide"),
            "expected a number as the squared scale",
        ),
        (
            ("topics", "docs.jsonl", *TOPICS, "--kernel", "bag-of-words:-1"),
            "expected positive values; the smallest is -1",
        ),
        (("topics", "docs.jsonl", *TOPICS, "--kernel", "hamming:2"), "hamming has no scale"),
        (
            ("compare", "x.npy", "--p", "models.py:p", "--q", "models.py:q", "--kernel", "hamming"),
            "expected one for real numbers",
        ),
        (
            (
                "compare",
                "x.npy",
                "--p",
                "models.py:p",
                "--q",
                "models.py:q",
                "--kernel",
                "family:2",
            ),
            "takes its scales from the data",
        ),
        (
            ("compare", "x.npy", "--p", "models.py:p", "--q", "models.py:q", "--drop-empty"),
            "drop_empty: expected with models of documents",
        ),
    ],
)
def test_bad_kernels(arguments, message, lksd_command):
    code, out, err = lksd_command(*arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_kernel_of_real_data_with_a_scale(lksd_command):
    code, out, _ = lksd_command(
        "compare", "x.npy", "--p", "models.py:p", "--q", "models.py:q", "--kernel", "gaussian:2.5"
    )
    assert code == 0
    assert "Gaussian(Lambda = 2.5" in out

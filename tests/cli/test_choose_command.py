"""``lksd choose``: a table or texts, and nothing else."""

import json

import numpy as np
import pytest

import lksd

WORDS = {
    "sea": ["wave", "sail", "harbour", "anchor", "tide", "captain", "deck"],
    "farm": ["wheat", "plough", "barn", "cattle", "harvest", "fence", "hay"],
}
TOPICS = ("--family", "topics", "--candidates", "1,2", "--draws", 40, "--warmup", 10)
FACTORS = ("--family", "factors", "--candidates", "1:3", "--folds", 3)


def texts(count=40):
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS[("sea", "farm")[i % 2]], 15)) for i in range(count)]


@pytest.fixture
def numbers(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)) @ (2 * rng.normal(size=(2, 5))) + rng.normal(size=(80, 5))
    path = tmp_path / "data.csv"
    np.savetxt(path, x, delimiter=",", header="a,b,c,d,e", comments="")
    return path


def test_a_table_and_nothing_else(lksd_command, numbers, tmp_path):
    report, model = tmp_path / "report.html", tmp_path / "model.npz"
    code, out, err = lksd_command("choose", numbers, *FACTORS, "--report", report, "--save", model)
    assert (code, err) == (0, "")
    assert out.startswith("How many factors describe the data best?")
    assert "2 factors" in out
    assert f"Model: {model}" in out
    assert all(len(line) <= 80 for line in out.splitlines()[:10])
    assert "How many factors" in report.read_text()
    loaded = lksd.load_model(model)
    assert tuple(loaded.columns) == tuple("abcde")
    code, out, _ = lksd_command("compare", numbers, "--p", model, "--q", model)
    assert code == 0


def test_json_is_the_result(lksd_command, numbers, tmp_path):
    code, out, _ = lksd_command("choose", numbers, *FACTORS, "--json", "--seed", 3)
    assert code == 0
    path = tmp_path / "result.json"
    path.write_text(out)
    loaded = lksd.load_result(path)
    assert loaded.seed == 3
    assert json.loads(out)["settings"]["data"] == str(numbers)


@pytest.fixture(params=["csv", "jsonl", "parquet", "folder"])
def corpus(request, tmp_path):
    import polars

    titles = [f"Chapter {i}" for i in range(40)]
    frame = polars.DataFrame({"title": titles, "body": texts()})
    path = tmp_path / f"texts.{request.param}"
    if request.param == "csv":
        frame.write_csv(path)
    elif request.param == "jsonl":
        frame.write_ndjson(path)
    elif request.param == "parquet":
        frame.write_parquet(path)
    else:
        path.mkdir()
        for title, text in zip(titles, texts(), strict=True):
            (path / f"{title}.txt").write_text(text)
    return path, () if request.param == "folder" else ("--text", "body")


def test_texts_in_any_form(lksd_command, corpus, tmp_path):
    path, column = corpus
    report = tmp_path / "topics.html"
    code, out, err = lksd_command("choose", path, *column, *TOPICS, "--report", report)
    assert code == 0
    assert "40 documents, 600 words, 14 of them different" in err
    assert "without English stop words" in err
    assert "2 topics: every other candidate is shown to fit worse" in out
    page = report.read_text()
    assert "harbour" in page
    assert "Chapter 7" in page


def test_documents_that_are_words_already(lksd_command, tmp_path):
    path = tmp_path / "documents.jsonl"
    path.write_text("\n".join(json.dumps(one.split()) for one in texts()))
    code, out, _ = lksd_command("choose", path, *TOPICS)
    assert code == 0
    assert "2 topics" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--family", "clusters", "--candidates", "1:3"), "--family: expected one of 'factors'"),
        (("--family", "factors", "--candidates", "1-3"), "--candidates: expected whole numbers"),
        (("--family", "factors", "--candidates", "3:1"), "--candidates: expected a range"),
        (("--family", "factors", "--candidates", "2"), "candidates: expected from 2"),
        (
            ("--family", "factors", "--candidates", "1:3", "--text", "a"),
            "--family: expected topics",
        ),
        (("--family", "topics", "--candidates", "1:2", "--text", "z"), "--text: expected the"),
        (
            ("--family", "topics", "--candidates", "1:2", "--text", "a", "--min-documents", 900),
            "no words are left",
        ),
        (
            ("--family", "topics", "--candidates", "1:2", "--text", "a", "--min-documents", 0),
            "--min-documents: expected",
        ),
        (
            ("--family", "topics", "--candidates", "1:2", "--text", "a", "--stop-words", "german"),
            "--stop-words: expected english or none",
        ),
        (
            ("--family", "topics", "--candidates", "1:2", "--text", "a", "--title", "z"),
            "--title: expected one of",
        ),
        (
            ("--family", "factors", "--candidates", "1:3", "--folds", 200),
            "folds: expected at most 40",
        ),
        (("--family", "factors", "--candidates", "1:3", "--save", "m.txt"), "--save: expected"),
        (("--family", "factors", "--candidates", "1:3", "--criterion", "ksd"), "adds up"),
    ],
)
def test_bad_commands_get_a_sentence(lksd_command, numbers, arguments, said):
    code, out, err = lksd_command("choose", numbers, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_a_folder_without_texts(lksd_command, tmp_path):
    code, _, err = lksd_command("choose", tmp_path, *TOPICS)
    assert code == 2
    assert "expected .txt files" in err


def test_fits_that_do_not_reach_their_count(lksd_command, numbers):
    code, out, _ = lksd_command("choose", numbers, "--family", "factors", "--candidates", "3:6")
    assert code == 0
    assert "Left out: 5 factors: it cannot be fitted" in out
    assert "Left out: 6 factors: it cannot be fitted" in out

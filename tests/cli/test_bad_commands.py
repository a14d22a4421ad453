"""Whatever a command is given, bad input ends in one sentence and exit code 2: a table, and files
of any content.
"""

import gzip
import json
import string

import numpy as np
import polars
import pytest
from files import documents, numbers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from lksd.cli import main
from lksd.cli.data import read_data
from lksd.cli.main import concerns_input

P, Q = ("--p", "models.py:p"), ("--q", "models.py:q")
PAIR, TOPICS = (*P, *Q), ("--p", "a.npz", "--q", "b.npz")
X = ("compare", "x.npy", *PAIR)
FAILING = """import lksd
class M(lksd.models.LatentVariableModel):
    def log_prior(self, z):
        return -z @ z / 2

    def log_likelihood(self, x, z):
        {}
        return -x @ x / 2

    def initial(self, key, x):
        return x
m = M()"""
ROWS = "1,2,3\n4,5,6\n7,8,9\n1,3,2\n"


def csv(text):
    return ("bad.csv", text, ("compare", "bad.csv", *PAIR))


def jsonl(text):
    return ("bad.jsonl", text, ("topics", "bad.jsonl", *TOPICS))


def array(value):
    return ("bad.npy", value, ("compare", "bad.npy", *PAIR))


def model(text, name="m"):
    return ("bad.py", text, ("compare", "x.npy", "--p", f"bad.py:{name}", *Q))


def topics(**changes):
    return ("bad.npz", changes, ("topics", "docs.jsonl", "--p", "bad.npz", "--q", "b.npz"))


# name: (arguments, words of the error)
COMMANDS = {
    "no data": (("compare",), "data"),
    "no models": (("compare", "x.npy"), "--p"),
    "one model": (("compare", "x.npy", *P), "--q"),
    "an unknown command": (("compere",), "No such command"),
    "an unknown option": ((*X, "--speed", "9"), "No such option"),
    "an option without its value": ((*X, "--seed"), "requires an argument"),
    "two data files": (("compare", "x.npy", "x.npy", *PAIR), "unexpected"),
    "no such data": (("compare", "y.npy", *PAIR), "y.npy: expected a file; there is none"),
    "a folder as data": (("compare", ".", *PAIR), "expected a file"),
    "data of another kind": (("compare", "models.py", *PAIR), "expected a file that ends in .npy"),
    "alpha of 0": (
        (*X, "--alpha", "0"),
        "alpha: expected a number strictly between 0 and 1; got 0.0",
    ),
    "alpha of 5": ((*X, "--alpha", "5"), "alpha"),
    "alpha that is not a number": ((*X, "--alpha", "nan"), "alpha"),
    "alpha as a word": ((*X, "--alpha", "five"), "alpha"),
    "a negative seed": ((*X, "--seed", "-1"), "seed: expected an integer of at least 0"),
    "a seed that is not whole": ((*X, "--seed", "1.5"), "seed"),
    "no draws": ((*X, "--no-exact", "--draws", "0"), "draws"),
    "negative draws": ((*X, "--no-exact", "--draws", "-3"), "draws"),
    "draws as a word": ((*X, "--draws", "many"), "draws"),
    "negative warmup": ((*X, "--no-exact", "--warmup", "-1"), "warmup"),
    "no chains": ((*X, "--no-exact", "--chains", "0"), "chains"),
    "an unknown sampler": ((*X, "--sampler", "stan"), "--sampler: expected one of 'nuts'"),
    "an unknown kernel": ((*X, "--kernel", "matern"), "--kernel: expected one of 'standardised'"),
    "a kernel that is a number": (
        (*X, "--kernel", "models.py:number"),
        "kernel: expected a kernel",
    ),
    "a kernel that is not there": (
        (*X, "--kernel", "models.py:k"),
        "--kernel: expected a variable 'k'",
    ),
    "an unknown operator": ((*X, "--operator", "score"), "operator"),
    "a discrete operator for real data": ((*X, "--operator", "barker"), "operator"),
    "an unknown variance": ((*X, "--variance", "small"), "variance: expected one of"),
    "an unknown calibration": ((*X, "--calibration", "exact"), "calibration: expected one of"),
    "an unknown alternative": ((*X, "--alternative", "less"), "alternative: expected one of"),
    "an unknown preset": ((*X, "--preset", "best"), "preset: expected one of 'paper'"),
    "a bootstrap with another variance": (
        (*X, "--variance", "ustat", "--calibration", "bootstrap"),
        "calibration",
    ),
    "a report that is no page": (
        (*X, "--report", "report.pdf"),
        "report: expected a name that ends in .html",
    ),
    "a report in no folder": ((*X, "--report", "no/report.html"), "expected a folder that exists"),
    "a report that is a folder": ((*X, "--report", "sub.html"), "cannot"),
    "images of a wrong shape": ((*X, "--image-shape", "2x2"), "--image-shape: expected 4 columns"),
    "images without a shape": (
        (*X, "--image-shape", "big"),
        "--image-shape: expected height x width",
    ),
    "images in four colours": ((*X, "--image-shape", "2x2x4"), "--image-shape"),
    "images of nothing": ((*X, "--image-shape", "0x3"), "--image-shape"),
    "columns of an array": ((*X, "--columns", "a"), "--columns: expected with .csv"),
    "an array of an array": ((*X, "--array", "x"), "--array: expected with .npz"),
    "a field of an array": ((*X, "--field", "words"), "--field: expected with .jsonl"),
    "several arrays": (("compare", "two.npz", *PAIR), "expected --array with one of x, y"),
    "an array that is not there": (
        ("compare", "two.npz", "--array", "z", *PAIR),
        "--array: expected one of x, y; got 'z'",
    ),
    "a model without a name": (
        ("compare", "x.npy", "--p", "models.py", *Q),
        "expected file.py:name",
    ),
    "a model with an empty name": (
        ("compare", "x.npy", "--p", "models.py:", *Q),
        "expected a variable ''",
    ),
    "a model that is not there": (
        ("compare", "x.npy", "--p", "models.py:r", *Q),
        "Its models: p, q",
    ),
    "a model file that is not there": (
        ("compare", "x.npy", "--p", "other.py:p", *Q),
        "'other.py' does not exist",
    ),
    "a model that is a number": (("compare", "x.npy", "--p", "models.py:number", *Q), "is a int"),
    "a model that is a class": (
        ("compare", "x.npy", "--p", "models.py:Model", *Q),
        "the class PPCA",
    ),
    "a model that is data": (("compare", "x.npy", "--p", "x.npy", *Q), "expected file.py:name"),
    "a model that is a word": (("compare", "x.npy", "--p", "ppca", *Q), "there is none"),
    "an archive that is no model": (("compare", "x.npy", "--p", "two.npz", *Q), "expected scores"),
    "a topic model for real data": (("compare", "x.npy", "--p", "a.npz", *Q), "same kind of data"),
    "topic models for real data": (("compare", "x.npy", *TOPICS), "expected integers"),
    "real models for documents": (("compare", "docs.jsonl", *PAIR), "vocabulary"),
    "no exact score, but demanded": (
        ("topics", "docs.jsonl", *TOPICS, "--exact", "--no-exact", "--draws", "0"),
        "draws",
    ),
    "a langevin operator for documents": (
        ("topics", "docs.jsonl", *TOPICS, "--operator", "langevin"),
        "operator",
    ),
    "counts of documents": (("topics", "docs.jsonl", *TOPICS, "--counts"), "x"),
    "a field that no line has": (("topics", "docs.jsonl", *TOPICS, "--array", "x"), "--array"),
    "an empty name": (("", "x.npy"), "No such command"),
}
# name: ((file, content, arguments), words of the error)
FILES = {
    "an empty table": (csv(""), "the file is empty"),
    "a table of blank lines": (csv("\n\n  \n"), "the file is empty"),
    "a header alone": (csv("a,b,c\n"), "at least 4 observations; got 0"),
    "three rows": (csv("1,2,3\n4,5,6\n7,8,9\n"), "at least 4 observations; got 3"),
    "a word in a table": (csv(ROWS + "1,two,3\n"), "got 'two' in line 5, column 2"),
    "a missing cell": (csv(ROWS + "1,,3\n"), "got '' in line 5, column 2"),
    "a short row": (csv(ROWS + "1,2\n"), "line 5 has 2"),
    "a long row": (csv(ROWS + "1,2,3,4\n"), "line 5 has 4"),
    "NaN in a table": (csv(ROWS + "1,nan,3\n"), "got 'nan' in line 5, column 2"),
    "infinity in a table": (csv(ROWS + "1,inf,3\n"), "got 'inf' in line 5, column 2"),
    "numbers of programmers": (csv(ROWS + "1,1_000,3\n"), "'1_000'"),
    "semicolons": (csv(ROWS.replace(",", ";")), "expected"),
    "another encoding": (csv("ä,b,c\n".encode("latin-1") + ROWS.encode()), "UTF-8"),
    "null bytes": (csv("1,2\0,3\n" * 5), "expected"),
    "two columns for a model of three": (csv("1,2\n3,4\n5,6\n7,9\n"), "3"),
    "a constant table": (csv("1,2,3\n" * 6), "x"),
    "a column that is not there": (
        ("bad.csv", "a,b,c\n" + ROWS, ("compare", "bad.csv", "--columns", "a,d", *PAIR)),
        "got 'd'",
    ),
    "an array of objects": (array(np.array([[1, "a"]] * 5, dtype=object)), "Python objects"),
    "an array of text": (array(np.array([["a", "b", "c"]] * 5)), "expected real numbers"),
    "an array of complex numbers": (array(numbers() + 1j), "complex128"),
    "an array of one number": (array(np.array(3.0)), "expected"),
    "an array of no rows": (array(np.zeros((0, 3))), "at least 4 observations; got 0"),
    "an array of no columns": (array(np.zeros((9, 0))), "expected shape (n, D)"),
    "an array of three axes": (array(np.zeros((9, 3, 2))), "expected shape (n, D)"),
    "an array with NaN": (array(np.where(numbers() > 2, np.nan, numbers())), "nan at index"),
    "an array that is too wide": (array(np.random.default_rng(0).normal(size=(9, 4))), "3"),
    "constant columns": (array(np.ones((9, 3))), "x"),
    "an array of dates": (
        array(np.array(["2020-01-01"] * 9, dtype="datetime64[D]")),
        "expected real numbers",
    ),
    "a damaged array": (array(b"\x93NUMPY\x01\x00 nothing"), "cannot be read"),
    "an empty array file": (array(b""), "cannot be read"),
    "an archive called .npy": (array(b"PK\x03\x04 nothing"), "cannot be read"),
    "a damaged archive": (
        ("bad.npz", b"PK\x03\x04", ("compare", "bad.npz", *PAIR)),
        "cannot be read",
    ),
    "a damaged Parquet file": (
        ("bad.parquet", b"PAR1 nothing", ("compare", "bad.parquet", *PAIR)),
        "a Parquet table",
    ),
    "a damaged gzip file": (
        ("bad.jsonl.gz", b"\x1f\x8b nothing", ("topics", "bad.jsonl.gz", *TOPICS)),
        "cannot be read",
    ),
    "no documents": (jsonl(""), "the file is empty"),
    "lines that are not JSON": (jsonl("word1 word2\n"), "line 1 of it is not"),
    "half a line": (jsonl('["word1"]\n["word2"'), "line 2 of it is not"),
    "documents as text": (
        jsonl('"word1 word2"\n'),
        "document 0 (counting from 0), line 1 of the file: expected a list",
    ),
    "a number as a document": (jsonl("3\n"), "line 1 of the file: expected a list"),
    "an empty document": (
        jsonl('["word1"]\n[]\n' * 3),
        "document 1 (counting from 0): none of its 0 words",
    ),
    "nothing as a document": (jsonl("null\n"), "line 1 of the file: expected a list"),
    "an object without words": (
        jsonl('{"title": "x"}\n'),
        "expected an object with 'tokens' or 'words'",
    ),
    "an empty object": (jsonl("{}\n"), "expected an object with"),
    "words and ids": (jsonl('["word1", 2]\n'), "expected only words; got 2"),
    "ids and fractions": (jsonl("[1, 2.5]\n"), "expected only word ids; got 2.5"),
    "fractions": (jsonl("[1.5]\n"), "expected only word ids"),
    "truth as an id": (jsonl("[true]\n"), "expected only word ids; got True"),
    "lists of lists": (jsonl("[[1], [2]]\n"), "expected only word ids"),
    "some as words, some as ids": (jsonl('["word1"]\n[2]\n'), "got both"),
    "only unknown words": (
        jsonl('["word1"]\n["zebra"]\n["word1"]\n["word1"]\n'),
        "document 1 (counting from 0): none of its 1 words",
    ),
    "ids beyond the vocabulary": (jsonl("[1, 99]\n" * 5), "from 0 to 11; got 99"),
    "negative ids": (jsonl("[1, -2]\n" * 5), "-2"),
    "ids beyond 2^31": (jsonl("[4294967297]\n[1, 2]\n" * 5), "2^31"),
    "ids beyond 2^64": (jsonl(f"[{2**70}]\n[1, 2]\n" * 5), "expected"),
    "three documents": (jsonl('["word1"]\n' * 3), "at least 4 observations; got 3"),
    "a number of 5,000 digits": (jsonl("[" + "1" * 5_000 + "]"), "line 1 of it is not"),
    "a header that ends too early": (
        ("bad.npy", b"\x93NUMPY\x01\x00\x06\x00{'a':(", ("compare", "bad.npy", *PAIR)),
        "cannot be read",
    ),
    "deeply nested JSON": (jsonl("[" * 100_000), "expected"),
    "code that fails": (model("1 / 0"), "bad.py fails when it is run: ZeroDivisionError"),
    "code that is no Python": (model("def ("), "SyntaxError"),
    "code that imports what is not there": (
        model("import nothing_like_this"),
        "ModuleNotFoundError",
    ),
    "code that leaves": (model("import sys; sys.exit(0)"), "SystemExit"),
    "an empty file": (model(""), "Its models: none at all"),
    "a model that is built wrongly": (
        model("import lksd\nm = lksd.models.PPCA([[1.0]], -1.0)"),
        "noise_scale",
    ),
    "an assertion in a model": (
        model(FAILING.format("assert x.shape == (7,)")),
        "AssertionError at bad.py:7",
    ),
    "an error in a model": (model(FAILING.format("{}['no key']")), "KeyError at bad.py:7"),
    "an error in sample": (
        model(FAILING.format("pass").replace("return x\n", "assert False, 'mine'\n")),
        "mine; AssertionError at bad.py:11",
    ),
    "a model of other columns": (
        model("import lksd\nm = lksd.models.PPCA([[1.0], [2.0]], 1.0)"),
        "3",
    ),
    "topics that are no probabilities": (topics(topics=np.ones((2, 12))), "topics"),
    "topics with negative entries": (topics(topics=-np.ones((2, 12))), "topics"),
    "concentrations of the wrong number": (topics(concentration=np.ones(3)), "concentration"),
    "negative concentrations": (topics(concentration=-np.ones(2)), "concentration"),
    "a vocabulary that is too short": (topics(vocabulary=np.array(["a", "b"])), "vocabulary"),
    "a vocabulary of numbers": (topics(vocabulary=np.arange(12)), "vocabulary"),
    "a vocabulary of objects": (topics(vocabulary=np.array([None] * 12, dtype=object)), "objects"),
    "other words": (
        topics(vocabulary=np.array([f"other{i}" for i in range(12)])),
        "expected topic models with words in common",
    ),
}


def write(path, content):
    if isinstance(content, dict):
        from files import topic_models

        np.savez(path, **(topic_models()["a"] | content))
    elif isinstance(content, np.ndarray):
        np.save(path, content, allow_pickle=True)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def assert_one_sentence(code, out, err, said):
    assert code == 2, (out, err)
    assert said in err
    assert out == ""
    assert err.startswith("Error: ")
    assert err.endswith((".\n", "?\n"))
    assert "Traceback" not in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_a_bad_command(name, lksd_command, folder):
    (folder / "sub.html").mkdir(exist_ok=True)
    arguments, said = COMMANDS[name]
    assert_one_sentence(*lksd_command(*arguments), said)


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file(name, lksd_command, tmp_path):
    (file, content, arguments), said = FILES[name]
    write(tmp_path / file, content)
    replaced = [part.replace(file, str(tmp_path / file)) for part in arguments]
    assert_one_sentence(*lksd_command(*replaced), said)


WORDS = st.text(alphabet=string.printable, max_size=12)
CELLS = st.one_of(WORDS, st.integers().map(str), st.floats().map(str), st.just(""))


def ends_in_a_sentence(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert code == 2, (out, err)
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert out == ""
    assert all(char.isprintable() or char == "\n" for char in err)


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


ANYTHING = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


@ANYTHING
@given(
    kind=st.sampled_from([".npy", ".npz", ".csv", ".tsv", ".parquet", ".jsonl", ".jsonl.gz"]),
    content=st.binary(max_size=200),
)
def test_bytes_as_data(here, capsys, kind, content):
    (here / f"any{kind}").write_bytes(content)
    ends_in_a_sentence(capsys, "compare", f"any{kind}", *PAIR)


@ANYTHING
@given(rows=st.lists(st.lists(CELLS, max_size=4), max_size=3))
def test_cells_as_a_table(here, capsys, rows):
    (here / "any.csv").write_text("\n".join(",".join(row) for row in rows))
    ends_in_a_sentence(capsys, "compare", "any.csv", *PAIR)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@ANYTHING
@given(records=st.lists(JSON, max_size=3))
def test_json_as_documents(here, capsys, records):
    (here / "any.jsonl").write_text("\n".join(json.dumps(record) for record in records))
    ends_in_a_sentence(capsys, "topics", "any.jsonl", *TOPICS)


@ANYTHING
@given(text=st.text(max_size=40).filter(lambda text: not text.startswith("-") and "\0" not in text))
def test_text_as_a_model(here, capsys, text):
    ends_in_a_sentence(capsys, "compare", "x.npy", "--p", text, *Q)


@ANYTHING
@given(
    option=st.sampled_from(
        [
            "--sampler",
            "--kernel",
            "--operator",
            "--variance",
            "--calibration",
            "--alternative",
            "--preset",
        ]
    ),
    text=st.text(max_size=20).filter(lambda text: "\0" not in text),
)
def test_text_as_an_option(here, capsys, option, text):
    ends_in_a_sentence(capsys, *X, f"{option}={text}")


def whole_files(folder):
    """Data in each kind of file."""
    words = "".join(json.dumps(one) + "\n" for one in documents()).encode()
    polars.DataFrame(numbers()).write_parquet(folder / "x.parquet")
    sparse.save_npz(folder / "counts.npz", sparse.coo_matrix(np.eye(12, dtype=np.int64)))
    kept = {
        ".npy": folder / "x.npy",
        ".parquet": folder / "x.parquet",
        ".npz": folder / "counts.npz",
    }
    contents = {kind: path.read_bytes() for kind, path in kept.items()}
    return contents | {".jsonl": words, ".jsonl.gz": gzip.compress(words, mtime=0)}


@pytest.mark.parametrize("kind", [".npy", ".npz", ".parquet", ".jsonl", ".jsonl.gz"])
def test_files_with_damage_in_their_middle(kind, here):
    """Read whole, or refused: what zlib, polars or NumPy's reader of headers raise is no error of
    ours.
    """
    content = whole_files(here)[kind]
    rng = np.random.default_rng(0)
    for _ in range(150):
        broken = bytearray(content)
        place = int(rng.integers(-400, 200)) % len(broken)  # headers and footers
        broken[place : place + int(rng.integers(1, 5))] = rng.bytes(int(rng.integers(1, 5)))
        (here / f"broken{kind}").write_bytes(broken)
        raised = None
        try:
            read_data(here / f"broken{kind}")
        except Exception as error:
            raised = error
        assert raised is None or concerns_input(raised), repr(raised)


def test_there_are_enough_of_them():
    assert len(COMMANDS) + len(FILES) >= 130
    assert len(documents()) == 30

"""Files are whole or as they were before; damaged ones are refused in our words, and never give
another answer.
"""

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import closing
from dataclasses import replace
from functools import cache

import ksd
import numpy as np
import pytest

import lksd
from lksd._storage import write_whole
from lksd.kernels import IMQ, Gaussian
from lksd.models import LDA, PPCA
from lksd.results.base import record_checksum
from lksd.scores.checkpoint import Checkpoint

DAMAGED = 300  # files of each kind
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
MODEL = PPCA(RNG.random((2, 1)), 1.0)
RUN = {"exact": False, "warmup": 4, "draws": 8, "batch_size": 16}


def comparison(**options):
    return lksd.compare_scores(X, -(X - 0.5), -X, options.pop("kernel", IMQ(2.0)), **options)


@cache
def results():
    sizes = {"far": -(X - 1), "near": -(X - 0.5), "right": -X}
    return {
        "compare": comparison(),
        "several": comparison(
            kernel=[IMQ(1.0), Gaussian(2.0)], calibration="edgeworth", alternative="two-sided"
        ),
        "rank": lksd.rank_scores(X, sizes, IMQ(2.0)),
        "ranks": lksd.rank_scores(X, sizes, [IMQ(2.0), Gaussian(2.0)]),
        "fit": lksd.goodness_of_fit_scores(X, -(X - 1), IMQ(2.0)),
        "mmd": lksd.relative_mmd(X, X + 0.5, X[::-1] - 0.1, IMQ(2.0)),
        "beside": ksd.compare(X, PPCA(np.ones((2, 1)), 2.0), MODEL, also_mmd=True),
    }


@cache
def scores():
    documents = [[0, 1, 2], [3, 1], [2, 2, 0, 1], [1] * 5, [3, 0], [2, 3, 3]]
    topics = LDA(np.ones(2), np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lksd.LksdWarning)  # of such short chains
        return {
            "exact": lksd.estimate_scores(MODEL, X),
            "chains": lksd.estimate_scores(MODEL, X, **RUN),
            "documents": lksd.estimate_scores(topics, documents, exact=False, warmup=4, draws=8),
        }


def damaged(content: bytes, other: bytes, rng) -> bytes:
    """Cut, with a bit flipped, bytes replaced, parts exchanged or left out, or with part of another
    file.
    """
    kind, size = rng.integers(7), len(content)
    a, b = sorted(rng.integers(0, size, 2).tolist())
    changed = bytearray(content)
    if kind == 0:
        return content[:a]
    if kind == 1:
        changed[a] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        changed[a : a + 8] = rng.bytes(len(changed[a : a + 8]))
    elif kind == 3:
        return content[:a] + content[b:]
    elif kind == 4:
        return content[:a] + content[b:] + content[a:b]
    elif kind == 5:
        return content[:a] + other[a:b] + content[b:]
    elif changed[a : a + 1].isdigit():
        changed[a] = 48 + (changed[a] - 47) % 10  # another digit
    else:
        changed[a : a + 1] = b""
    return bytes(changed)


def attempt(read, path):
    """What is read, or the message with which the file is refused: a sentence of ours that names
    it.
    """
    said = None
    try:
        return read(path), None
    except ValueError as error:
        said = str(error)
    assert path.name in said
    assert "damaged" in said or "expected" in said or "not defined here" in said
    return None, said


def refused(read, path) -> bool:
    return attempt(read, path)[1] is not None


def same_answer(found, wanted) -> bool:
    """Blanks between the parts of a file, or bytes of a zip that nobody reads, may be damaged
    without harm.
    """
    return str(found) == str(wanted)


@pytest.mark.parametrize("name", ["compare", "several", "rank", "ranks", "fit", "mmd", "beside"])
def test_damaged_results(name, tmp_path):
    result, path, rng = results()[name], tmp_path / "result.json", np.random.default_rng(1)
    content, other = (
        result.to_json().encode(),
        results()["fit" if name != "fit" else "mmd"].to_json().encode(),
    )
    count = 0
    for _ in range(DAMAGED):
        path.write_bytes(broken := damaged(content, other, rng))
        if not refused(lksd.load_result, path):
            assert json.loads(broken) == json.loads(content)
            assert same_answer(lksd.load_result(path), result)
        else:
            count += 1
    assert count > DAMAGED * 0.8


@pytest.mark.parametrize("name", ["exact", "chains", "documents"])
def test_damaged_scores(name, tmp_path):
    wanted, path, rng = scores()[name], tmp_path / "scores.npz", np.random.default_rng(2)
    wanted.save(path)
    content = path.read_bytes()
    scores()["chains" if name != "chains" else "exact"].save(path)
    other, count = path.read_bytes(), 0
    for _ in range(DAMAGED):
        path.write_bytes(damaged(content, other, rng))
        if not refused(lksd.load_scores, path):
            found = lksd.load_scores(path)
            assert same_answer(found, wanted)
            for part in ("score", "mcse", "batch_means"):
                for a, b in zip(found.part(part), wanted.part(part), strict=True):
                    np.testing.assert_array_equal(a, b)
        else:
            count += 1
    assert count > DAMAGED / 2


PARTS = [
    (rows, [np.random.default_rng(9).normal(size=(4, 3)) + rows[0], rows * 2])
    for rows in np.arange(12).reshape(3, 4)
]


def parts_in(path):
    """What a run finds in a checkpoint, and goes on from."""
    with closing(
        Checkpoint(path, "P").stage({"data": "a", "model": "b", "versions": "c"}).finished_parts()
    ) as found:
        return [(rows, leaves) for rows, leaves in found]


def test_damaged_checkpoints(tmp_path):
    """A part is as it was written, or it is lost and run again, or the file is refused."""
    path, rng, count = tmp_path / "run.checkpoint", np.random.default_rng(3), 0
    for name, label, shift in (("run.checkpoint", "P", 0), ("other", "Q", 1), ("third", "P", 2)):
        stage = Checkpoint(tmp_path / name, label).stage(
            {"data": "a", "model": "b" if shift < 2 else "d", "versions": "c"}
        )
        for rows, leaves in PARTS:
            stage.write(rows, [leaf + shift for leaf in leaves])
    content, others = (
        path.read_bytes(),
        [(tmp_path / name).read_bytes() for name in ("other", "third")],
    )
    for number in range(DAMAGED):
        path.write_bytes(damaged(content, others[number % 2], rng))
        found, said = attempt(parts_in, path)
        count += said is not None
        for rows, leaves in found or ():
            wanted = next(leaves for own, leaves in PARTS if np.array_equal(own, rows))
            for a, b in zip(leaves, wanted, strict=True):
                np.testing.assert_array_equal(a, b)
    assert count > DAMAGED / 4


def test_a_run_with_a_damaged_checkpoint(tmp_path):
    wanted, path, rng = scores()["chains"], tmp_path / "run.checkpoint", np.random.default_rng(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lksd.LksdWarning)
        lksd.estimate_scores(MODEL, X, **RUN, checkpoint=path)
        content = path.read_bytes()
        for _ in range(8):
            path.write_bytes(damaged(content, content[::-1], rng))
            found, said = attempt(
                lambda path: lksd.estimate_scores(MODEL, X, **RUN, checkpoint=path), path
            )
            assert said is not None or np.array_equal(found.score, wanted.score)


def test_a_result_is_read_in_no_time(tmp_path):
    """All of its parts are looked at once: thousands of replicates took seconds."""
    path = tmp_path / "result.json"
    results()["beside"].to_json(path)
    start = time.process_time()
    lksd.load_result(path)
    assert time.process_time() - start < 0.5


def edited(change):
    """A made-up file of the form before checksums."""
    record = json.loads(results()["compare"].to_json())
    del record["checksum"]
    record["schema"] = 3
    change(record, record["result"])
    return json.dumps(record)


ABSURD = {
    "p below 0": lambda record, result: result.update(pvalue=-5),
    "p that is no number": lambda record, result: result.update(pvalue={"float": "nan"}),
    "p that is text": lambda record, result: result.update(pvalue="0.01"),
    "p that is true": lambda record, result: result.update(pvalue=True),
    "n below 0": lambda record, result: result.update(n=-3),
    "n that is huge": lambda record, result: result.update(n=10**400),
    "n that is not whole": lambda record, result: result.update(n=30.5),
    "level": lambda record, result: result.update(alpha=2),
    "decision": lambda record, result: result.update(reject=not result["reject"]),
    "decision that is no boolean": lambda record, result: result.update(reject=1),
    "statistic": lambda record, result: result.update(statistic=-result["statistic"]),
    "difference": lambda record, result: result.update(difference=result["difference"] * 2),
    "discrepancy": lambda record, result: result.update(ksd_p=result["ksd_p"] + 1),
    "discrepancy that is no number": lambda record, result: result.update(ksd_p={"float": "nan"}),
    "error": lambda record, result: result.update(standard_error=-1.0),
    "contributions of another length": lambda record, result: result["contributions"][
        "array"
    ].pop(),
    "contributions of another sum": lambda record, result: result["contributions"][
        "array"
    ].__setitem__(0, 1e6),
    "contributions that are text": lambda record, result: result.update(contributions="none"),
    "record": lambda record, result: result.update(record="Nothing"),
    "record inside": lambda record, result: result["null"].update(record="ComparisonResult"),
    "no record": lambda record, result: result.pop("record"),
    "field missing": lambda record, result: result.pop("zeta"),
    "field too many": lambda record, result: result.update(other=1),
    "alternative": lambda record, result: result.update(alternative="less"),
    "notes": lambda record, result: result.update(notes=[3]),
    "kernel": lambda record, result: result.update(kernel=["IMQ"]),
    "settings": lambda record, result: record.update(settings=3),
    "tests": lambda record, result: result.update(tests=[7]),
    "schema": lambda record, result: record.update(schema=99),
    "schema that is a list": lambda record, result: record.update(schema=[3]),
    "checksum": lambda record, result: record.update(checksum="0" * 32),
    "no checksum in a new file": lambda record, result: record.update(schema=4),
}


MADE_UP = {  # results, and a field that is changed in its record with what is said of it
    "rank: statistic below 0": ("rank", {"statistic": -5.0}, "statistic is -5"),
    "rank: another statistic": ("rank", {"statistic": 5e3}, "statistic is 5000, where"),
    "rank: no error": ("rank", {"standard_errors": "zero"}, "pvalues are below 1 where"),
    "rank: error that is no number": ("rank", {"ksd_errors": "nan"}, "ksd_errors is"),
    "rank: infinite error": ("rank", {"standard_errors": "inf"}, "standard_errors is"),
    "rank: seed": ("rank", {"seed": 2**63}, "seed is"),
    "ranks: seed inside": ("ranks", {"seed": 7}, "seed is 7, and 0 in tests"),
    "rank: margin": ("rank", {"margin": -0.1}, "margin is -0.1, not between 0"),
    "error that is no number": ("compare", {"standard_error": {"float": "nan"}}, "statistic is"),
    "no error": ("compare", {"standard_error": 0.0}, "statistic is"),
    "no error, no statistic": ("compare", {"standard_error": 0.0, "statistic": 0.0}, "pvalue is"),
    "error of a model": ("compare", {"ksd_p_error": {"float": "nan"}}, "ksd_p_error is nan"),
    "seed": ("compare", {"seed": -1}, "seed is -1, not between 0"),
    "a larger seed": ("compare", {"seed": 2**63}, "seed is 9223372036854775808"),
    "zeta": (
        "compare",
        {"zeta": {"record": "Components", "zeta_1": 9.0, "zeta_2": 1.0}},
        "zeta is",
    ),
    "infinite zeta": (
        "compare",
        {"zeta": {"record": "Components", "zeta_1": 1.0, "zeta_2": {"float": "inf"}}},
        "zeta is",
    ),
    "p-value": ("compare", {"pvalue": 0.77}, "pvalue is 0.77, where"),
    "reverse p-value": ("compare", {"pvalue_reverse": 0.5}, "pvalue_reverse is 0.5, where"),
    "MMD: p-value": ("mmd", {"pvalue": 0.96}, "pvalue is 0.96, where"),
    "MMD: sample": ("mmd", {"n_p": 0}, "n_p is 0"),
    "fit: p-value between": ("fit", {"pvalue": 0.00077}, "pvalue is 0.00077, which"),
    "fit: deviation": ("fit", {"null_deviation": -1.0}, "null_deviation is -1"),
    "several: seed inside": ("several", {"seed": 3}, "seed is 3, and 0 in tests"),
}


@pytest.mark.parametrize("case", MADE_UP)
def test_made_up_fields(case, tmp_path):
    """Also with a checksum that fits."""
    name, changes, said = MADE_UP[case]
    record, path = json.loads(results()[name].to_json()), tmp_path / "result.json"
    for field, value in changes.items():
        if value in ("zero", "nan", "inf"):
            given = record["result"][field]
            rows = [one["array"] for one in given["rows"]] if "rows" in given else [given["array"]]
            entry = 0.0 if value == "zero" else {"float": value}
            rows[0][-1] = entry
            rows[-1][0] = entry
        else:
            record["result"][field] = value
    record["checksum"] = record_checksum(record)
    path.write_text(json.dumps(record))
    assert f"damaged or from another version ({said}" in attempt(lksd.load_result, path)[1]


@pytest.mark.parametrize("case", ABSURD)
def test_absurd_results(case, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(edited(lambda record, result: None))
    assert str(lksd.load_result(path)) == str(results()["compare"])
    path.write_text(edited(ABSURD[case]))
    assert refused(lksd.load_result, path)


FOREIGN = {
    "empty": b"",
    "deep": b"[" * 100_000,
    "deep record": b'{"schema": 3, "result": '
    + b'{"record": "Words", "ids": ' * 20_000
    + b"1"
    + b"}" * 20_001,
    "many digits": b'{"schema": 3, "result": 1' + b"0" * 10_000 + b"}",
    "double": b'{"schema": 3, "schema": 3, "result": {}}',
    "constant": b'{"schema": 3, "result": NaN}',
    "bytes": bytes(range(256)),
    "list": b"[3]",
    "zip": b"PK\x05\x06" + bytes(18),
    "NumPy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': "
    b"(99999999999999,), }",
}


@pytest.mark.parametrize("case", FOREIGN)
def test_foreign_files(case, tmp_path):
    for name, read in (("other.json", lksd.load_result), ("other.npz", lksd.load_scores)):
        path = tmp_path / name
        path.write_bytes(FOREIGN[case])
        assert refused(read, path)


def test_made_up_scores(tmp_path, lksd_command):
    path = tmp_path / "scores.npz"
    scores()["chains"].save(path)
    with np.load(path) as file:
        arrays = dict(file)
    del arrays["checksum"]
    old = {name: value for name, value in arrays.items() if name not in ("observed", "notes")} | {
        "schema": 3
    }
    np.savez(path, **old, notes=np.array(["a note"]))
    assert lksd.load_scores(path).notes == ("a note",)
    changes = {
        "rows": {"score_0": arrays["score_0"][1:]},
        "columns": {"score_0": arrays["score_0"][:, :1]},
        "numbers": {"score_0": np.full_like(arrays["score_0"], np.nan)},
        "text": {"score_0": np.full(arrays["score_0"].shape, "a")},
        "errors": {"mcse_0": -arrays["mcse_0"] - 1},
        "seed": {"seed": -1},
        "ids": {"index": arrays["index"] + 0.5},
        "lengths": {"rhat": arrays["rhat"][1:]},
        "operator": {"operators": '{"several": false, "each": [{"kind": "Other"}]}'},
        "no operators": {"operators": "null"},
        "deep": {"operators": "[" * 100_000},
        "too many": {"other": 1},
        "schema": {"schema": "3"},
        "new without a checksum": {"schema": 4},
    }
    for change in changes.values():
        np.savez(path, **(old | change))
        assert refused(lksd.load_scores, path)
        code, out, said = lksd_command("compare", "x.npy", "--p", path, "--q", path)
        assert (code, out) == (2, "")
        assert said.startswith("Error: ")
        assert "Traceback" not in said


WRITERS = {
    "scores.npz": lambda: scores()["exact"].save,
    "result.json": lambda: results()["compare"].to_json,
    "report.html": lambda: results()["compare"].to_html,
    "ranking.html": lambda: results()["rank"].to_html,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_write_that_fails_leaves_the_file_as_it_was(name, tmp_path):
    """The limit on the size of files stops a write in its middle, as a full disk does."""
    write, path = WRITERS[name](), tmp_path / name
    write(path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    kept = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
        with pytest.raises(OSError, match=f"File too large: .*{name}"):
            write(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, kept)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [name]


def test_links_permissions_and_pipes(tmp_path):
    path, link = tmp_path / "result.json", tmp_path / "link.json"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    results()["fit"].to_json(link)
    assert link.is_symlink()
    assert lksd.load_result(path).n == 30
    assert path.stat().st_mode & 0o777 == 0o640
    mask = os.umask(0o027)
    try:
        results()["fit"].to_json(tmp_path / "new.json")
    finally:
        os.umask(mask)
    assert (tmp_path / "new.json").stat().st_mode & 0o777 == 0o640
    read, write = os.pipe()
    write_whole(f"/dev/fd/{write}", "through")
    os.close(write)
    with os.fdopen(read) as file:
        assert file.read() == "through"


def test_two_writers_at_once(tmp_path):
    """Whoever comes last, the file is whole."""
    path, ready = tmp_path / "result.json", threading.Barrier(4)
    each = [results()[name] for name in ("compare", "rank", "fit", "mmd")]

    def write(result):
        ready.wait()
        for _ in range(5):
            result.to_json(path)
            assert str(lksd.load_result(path)) in map(str, each)

    threads = [threading.Thread(target=write, args=(result,)) for result in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert str(lksd.load_result(path)) in map(str, each)
    assert os.listdir(tmp_path) == ["result.json"]


def test_files_are_closed(tmp_path):
    """Also those that are damaged, and databases."""
    code = f"""
import gc, pathlib, warnings, numpy as np, lksd
warnings.simplefilter("error", ResourceWarning)
folder = pathlib.Path({str(tmp_path)!r})
x = np.random.default_rng(0).normal(size=(20, 2))
model = lksd.models.PPCA(np.ones((2, 1)), 1.0)
for _ in range(2):
    options = {{"exact": False, "control_variates": "none", "draws": 400}}
    scores = lksd.estimate_scores(model, x, checkpoint=folder / "run", **options)
scores.save(folder / "scores.npz")
lksd.load_scores(folder / "scores.npz")
for name, read in (("a.json", lksd.load_result), ("a.npz", lksd.load_scores)):
    for content in (b"", b"PK\\x03\\x04", b"{{}}"):
        (folder / name).write_bytes(content)
        try:
            read(folder / name)
        except ValueError:
            pass
gc.collect()
"""
    found = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", code],
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    assert "ResourceWarning" not in found.stderr
    gc.collect()


ESCAPES = "\x1b[31mred\x1b]0;title\x07\u202e\x9b2J<script>alert(1)</script>"


@pytest.mark.parametrize("name", ["compare", "several", "rank", "ranks", "fit", "mmd", "beside"])
def test_texts_of_results_cannot_act(name, tmp_path):
    record = json.loads(results()[name].to_json())
    del record["checksum"]
    record["schema"] = 3
    given = {"alternative", "correction", "record", "float"}

    def poison(value, key=""):
        if isinstance(value, dict):
            return {one: poison(part, one) for one, part in value.items()}
        if isinstance(value, list):
            return [
                f"{poison(part)}{i}" if isinstance(part, str) else poison(part)
                for i, part in enumerate(value)
            ]
        return f"{value}{ESCAPES}" if isinstance(value, str) and key not in given else value

    path = tmp_path / "result.json"
    record |= {
        "result": poison(record["result"]),
        "settings": poison(record["settings"]),
        "versions": poison(record["versions"]),
    }
    names = dict(zip(record["result"].get("names", []), range(9), strict=False))
    for test in record["result"].get("tests", []) if names else []:
        assert len(test["names"]) == len(names)
        test["names"] = [
            next(one for one in names if one.split("\x1b")[0] == own.split("\x1b")[0])
            for own in test["names"]
        ]
    path.write_text(json.dumps(record))
    result = lksd.load_result(path)
    shown = [str(result), repr(result), result._repr_html_()]
    if hasattr(result, "to_html"):
        result.to_html(tmp_path / "report.html")
        shown.append((tmp_path / "report.html").read_text(encoding="utf-8"))
    for text in shown:
        assert not set(text) & set("\x1b\x07\u202e\x9b")
    for page in shown[2:]:
        assert "<script>alert" not in page


def test_texts_of_scores_cannot_act(tmp_path):
    path = tmp_path / "scores.npz"
    replace(scores()["chains"], method=ESCAPES, notes=(ESCAPES,), columns=(ESCAPES, "b")).save(path)
    found = lksd.load_scores(path)
    assert found.method == ESCAPES
    for text in (str(found), repr(found), found._repr_html_(), "\n".join(found.summary.lines())):
        assert not set(text) & set("\x1b\x07\u202e\x9b")
    assert "<script>" not in found._repr_html_()

"""Seeds and ids of any size, words that occur twice, sparse matrices of any form, and Ctrl-C at any
moment.
"""

import signal
import subprocess
import sys

import jax
import ksd
import numpy as np
import pytest
from files import topic_models
from scipy import sparse

import lksd
from lksd._keys import noise_keys, observation_keys, rerun_keys
from lksd.models import LDA, PPCA

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3))
MODEL, OTHER = PPCA(np.ones((3, 1)), 1.0), PPCA(np.ones((3, 1)), 2.0)
SHORT = {"exact": False, "warmup": 5, "draws": 10}
CALLS = {
    "estimate_scores": lambda **options: lksd.estimate_scores(MODEL, X, **SHORT, **options),
    "compare": lambda **options: ksd.compare(X, MODEL, OTHER, **SHORT, check=False, **options),
    "rank": lambda **options: ksd.rank(
        X, [("a", MODEL), ("b", OTHER)], **SHORT, check=False, **options
    ),
    "goodness_of_fit": lambda **options: lksd.goodness_of_fit(X, MODEL, **SHORT, **options),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "seed",
    [2**63, 2**64, 10**40, np.uint64(2**63), -1, np.int64(-1), True, np.True_, 1.0, "1", None],
)
def test_seeds_that_are_none(call, seed):
    with pytest.raises(ValueError, match="seed: expected an integer"):
        CALLS[call](seed=seed)


def test_seeds_of_every_size_and_type_differ_by_their_value():
    seeds = [0, 2**31, 2**32, 2**63 - 1]
    scores = [CALLS["estimate_scores"](seed=seed).score for seed in seeds]
    assert len({score.tobytes() for score in scores}) == len(seeds)
    np.testing.assert_array_equal(CALLS["estimate_scores"](seed=np.int16(0)).score, scores[0])
    np.testing.assert_array_equal(
        CALLS["estimate_scores"](seed=np.uint64(2**63 - 1)).score, scores[-1]
    )


@pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
def test_the_largest_seed_with_data_that_are_held_out():
    x = RNG.normal(size=(30, 3))
    assert (
        ksd.compare(
            x, MODEL, OTHER, seed=2**63 - 1, smooth=[0.5], holdout=x[:10] + 1, check=False
        ).n
        == 30
    )


@pytest.mark.parametrize(
    "keys", [observation_keys, noise_keys, lambda seed, index: rerun_keys(seed, index, 1)]
)
def test_ids_have_their_own_keys(keys):
    ids = [5, 2**32 - 1, 2**32, 2**32 + 5, 2**33 + 5, 5 + 2**62, 2**64 - 1]
    found = jax.random.key_data(keys(3, np.array(ids, np.uint64)))
    assert len(np.unique(found, axis=0)) == len(ids)
    # whatever the others
    np.testing.assert_array_equal(found[:2], jax.random.key_data(keys(3, np.array(ids[:2]))))


def test_ids_below_two_to_the_32_keep_their_keys():
    base = jax.random.fold_in(jax.random.key(3), 0)
    for one in (0, 7, 2**32 - 1):
        wanted = jax.random.key_data(jax.random.fold_in(base, np.uint32(one)))
        np.testing.assert_array_equal(jax.random.key_data(observation_keys(3, [one]))[0], wanted)


def test_observations_with_large_ids_have_chains_of_their_own():
    same = np.repeat(X[:1], 4, axis=0)
    found = lksd.estimate_scores(MODEL, same, **SHORT, index=[5, 5 + 2**32, 5 + 2**33, 6])
    assert len(np.unique(found.score, axis=0)) == 4


@pytest.mark.parametrize(
    "index",
    [[0, 1, 2, 3, 4, 4], [-1, 1, 2, 3, 4, 5], [0, 1], [0, 1, 2, 3, 4, 2**70], [0.0, 1, 2, 3, 4, 5]],
)
@pytest.mark.parametrize("smooth", [None, [0.5]])
def test_ids_that_are_none(index, smooth):
    with pytest.raises(ValueError, match="index: expected 6 different integers from 0 to"):
        ksd.compare(X, MODEL, OTHER, **SHORT, check=False, index=index, smooth=smooth)


def test_a_word_twice_in_a_vocabulary(lksd_command, folder):
    topics = np.full((2, 3), 1 / 3)
    message = (
        r"vocabulary: expected different words; words 0 and 2 \(counting from 0\) are both 'tea'"
    )
    with pytest.raises(ValueError, match=message):
        LDA(np.ones(2), topics, ["tea", "milk", "tea"])
    twice = topic_models()["a"]
    twice["vocabulary"] = np.where(twice["vocabulary"] == "word3", "word1", twice["vocabulary"])
    np.savez(folder / "twice.npz", **twice)
    code, _, err = lksd_command("topics", "docs.jsonl", "--p", "twice.npz", "--q", "b.npz")
    assert code == 2
    assert "words 1 and 3 (counting from 0) are both 'word1'" in err


COUNTS = RNG.integers(0, 3, (20, 12)) + np.eye(20, 12, dtype=int) + (np.arange(12) == 0)
FORMS = [
    f"{form}_{kind}"
    for form in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
    for kind in ("array", "matrix")
]


def topic_pair():
    return [LDA(one["concentration"], one["topics"]) for one in topic_models().values()]


@pytest.mark.parametrize("form", FORMS)
def test_sparse_matrices_of_every_form(form):
    wanted = ksd.compare(COUNTS, *topic_pair(), counts=True, check=False, warmup=5, draws=10)
    assert (
        ksd.compare(
            getattr(sparse, form)(COUNTS), *topic_pair(), check=False, warmup=5, draws=10
        ).statistic
        == wanted.statistic
    )


def halves() -> sparse.coo_array:
    """The same counts, each entry as two that are to be added."""
    one = sparse.coo_array(COUNTS)
    rows, columns = one.coords
    parts = (one.data // 2, one.data - one.data // 2)
    return sparse.coo_array(
        (np.concatenate(parts), (np.tile(rows, 2), np.tile(columns, 2))), COUNTS.shape
    )


@pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dia", "halves"])
def test_files_of_sparse_matrices_of_every_form(form, lksd_command, folder):
    matrix = halves() if form == "halves" else getattr(sparse, f"{form}_array")(COUNTS)
    sparse.save_npz(folder / f"{form}.npz", matrix)
    sparse.save_npz(folder / "wanted.npz", sparse.csr_array(COUNTS))
    call = ("--p", "a.npz", "--q", "b.npz", "--warmup", "5", "--draws", "10")
    wanted, found = (lksd_command("topics", file, *call) for file in ("wanted.npz", f"{form}.npz"))
    assert wanted[0] == 0
    assert found == wanted


def test_entries_of_one_place_are_added():
    wanted, found = (
        ksd.compare(x, *topic_pair(), check=False, warmup=5, draws=10)
        for x in (sparse.csr_array(COUNTS), halves())
    )
    assert found.statistic == wanted.statistic


def test_sparse_files_that_are_none(lksd_command, folder):
    fine = {
        "format": np.array(b"csr"),
        "shape": np.array([4, 12]),
        "data": np.ones(4),
        "indptr": np.arange(5),
    }
    bad = {
        "outside": fine | {"indices": np.array([0, 1, 2, 10**9])},
        "lacking": fine,
        "unknown": fine | {"format": np.array(b"abc")},
        "negative": {
            "format": np.array(b"coo"),
            "shape": np.array([4, 12]),
            "data": np.ones(1),
            "row": [-7],
            "col": [0],
        },
    }
    for name, arrays in bad.items():
        np.savez(folder / f"{name}.npz", **arrays)
        code, _, err = lksd_command("topics", f"{name}.npz", "--p", "a.npz", "--q", "b.npz")
        assert (code, err.startswith(f"Error: {name}.npz: expected a SciPy sparse matrix")) == (
            2,
            True,
        ), err


def test_a_sparse_vector():
    with pytest.raises(
        ValueError,
        match=r"x: expected a sparse matrix with a row for each document; got shape \(12,\)",
    ):
        ksd.compare(sparse.coo_array(np.arange(12)), *topic_pair(), check=False)


@pytest.mark.parametrize(
    "moment", ["lksd._stop", "numpy", "jax._src.core", "equinox", "lksd.inference", "typer"]
)
def test_ctrl_c_while_importing(moment, folder):
    """With -X importtime Python says on stderr which imports have ended, so that the moment is
    known.
    """
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "lksd",
        "compare",
        "x.npy",
        "--p",
        "models.py:p",
        "--q",
        "models.py:q",
    ]
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if line.rpartition("|")[2].strip() == moment:
                process.send_signal(signal.SIGINT)
                break
        said = [line for line in process.stderr if not line.startswith("import time:")]
    assert process.returncode == 130
    assert said == ["Stopped. Nothing was written.\n"]


def test_a_program_that_imports_the_library_keeps_its_own_ctrl_c():
    code = (
        "import signal, lksd; assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    )
    subprocess.run([sys.executable, "-c", code, "lksd"], check=True)

"""Models in files: equal when they come back, refused when anything is changed."""

import io
import json
import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lksd
from lksd import models
from lksd._storage import arrays_checksum
from lksd.models.base import float64_leaves
from lksd.models.files import from_bytes, to_bytes

RNG = np.random.default_rng(0)
STICKY = 0.8 * np.eye(2) + 0.1
DIRECTIONS = RNG.normal(size=(40, 5))
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)
WORDS = ("a", "", "naïve", "\x00", "日本", 'quote"', "tail\x00")
TOPICS = RNG.dirichlet(np.ones(7), 3)
MODELS = {
    "PPCA": models.PPCA(RNG.normal(size=(4, 2)), 0.3),
    "PPCA with columns": models.PPCA(RNG.normal(size=(2, 1)), 0.3, [1, 2], columns=["x", "y\x00"]),
    "FactorAnalysis": models.FactorAnalysis(RNG.normal(size=(3, 1)), [0.1, 0.2, 0.3], [1, 2, 3]),
    "GaussianMixture": models.GaussianMixture(
        [0.1, 0.9], RNG.normal(size=(2, 2)), np.stack([np.eye(2), 2 * np.eye(2)]), columns=["u", ""]
    ),
    "VonMisesFisherMixture": models.VonMisesFisherMixture(
        np.full(40, 1 / 40), DIRECTIONS, np.arange(40.0)
    ),
    "TruncatedPPCA": models.TruncatedPPCA(RNG.normal(size=(3, 1)), 1.0, 4.0, 3.0),
    "DirichletProcessMixture": models.DirichletProcessMixture(
        0.0, 4.0, [1.0, 2.0], 0.5, RNG.normal(size=(6, 2))
    ),
    "LDA": models.LDA([0.1, 0.2, 0.3], TOPICS),
    "LDA with words": models.LDA([0.1, 0.2, 0.3], TOPICS, WORDS).over(
        models.topics.Vocabulary((*WORDS, "new"))
    ),
    "StochasticBlockModel": models.StochasticBlockModel(
        [0.4, 0.6], [[0.6, 0.1], [0.1, 0.5]], nodes=5
    ),
    "HiddenMarkov": models.HiddenMarkov([0.3, 0.7], STICKY, RNG.dirichlet(np.ones(4), 2)),
    "HiddenMarkov of reals": models.HiddenMarkov(
        [0.3, 0.7], STICKY, (RNG.normal(size=(2, 1)), np.ones((2, 1, 1)))
    ),
    "BetaBinomial": models.BetaBinomial(trials=4, alpha=2.0, beta=3.5),
}


def saved(model, path):
    lksd.save_model(model, path)
    return lksd.load_model(path)


def refused(read, given, name) -> str:
    """The sentence with which it is refused."""
    with pytest.raises(ValueError, match=r"expected|damaged") as caught:
        read(given)
    assert name in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", MODELS)
def test_equal_models(name, tmp_path):
    model = MODELS[name]
    found = saved(model, tmp_path / "model")
    assert type(found) is type(model)
    assert eqx.tree_equal(found, model, typematch=True)
    assert (found.columns, found.vocabulary) == (model.columns, model.vocabulary)
    assert (found.note, str(found)) == (model.note, str(model))
    assert to_bytes(found) == to_bytes(model)
    assert eqx.tree_equal(from_bytes(to_bytes(model)), model)


@pytest.mark.parametrize("name", ["PPCA", "GaussianMixture", "HiddenMarkov of reals"])
def test_scores_are_equal_to_the_last_digit(name, tmp_path):
    model = MODELS[name]
    found = saved(model, tmp_path / "model.npz")
    x = RNG.normal(size=(20, 4 if name == "PPCA" else 2))
    first, second = (lksd.estimate_scores(one, x).score for one in (model, found))
    np.testing.assert_array_equal(first, second)


def test_densities_of_directions_are_equal_to_the_last_digit(tmp_path):
    """Unit vectors are made so again when the model is, which may change a digit."""
    model = MODELS["VonMisesFisherMixture"]
    assert (model.means / np.linalg.norm(model.means, axis=1, keepdims=True) != model.means).any()
    with jax.enable_x64(True):
        logs = [
            jax.vmap(float64_leaves(one).log_marginal)(jnp.asarray(DIRECTIONS))
            for one in (model, saved(model, tmp_path / "model.npz"))
        ]
    np.testing.assert_array_equal(*logs)


class Own(models.PPCA):
    pass


@pytest.mark.parametrize(
    "model",
    [
        Own(np.ones((2, 1)), 1.0),
        models.Decoder(lambda z: z, 1.0, latent_dim=2),
        models.PosteriorPredictive(
            models.PPCA, {"weight": np.ones((2, 3, 1)), "noise_scale": np.ones(2)}
        ),
        "model",
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_has_no_file(model, tmp_path):
    assert to_bytes(model) is None
    with pytest.raises(TypeError, match=f"model: expected a PPCA, .*; got {type(model).__name__}"):
        lksd.save_model(model, tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------- damage


def damaged(content: bytes, other: bytes, rng) -> bytes:
    """Cut, with a bit flipped, bytes replaced or left out, or with part of another file."""
    a, b = sorted(rng.integers(0, len(content), 2).tolist())
    changed = bytearray(content)
    changed[a] ^= 1 << int(rng.integers(8))
    ways = (
        content[:a],
        bytes(changed),
        content[:a] + rng.bytes(8) + content[a + 8 :],
        content[:a] + content[b:],
        content[:a] + other[a:b] + content[b:],
    )
    return ways[rng.integers(len(ways))]


@pytest.mark.parametrize("name", ["PPCA with columns", "LDA with words", "HiddenMarkov of reals"])
def test_damaged_files(name, tmp_path):
    content, rng, count = to_bytes(MODELS[name]), np.random.default_rng(1), 0
    other, path = to_bytes(MODELS["BetaBinomial"]), tmp_path / "model.npz"
    for _ in range(300):
        path.write_bytes(damaged(content, other, rng))
        said = None
        try:
            # bytes of a zip that nobody reads may change
            assert eqx.tree_equal(lksd.load_model(path), MODELS[name])
        except ValueError as error:
            said = str(error)
        assert said is None or ("model.npz" in said and ("expected" in said or "damaged" in said))
        count += said is not None
    assert count > 150


def rewritten(name: str, change: dict, without: tuple[str, ...] = ()) -> bytes:
    """A file with other arrays, and the checksum that belongs to them."""
    with np.load(io.BytesIO(to_bytes(MODELS[name]))) as archive:
        arrays = {key: archive[key] for key in archive.files if key not in ("checksum", *without)}
    arrays |= {key: np.asarray(value) for key, value in change.items()}
    file = io.BytesIO()
    np.savez(file, **({"checksum": np.asarray(arrays_checksum(arrays))} | arrays))
    return file.getvalue()


MADE_UP = {
    "another class": ("PPCA", {"model": "FactorAnalysis"}),
    "an unknown class": ("PPCA", {"model": "Path"}),
    "no class": ("PPCA", {"model": np.ones(3)}),
    "negative noise": ("PPCA", {"noise_scale": -1.0}),
    "not a number": ("PPCA", {"weight": np.full((4, 2), np.nan)}),
    "complex": ("PPCA", {"weight": np.full((4, 2), 1j)}),
    "single precision": ("PPCA", {"weight": np.ones((4, 2), np.float32)}),
    "text": ("PPCA", {"weight": "text"}),
    "nothing": ("PPCA", {"weight": np.ones((0, 0))}),
    "one array more": ("PPCA", {"other": np.ones(1)}),
    "a vocabulary": ("PPCA", {"vocabulary": "[]"}),
    "columns of other models": ("PPCA with columns", {"columns": '["x", "y", "z"]'}),
    "columns that are no list": ("PPCA with columns", {"columns": "3"}),
    "columns that are no JSON": ("PPCA with columns", {"columns": "["}),
    "deep columns": ("PPCA with columns", {"columns": "[" * 100_000}),
    "too few words": ("LDA with words", {"vocabulary": '["a"]'}),
    "words that are numbers": ("LDA with words", {"vocabulary": json.dumps(list(range(8)))}),
    "topics without words": ("LDA", {"topics": np.ones((0, 7))}),
    "a row too few": ("HiddenMarkov", {"transition": STICKY[:1]}),
    "half of the Gaussians": ("HiddenMarkov", {"means": np.ones((2, 1))}),
    "trials with a fraction": ("BetaBinomial", {"trials": 2.5}),
    "many trials": ("BetaBinomial", {"trials": np.array([4, 5])}),
    "a ball without a radius": ("TruncatedPPCA", {"radius": np.inf}),
    "a later version": ("PPCA", {"version": 2}),
    "a version of text": ("PPCA", {"version": "1"}),
    "a wrong checksum": ("PPCA", {"checksum": "0" * 32}),
}


@pytest.mark.parametrize("case", MADE_UP)
def test_made_up_files(case, tmp_path):
    name, change = MADE_UP[case]
    (tmp_path / "model.npz").write_bytes(rewritten(name, change))
    refused(lksd.load_model, tmp_path / "model.npz", "model.npz")
    assert eqx.tree_equal(from_bytes(rewritten(name, {})), MODELS[name])


@pytest.mark.parametrize("without", ["model", "version", "weight"])
def test_missing_parts(without):
    refused(from_bytes, rewritten("PPCA", {}, (without,)), "the model")


def test_foreign_files(tmp_path):
    path = tmp_path / "other.npz"
    for content in (b"", b"PK\x05\x06" + bytes(18), b"{}", bytes(range(256)), b"\x80\x04N."):
        path.write_bytes(content)
        assert "written by lksd.save_model" in refused(lksd.load_model, path, "other.npz")
    np.save(tmp_path / "x.npy", np.ones(3))
    np.savez(tmp_path / "objects.npz", model=np.array([{}], dtype=object), version=1, checksum="")
    lksd.estimate_scores(MODELS["PPCA"], np.ones((5, 4))).save(tmp_path / "scores.npz")
    for name in ("x.npy", "objects.npz", "scores.npz"):
        refused(lksd.load_model, tmp_path / name, name)
    refused(lksd.load_model, tmp_path, tmp_path.name)
    with pytest.raises(FileNotFoundError):
        lksd.load_model(tmp_path / "none.npz")


def test_writers_at_once(tmp_path):
    """Whoever comes last, the file is whole."""
    path, ready = tmp_path / "model.npz", threading.Barrier(3)
    each = [MODELS[name] for name in ("PPCA", "LDA", "BetaBinomial")]
    wrong = []

    def write(model):
        ready.wait()
        for _ in range(10):
            found = saved(model, path)
            if not any(eqx.tree_equal(found, one) is True for one in each):
                wrong.append(found)

    threads = [threading.Thread(target=write, args=(model,)) for model in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert [one.name for one in tmp_path.iterdir()] == ["model.npz"]

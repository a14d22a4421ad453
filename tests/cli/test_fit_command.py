"""``lksd fit`` writes models that the other commands take."""

import json
import re

import numpy as np
import pytest
from files import documents, numbers
from scipy.stats import multivariate_normal

import lksd
from lksd.fitting import fit_factors, fit_mixture, fit_states, fit_topics
from lksd.models.files import to_bytes


def write_table(path, x, names):
    np.savetxt(path, x, delimiter=",", header=names, comments="")


@pytest.fixture
def tables(tmp_path):
    write_table(tmp_path / "x.csv", numbers(), "a,b,c")
    np.savetxt(tmp_path / "s.csv", np.random.default_rng(0).integers(0, 4, (30, 6)), "%d", ",")
    return tmp_path


def test_a_factor_analysis_and_its_use(tables, lksd_command):
    data, one, two = tables / "x.csv", tables / "one.npz", tables / "two.npz"
    code, out, err = lksd_command("fit", data, "--family", "factors", "--count", 1, "--out", one)
    assert (code, err) == (0, "")
    model = lksd.load_model(one)
    assert model.columns == ("a", "b", "c")
    law = multivariate_normal(
        model.mean, model.loadings @ model.loadings.T + np.diag(model.noise_variance)
    )
    assert out == (
        "Fitted a factor analysis to 60 observations, with 1 factor: log likelihood "
        f"{law.logpdf(numbers()).mean():.6g} for each on average.\nModel: {one}\n"
    )
    assert to_bytes(model) == to_bytes(fit_factors(lksd_frame(), 1, 0).model)
    lksd_command("fit", data, "--family", "factors", "--count", 2, "--out", two, "--seed", 3)
    code, out, _ = lksd_command("compare", data, "--p", one, "--q", two)
    assert code == 0
    result = lksd.compare(lksd_frame(), model, lksd.load_model(two))
    assert out.rstrip().endswith(result.sentence)


def lksd_frame():
    import polars

    return polars.DataFrame(numbers(), schema=["a", "b", "c"])


@pytest.mark.parametrize(
    ("arguments", "wanted", "said"),
    [
        (
            ("x.csv", "--family", "mixture", "--count", 2, "--covariance", "diag"),
            lambda: fit_mixture(lksd_frame(), 2, 0, "diag"),
            "Fitted a mixture of Gaussians to 60 observations, with 2 components: log likelihood",
        ),
        (
            ("s.csv", "--no-header", "--family", "states", "--count", 2, "--seed", 4),
            lambda: fit_states(np.random.default_rng(0).integers(0, 4, (30, 6)), 2, 4),
            "Fitted a hidden Markov model to 30 sequences, with 2 states: log likelihood",
        ),
        (
            ("x.csv", "--family", "states", "--count", 2),
            lambda: fit_states(numbers(), 2, 0),
            "Fitted a hidden Markov model to 60 sequences, with 2 states: log likelihood",
        ),
    ],
    ids=["mixture", "states", "states of reals"],
)
def test_other_families(arguments, wanted, said, tables, lksd_command):
    data, *rest = arguments
    out = tables / "model.npz"
    code, printed, err = lksd_command("fit", tables / data, *rest, "--out", out)
    assert (code, err) == (0, "")
    assert printed.startswith(said)
    model = lksd.load_model(out)
    assert to_bytes(model) == to_bytes(wanted().model)
    x = np.random.default_rng(0).integers(0, 4, (30, 6)) if data == "s.csv" else numbers()
    losses = lksd.estimate_scores(model, x, criteria=(lksd.criteria.LogScore(),)).losses
    printed_value = float(re.search(r"log likelihood (\S+) for each", printed)[1])
    assert printed_value == pytest.approx(-losses.mean(), rel=1e-5)


def test_topics_of_documents(lksd_command, tmp_path):
    models = [tmp_path / f"{count}.npz" for count in (2, 3)]
    for count, out in zip((2, 3), models, strict=True):
        code, printed, err = lksd_command(
            *("fit", "docs.jsonl", "--family", "topics", "--count", count, "--out", out)
        )
        assert (code, err) == (0, "")
        assert printed.startswith(
            f"Fitted a topic model by tomotopy to 30 documents, with {count} topics.\n"
        )
    assert to_bytes(lksd.load_model(models[0])) == to_bytes(fit_topics(documents(), 2, 0).model)
    code, out, _ = lksd_command("topics", "docs.jsonl", "--p", models[0], "--q", models[1])
    assert code == 0
    assert str(models[1]) in out


def test_documents_in_other_forms(lksd_command, tmp_path):
    """Counts whose columns are words, and documents of which some are empty."""
    words = sorted({word for one in documents() for word in one})
    counts = [[one.count(word) for word in words] for one in documents()]
    write_table(tmp_path / "counts.csv", np.array(counts), ",".join(words))
    out = tmp_path / "model.npz"
    options = ("--family", "topics", "--count", 2, "--out", out)
    code, _, err = lksd_command("fit", tmp_path / "counts.csv", *options, "--counts")
    assert (code, err) == (0, "")
    in_order = [sorted(one) for one in documents()]
    assert to_bytes(lksd.load_model(out)) == to_bytes(fit_topics(in_order, 2, 0).model)
    gaps = tmp_path / "gaps.jsonl"
    gaps.write_text("".join(json.dumps(one) + "\n" for one in [*documents(), []]))
    code, _, err = lksd_command("fit", gaps, *options)
    assert code == 2
    assert "document 30 (counting from 0) is empty" in err
    code, printed, err = lksd_command("fit", gaps, *options, "--drop-empty")
    assert code == 0
    assert "1 of 31 documents are empty and left out" in err
    assert "to 30 documents" in printed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--family": "factor"}, "--family: expected one of 'factors', 'mixture'"),
        ({"--count": 0}, "count: expected an integer of at least 1; got 0"),
        ({"--count": 3}, "count: expected at most 2 factors"),
        ({"--out": "model.npy"}, "--out: expected a name that ends in .npz; got 'model.npy'"),
        ({"--out": "none/model.npz"}, "--out: expected a file that can be written"),
        ({"--covariance": "full"}, "--covariance: expected with --family mixture"),
        ({"--family": "mixture", "--covariance": "round"}, "covariance: expected one of 'full'"),
        ({"--seed": -1}, "seed: expected an integer of at least 0"),
    ],
)
def test_bad_input(change, message, tables, lksd_command):
    options = {"--family": "factors", "--count": 1, "--out": tables / "model.npz"} | change
    code, out, err = lksd_command("fit", tables / "x.csv", *sum(options.items(), ()))
    assert (code, out) == (2, "")
    assert message in err
    assert not (tables / "model.npz").exists()


def test_a_damaged_model(tables, lksd_command):
    path = tables / "model.npz"
    lksd_command("fit", tables / "x.csv", "--family", "factors", "--count", 1, "--out", path)
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **(arrays | {"mean": arrays["mean"] + 1}))
    code, out, err = lksd_command("compare", tables / "x.csv", "--p", path, "--q", path)
    assert (code, out) == (2, "")
    assert "model.npz: the model is damaged (the content is not what was written)" in err

"""Single observations cannot decide an answer unnoticed: far from all others, exact copies, few
that carry it, neighbours alike.
"""

import jax
import ksd
import numpy as np
import oracles
import pytest
from scipy import stats

import lksd
from lksd.inference.doubts import carrying_notes, coincidence, copied_rows, serial_notes
from lksd.inference.hypotheses import given_family
from lksd.kernels.radial import column_spreads, is_far
from lksd.statistics.ustatistic import (
    LARGEST_DIAGONAL,
    all_pairs,
    multinomial_weights,
    studentised_replicates,
)
from lksd.stein.gram import matrix_sums

N = 300
WEIGHT = np.array([[1.0], [-0.7]])
P, Q = lksd.models.PPCA(WEIGHT, 1.5), lksd.models.PPCA(WEIGHT, 1.0)


def sample(seed: int, n: int = N) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)) @ WEIGHT.T + rng.normal(size=(n, 2))


def with_wild_row(x: np.ndarray, value, row: int = 7) -> np.ndarray:
    x = x.copy()
    x[row] = value
    return x


@pytest.mark.parametrize("value", [1e3, -3e4, (1e6, 0.0), (-1e6, 1e6)], ids=str)
@pytest.mark.parametrize("calibration", ["auto", "bootstrap"])
def test_one_wild_row_does_not_silence_the_test(value, calibration):
    x = sample(0)
    clean = ksd.compare(np.delete(x, 7, axis=0), P, Q, calibration=calibration)
    wild = ksd.compare(with_wild_row(x, value), P, Q, calibration=calibration)
    assert clean.favours == wild.favours == "Q"
    np.testing.assert_allclose(
        wild.confidence_interval(), clean.confidence_interval(), atol=0.2 * clean.difference
    )
    assert any(
        note.startswith("observation 7 lies far from all others; without it") for note in wild.notes
    )
    mirrored = ksd.compare(with_wild_row(x, value), Q, P, calibration=calibration)
    assert mirrored.favours == "P"


def test_an_answer_that_depends_on_one_row_is_withheld():
    """A score that outgrows the kernel: T tends to -1, whatever the other observations say."""
    x = sample(1)
    scores = {"P": -(x - 0.5), "Q": -x / 2, "R": -(x + 1)}
    clean = lksd.compare_scores(x, scores["P"], scores["Q"], lksd.kernels.IMQ(2.0))
    assert clean.favours == "Q"
    scores["Q"] = with_wild_row(scores["Q"], 1e7)
    result = lksd.compare_scores(x, scores["P"], scores["Q"], lksd.kernels.IMQ(2.0))
    ranking = lksd.rank_scores(x, scores, lksd.kernels.IMQ(2.0))
    assert result.favours is None
    for one in (result, ranking):
        assert not one.reject
        assert "depends on observation 7, which lies far from all others: p = " in one.withheld
        assert one.sentence.startswith("Withheld: ")
        assert any(
            note.startswith("observation 7 lies far from all others; without it")
            for note in one.notes
        )


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_an_outlying_row_is_named_where_it_decides(scale):
    """A row at 20 standard deviations is no news by itself."""
    p, q = (lksd.models.PPCA(scale * WEIGHT, scale * noise) for noise in (1.2, 1.0))
    said = []
    for seed in (215, 216, 256):
        x = scale * sample(seed)
        kernel = lksd.kernels.PerCoordinate.median(x)
        result = ksd.compare(with_wild_row(x, 30 * scale), p, q, kernel=kernel)
        clean = ksd.compare(np.delete(x, 7, axis=0), p, q, kernel=kernel)
        assert (result.withheld or "").startswith("the answer depends on observation 7") or (
            result.favours == clean.favours and not any("far from" in one for one in result.notes)
        )
        said.append(result.withheld)
    assert [one is not None for one in said] == [False, True, True]


def rejections(trials: int, dim: int, size: float, calibration: str) -> int:
    """How often either model is preferred at an exact tie with one wild row; the larger of both
    sides.
    """
    tie, rng, found = oracles.asymmetric_tie(dim), np.random.default_rng(dim), []
    for _ in range(trials):
        x = with_wild_row(rng.normal(size=(N, dim)), size * rng.choice([-1, 1], dim))
        result = lksd.compare_scores(
            x, *tie.scores(x), lksd.kernels.IMQ(tie.scale), calibration=calibration
        )
        found.append(result.favours)
    return max(found.count("P"), found.count("Q"))


def test_the_level_holds_with_a_wild_row():
    """0.1: 22 of 100 with the bootstrap."""
    count = rejections(150, 2, 3e4, "bootstrap")
    assert stats.binomtest(count, 150, 0.055, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["auto", "bootstrap"])
@pytest.mark.parametrize(("dim", "size"), [(1, 1e3), (2, 3e4), (5, 1e6)])
def test_the_level_over_a_thousand_trials_with_a_wild_row(dim, size, calibration):
    count = rejections(1_000, dim, size, calibration)
    print(f"wild row {size:g}, D = {dim}, {calibration}: {count} of 1,000")
    assert count <= 60


def test_the_bootstrap_bounds_what_an_observation_has_with_itself():
    """Where no diagonal is large nothing changes; a huge one counts as the bound."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(2, 40, 5))
    matrices = factors @ np.swapaxes(factors, 1, 2)
    weights = multinomial_weights(40, 50, 0)

    def replicates(h):
        sums = matrix_sums(h, np.array([[1.0, -1.0]]))
        return studentised_replicates(
            sums.rows, sums.model_diagonal, weights, all_pairs(2), sums.matrix
        )[0]

    plain = matrices[0] - matrices[1]
    expected = [
        resampled_t(plain, np.repeat(np.arange(40), column.astype(int))) for column in weights.T
    ]
    np.testing.assert_allclose(replicates(matrices), expected, rtol=1e-9)
    wild, bounded = matrices.copy(), matrices.copy()
    wild[:, 3, 3] = 1e9, 5e8
    bounded[:, 3, 3] = [LARGEST_DIAGONAL * np.median(np.diag(h)) for h in wild]
    np.testing.assert_allclose(replicates(wild), replicates(bounded), rtol=1e-9)


def resampled_t(h: np.ndarray, rows: np.ndarray) -> float:
    resampled = h[np.ix_(rows, rows)]
    return (
        np.sqrt(len(h))
        * (oracles.u_statistic(resampled) - h.mean())
        / np.sqrt(oracles.jackknife(resampled))
    )


def test_far_rows_and_spreads():
    x = np.random.default_rng(0).standard_t(3, size=(2_000, 3))
    assert not is_far(x).any()
    np.testing.assert_array_equal(column_spreads(x), x.std(0))
    x[5, 1] = 1e4
    assert np.flatnonzero(is_far(x)).tolist() == [5]
    np.testing.assert_allclose(column_spreads(x), np.delete(x, 5, 0).std(0))


def test_a_wild_row_does_not_decide_the_units():
    x = with_wild_row(sample(2), (0.0, 1e6))
    wild, clean = (
        ksd.compare(x, P, Q, standardise=True),
        ksd.compare(np.delete(x, 7, 0), P, Q, standardise=True),
    )
    assert wild.favours == clean.favours == "Q"
    assert wild.difference == pytest.approx(clean.difference, rel=0.05)


# ------------------------------------------------------------- copies


def copies_of(x) -> list[int]:
    x = np.asarray(x, dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    (hypothesis,) = given_family(x, (x,), ("scores",), lksd.kernels.IMQ(), None, None)
    return np.flatnonzero(copied_rows(x, hypothesis)).tolist()


def test_exact_copies_are_found_and_coincidences_of_rounded_numbers_are_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    assert copies_of(x) == []
    assert copies_of(np.vstack([x, x[[3, 3, 9]]])) == [200, 201, 202]
    assert copies_of(np.vstack([x, x])) == list(range(200, 400))
    assert copies_of(np.repeat(x[:, 0], 4)) == [i for i in range(800) if i % 4]
    assert copies_of(x[:, 0].round(1)) == []  # one decimal: most values occur several times
    assert copies_of(np.tile(x[:, 0].round(1), 3)) == list(range(200, 600))
    ratings = rng.integers(1, 6, size=(300, 2)).astype(float)
    assert copies_of((ratings - ratings.mean(0)) / ratings.std(0)) == []
    assert copies_of(rng.exponential(100, 300).round()) == []  # days
    signed = np.vstack([x, [[0.0, 0.5]], [[-0.0, 0.5]]])
    assert copies_of(signed) == [201]


def test_coincidence_of_rounded_numbers():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    minutes = (np.rint(60 * x) / 60).round(3)  # no multiples of one step
    for column in (
        x.round(1),
        x.round(2),
        minutes,
        (x.round(1) - x.mean()) / x.std(),
        rng.integers(0, 2, 400).astype(float),
    ):
        sizes = np.unique(column, return_counts=True)[1]
        assert coincidence(column) == pytest.approx(np.sum(sizes * (sizes - 1)) / (400 * 399))
    for column in (x, rng.exponential(size=400), rng.standard_cauchy(400), x**3):
        assert coincidence(column) == coincidence(np.concatenate([column, column[:40]])) == 0


def test_copies_that_turn_an_answer_withhold_it():
    tie, found = oracles.asymmetric_tie(2), []
    rng = np.random.default_rng(3)
    for _ in range(40):
        x = np.repeat(rng.normal(size=(60, 2)), 4, axis=0)
        result = lksd.compare_scores(x, *tie.scores(x), lksd.kernels.IMQ(tie.scale))
        once = lksd.compare_scores(x[::4], *tie.scores(x[::4]), lksd.kernels.IMQ(tie.scale))
        assert any("are exact copies of others" in note for note in result.notes)
        assert result.favours in (None, once.favours)
        found.append(result.withheld)
    assert any("keep one of each" in (reason or "") for reason in found)


def test_a_copied_document_is_said():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(50, 0.3), size=2)
    p, q = (lksd.models.LDA([a, a], topics) for a in (2.0, 0.2))
    words = jax.vmap(lambda key: q.sample(key, length=30)[1])(
        jax.random.split(jax.random.key(0), 60)
    )
    documents = np.asarray(words)
    result = ksd.compare(np.vstack([documents, rng.permutation(documents[4])]), p, q)
    assert any(
        note.startswith("observation 60 is an exact copy of another; without it")
        for note in result.notes
    )
    assert not any("copy" in note for note in ksd.compare(documents, p, q).notes)


# ------------------------------------------------------------- contributions


def autoregression(rng, count: int, n: int, phi: float) -> np.ndarray:
    x = rng.normal(size=(count, n))
    for i in range(1, n):
        x[:, i] = phi * x[:, i - 1] + np.sqrt(1 - phi**2) * x[:, i]
    return x


def test_neighbours_that_resemble_each_other_are_said():
    rng = np.random.default_rng(0)
    alarms = sum(bool(serial_notes(row[None])) for row in rng.exponential(size=(4_000, 200)))
    assert stats.binomtest(alarms, 4_000, 5e-4, alternative="greater").pvalue > 1e-3
    assert (
        np.mean([bool(serial_notes(row[None])) for row in autoregression(rng, 200, 300, 0.5)])
        > 0.95
    )
    x = autoregression(rng, 2, N, 0.8).T
    result = lksd.compare_scores(x, -x / 1.5, -x, lksd.kernels.IMQ(1.0))
    assert any("neighbouring observations are correlated" in note for note in result.notes)


def test_few_observations_that_carry_a_difference_are_said():
    rng = np.random.default_rng(0)
    for row in (rng.normal(size=400), rng.exponential(size=400), rng.standard_t(4, size=400)):
        assert carrying_notes(row[None]) == ()
    rare = 0.05 * rng.normal(size=400)
    rare[[1, 2, 3]] = 10, -12, 9
    (note,) = carrying_notes(rare[None])
    assert note.startswith("20 of 400 observations carry 100% of the variation")
    assert "the level of the test is not claimed" in note

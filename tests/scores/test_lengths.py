"""Documents of very different lengths: each costs what it has, and has the scores that it has
alone.
"""

import ksd
import numpy as np
import pytest

import lksd
from lksd.engines import Engine, Local
from lksd.models import LDA, HiddenMarkov
from lksd.scores import lengths

SIZE, LONG = 30, 3_000
OPTIONS = {"exact": False, "warmup": 20, "draws": 80}
rng = np.random.default_rng(0)
MODEL, OTHER = (LDA(np.ones(3), rng.dirichlet(np.full(SIZE, 0.5), 3)) for _ in range(2))
DOCUMENTS = [rng.integers(0, SIZE, rng.integers(5, 40)).tolist() for _ in range(60)]
DOCUMENTS[7] = rng.integers(0, SIZE, LONG).tolist()
WORDS = sum(map(len, DOCUMENTS))


class Weighing(Engine):
    """This process, with the words that chains ran over, what is after the end of a document and
    repeated documents included.
    """

    workers, backend, memory = 1, "cpu", None

    def __init__(self, most=None):
        self.words, self.left = 0, most

    def map(self, setup, shared, items, at_once=None):
        for item, found in zip(
            items := list(items), Local().map(setup, shared, items, 1), strict=True
        ):
            if self.left == 0:
                raise KeyboardInterrupt
            if isinstance(item, tuple):  # others are tiles
                self.words += item[0].x.size
                self.left = None if self.left is None else self.left - 1
            yield found


BOTH = {"operator": lksd.discrete_operators(MODEL)}


@pytest.fixture(scope="module")
def found():
    engine = Weighing()
    return lksd.estimate_scores(MODEL, DOCUMENTS, **BOTH, **OPTIONS, engine=engine), engine


def test_a_long_document_does_not_make_all_others_long(found):
    estimate, engine = found
    assert WORDS <= engine.words < 2 * WORDS  # padded to the longest they are 40 times as many
    for means, score in zip(estimate.batch_means, estimate.score, strict=True):
        assert means.shape == (60, 2, 10, *score.shape[1:])
        assert means.nbytes < 2 * 20 * 8 * WORDS * score[0, 0].size


@pytest.mark.parametrize("row", [7, 8])
def test_a_document_of_a_group_has_the_scores_that_it_has_alone(found, row):
    estimate, _ = found
    alone = lksd.estimate_scores(
        MODEL, [DOCUMENTS[row]], index=[row], operator=estimate.operator, **OPTIONS
    )
    length = len(DOCUMENTS[row])
    for together, own in zip(estimate.score, alone.score, strict=True):
        np.testing.assert_allclose(together[row, :length], own[0], rtol=1e-12, atol=1e-13)
        assert not together[row, length:].any()
    for together, own in zip(estimate.batch_means, alone.batch_means, strict=True):
        np.testing.assert_allclose(together[row][:, :, :length], own[0], rtol=1e-11, atol=1e-13)
        assert not together[row][:, :, length:].any()


def test_a_comparison_does_not_depend_on_the_groups(monkeypatch):
    grouped = ksd.compare(DOCUMENTS, MODEL, OTHER, **OPTIONS)
    monkeypatch.setattr(lengths, "WORTH", np.inf)
    whole = ksd.compare(DOCUMENTS, MODEL, OTHER, **OPTIONS)
    for name in ("statistic", "pvalue", "difference", "standard_error", "contributions"):
        np.testing.assert_allclose(
            getattr(grouped, name), getattr(whole, name), rtol=1e-9, atol=1e-14
        )
    for name in ("noise_share", "start_shift", "ess"):
        np.testing.assert_allclose(
            getattr(grouped.diagnostics, name), getattr(whole.diagnostics, name), rtol=1e-9
        )


def test_batch_means_of_groups_are_read_as_one_array(found, tmp_path):
    estimate, _ = found
    means = estimate.batch_means[1]
    whole = np.asarray(means)
    assert whole.shape == means.shape == (60, 2, 10, LONG, 2)
    np.testing.assert_array_equal(means[5:9], whole[5:9])
    np.testing.assert_array_equal(means[np.array([7, 0])], whole[[7, 0]])
    np.testing.assert_array_equal(means[7, 1], whole[7, 1])
    np.testing.assert_array_equal(means.mean((1, 2)), whole.mean((1, 2)))
    np.testing.assert_allclose(means.mean((1, 2)), estimate.score[1], rtol=1e-10, atol=1e-14)
    slopes = np.random.default_rng(1).normal(size=(60, LONG, 2))
    wanted = np.einsum("ncbdm,ndm->ncb", whole, slopes)
    np.testing.assert_allclose(
        lengths.project(means, np.arange(60), slopes), wanted, rtol=1e-10, atol=1e-12
    )
    estimate.save(tmp_path / "scores.npz")
    assert (tmp_path / "scores.npz").stat().st_size < sum(
        np.asarray(part).nbytes for part in estimate.batch_means
    ) / 5
    again = lksd.load_scores(tmp_path / "scores.npz")
    for a, b in zip(again.batch_means, estimate.batch_means, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_run_over_groups_goes_on_from_its_checkpoint(found, tmp_path):
    estimate, engine = found
    path, again = tmp_path / "scores", Weighing()
    with pytest.raises(KeyboardInterrupt):
        lksd.estimate_scores(
            MODEL, DOCUMENTS, **BOTH, **OPTIONS, checkpoint=path, engine=Weighing(most=1)
        )
    resumed = lksd.estimate_scores(
        MODEL, DOCUMENTS, **BOTH, **OPTIONS, checkpoint=path, engine=again
    )
    assert again.words == engine.words - LONG  # the longest ran first
    np.testing.assert_array_equal(resumed.score[0], estimate.score[0])
    np.testing.assert_array_equal(resumed.batch_means[1], estimate.batch_means[1])
    np.testing.assert_array_equal(resumed.rhat, estimate.rhat)


def test_exact_scores_of_groups(monkeypatch):
    generator = np.random.default_rng(2)
    model = HiddenMarkov(
        np.ones(2) / 2, generator.dirichlet(np.ones(2), 2), generator.dirichlet(np.ones(5), 2)
    )
    x = [generator.integers(0, 5, length).tolist() for length in (3, 4, 5, 40, 6, 90)]
    whole = lksd.estimate_scores(model, x)
    monkeypatch.setattr(lengths, "WORTH", 0.0)
    for a, b in zip(lksd.estimate_scores(model, x).score, whole.score, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_groups_hold_every_document_once():
    generator = np.random.default_rng(3)
    for _ in range(50):
        sizes = generator.lognormal(3, 1, 200).astype(int) + 1
        x = np.where(np.arange(sizes.max()) < sizes[:, None], 0, -1)
        groups = lengths.length_groups(x, 10 ** generator.uniform(0, 6))
        np.testing.assert_array_equal(
            np.sort(np.concatenate([group.rows for group in groups])), np.arange(200)
        )
        assert [group.length for group in groups] == [sizes[group.rows].max() for group in groups]
        assert sorted((group.length for group in groups), reverse=True) == [
            group.length for group in groups
        ]
    assert len(lengths.length_groups(np.zeros((5, 3)), 1e9)) == 1

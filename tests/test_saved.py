"""Files written before results and scores moved into folders of their own are read, and say what a
call says today.
"""

import warnings
from pathlib import Path

import ksd
import numpy as np
import pytest

import lksd
from lksd.kernels import PerCoordinate

SAVED = Path(__file__).parent / "saved"
DATA = np.load(SAVED / "data.npz")
P, Q, R = (lksd.models.PPCA(DATA["W"], scale) for scale in (1.5, 1.0, 0.7))
KERNELS = [lksd.kernels.IMQ(), lksd.kernels.Gaussian(4.0)]
CALLS = {
    "comparison": lambda x: ksd.compare(
        x, P, Q, kernel=KERNELS, also_mmd=True, calibration="normal"
    ),
    "ranking": lambda x: ksd.rank(
        x, {"p": P, "q": Q, "r": R}, kernel=PerCoordinate.median(x), calibration="normal"
    ),
    "fit": lambda x: lksd.goodness_of_fit(x, P, kernel=PerCoordinate.median(x)),
}


@pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
@pytest.mark.parametrize("name", CALLS)
def test_results(name):
    saved, today = lksd.load_result(SAVED / f"{name}.json"), CALLS[name](DATA["x"])
    np.testing.assert_allclose(
        [saved.pvalue, saved.statistic], [today.pvalue, today.statistic], rtol=1e-10
    )
    assert (saved.sentence, saved.reject) == (today.sentence, today.reject)


def test_results_of_documents():
    saved = lksd.load_result(SAVED / "documents.json")
    assert (saved.names, len(saved.tests)) == (("P", "Q"), 2)
    assert saved.to_json() == lksd.load_result(SAVED / "documents.json").to_json()


def test_scores():
    saved, documents = (lksd.load_scores(SAVED / f"{name}.npz") for name in ("reals", "documents"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lksd.LksdWarning)
        today = lksd.estimate_scores(P, DATA["x"], exact=False, warmup=5, draws=8)
        assert 0 < ksd.compare(DATA["x"], saved, Q).pvalue < 1
    np.testing.assert_allclose(saved.score, today.score, rtol=1e-10)
    assert [type(one).__name__ for one in documents.operators] == ["Difference", "Barker"]

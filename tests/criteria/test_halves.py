"""Models fitted to two halves of the same data: neither is preferred by its place (slow)."""

import numpy as np
import power_problems
import pytest
from scipy import stats

import lksd

# of chains that did not converge
pytestmark = pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
PAIRS, HALF, N = 200, 60, 100


@pytest.mark.slow
@pytest.mark.parametrize(("criterion", "exact"), [("log", None), ("fisher", False)])
def test_neither_half_is_preferred(criterion, exact):
    favoured = []
    for number in range(PAIRS):
        rng = np.random.default_rng(number)
        loadings = power_problems.draw_loadings(rng)
        rows = rng.normal(size=(2 * HALF + N, 3)) @ loadings.T
        rows += rng.normal(size=rows.shape)
        p, q = (power_problems.fitted_ppca(half, 3) for half in (rows[:HALF], rows[HALF:-N]))
        options = {"also": (), "check": False, "exact": exact, "seed": number}
        favoured.append(lksd.compare(rows[-N:], p, q, criterion=criterion, **options).favours)
    first, second = favoured.count("P"), favoured.count("Q")
    print(f"\nhalves | {criterion} | the first better {first}, the second {second} of {PAIRS}")
    assert first + second > 20
    assert stats.binomtest(first, first + second).pvalue > 0.01

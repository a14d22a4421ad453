"""How often the confidence set holds the candidate of least true risk, and how large it is
(slow).
"""

import numpy as np
import pytest
from problems import PROBLEMS, outcome
from scipy import stats

ALPHA, LEVEL = 0.05, 0.01  # of the set, and of the exact tests here
TRUTHS = {"ppca": 4, "factors": 3, "mixture": 3, "states": 3, "topics": 5}


def study(name: str, runs: int):
    """Of each run: whether the set holds the best, its size, and the p-values of the true number
    and of the next candidate.
    """
    problem, found = PROBLEMS[name], []
    truth = TRUTHS[name.partition(",")[0]]
    larger = next(k for k in problem.candidates if k > truth)
    for seed in range(runs):
        choice, risks = outcome(problem, seed)
        best = str(min(risks, key=risks.__getitem__))
        i, j = (choice.ranking.position(str(k)) for k in (truth, larger))
        pvalues = choice.ranking.pvalues[i, j], choice.ranking.pvalues[j, i]
        found.append((best in choice.confidence_set, len(choice.confidence_set), *pvalues))
    return np.array(found).T


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "runs", "largest"),
    [
        ("ppca", 400, 2.0),
        ("ppca, n = 100", 200, None),
        ("ppca, n = 500", 200, None),
        ("factors", 300, 4.0),
        ("mixture", 300, 4.0),
        ("states", 300, 3.0),
        ("topics", 300, 2.5),
    ],
)
def test_the_set_holds_the_best_candidate(name, runs, largest):
    covered, sizes, larger_better, truth_better = study(name, runs)
    wrong = int(np.sum(larger_better <= ALPHA))
    power = np.mean(truth_better <= ALPHA)
    print(f"\n{name}: best in the set in {int(covered.sum())} of {runs}, size {sizes.mean():.2f}")
    print(f"one more is better: {wrong}; the truth is better: {power:.2f}")
    test = stats.binomtest(int(covered.sum()), runs, 1 - ALPHA, alternative="less")
    assert test.pvalue > LEVEL
    assert stats.binomtest(wrong, runs, ALPHA, alternative="greater").pvalue > LEVEL
    assert largest is None or sizes.mean() <= largest

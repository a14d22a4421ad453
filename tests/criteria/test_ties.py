"""The level of additive criteria at their ties (slow)."""

import numpy as np
import pytest
import ties
from scipy import stats

import lksd

# of chains that did not converge
pytestmark = pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
SIZES = (100, 200)
EXACT_TRIALS, MOST_EXACT = 2_000, 143  # what .055 exceeds with a probability of .1 %
CHAIN_TRIALS, MOST_BY_CHAINS = 400, 37
MANY_TRIALS, MANY = 20, 5_000


def rejections(losses) -> np.ndarray:
    """Of "P is no farther", of "Q is no farther" at 5 % each, and of "they tie"."""
    pvalues = []
    for number, pair in enumerate(zip(*losses, strict=True)):
        result = lksd.compare_pointwise(*pair, alternative="greater", seed=number)
        pvalues.append((result.pvalue, result.pvalue_reverse))
    pvalues = np.array(pvalues)
    return np.array([*(pvalues <= 0.05).sum(0), (pvalues.min(1) <= 0.025).sum()])


def study(tie: ties.Tie, n: int, trials: int, most: int) -> None:
    found = rejections(tie.samples(trials, n))
    print(f"\nlevel | {tie} | n = {n} | {found.tolist()} of {trials}")
    assert found.max() <= most


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("tie", ties.exact_ties(), ids=str)
def test_level_of_exact_losses(tie, n):
    study(tie, n, EXACT_TRIALS, MOST_EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("tie", ties.ties_by_chains(), ids=str)
def test_level_of_losses_by_chains(tie):
    study(tie, SIZES[0], CHAIN_TRIALS, MOST_BY_CHAINS)


@pytest.mark.slow
@pytest.mark.parametrize("tie", ties.skewed_ties(), ids=str)
def test_level_of_skewed_differences(tie):
    """At n = 100 a tenth of the samples reject on one side; at 1,000 the level is kept."""
    study(tie, 1_000, CHAIN_TRIALS, MOST_BY_CHAINS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ties.LAWS_OF_MANY)
def test_level_of_many_observations(name):
    """5,000, in which the bias of a logarithm would show; and the bias of the mean difference in
    units of the standard error at that size, within what its own error allows.
    """
    law, rng = ties.LAWS_OF_MANY[name](), np.random.default_rng(0)
    losses, exact = ties.by_chains_and_exactly(law, MANY_TRIALS, MANY, rng)
    found = rejections(losses)
    off, d = (np.subtract(*pair).ravel() for pair in (losses - exact, exact))
    bias, error = (np.sqrt(MANY) * one / d.std() for one in (off.mean(), stats.sem(off)))
    print(
        f"\nlevel | {name}, by chains | n = {MANY} | {found.tolist()} of {MANY_TRIALS} | "
        f"bias / standard error {bias:.3f} +- {error:.3f}"
    )
    assert found.max() <= stats.binom.isf(0.001, MANY_TRIALS, 0.05)
    assert abs(bias) < 0.1 + 3 * error


def test_two_sided_pvalues_are_twice_the_smaller():
    """As ``rejections`` takes for granted."""
    d = np.random.default_rng(0).exponential(size=60) - 0.8
    two = lksd.compare_pointwise(d, np.zeros(60))
    one = lksd.compare_pointwise(d, np.zeros(60), alternative="greater")
    assert two.pvalue == 2 * min(one.pvalue, one.pvalue_reverse)


@pytest.mark.parametrize("tie", ties.discrete_ties(), ids=str)
def test_the_ties_are_ties(tie):
    """The mean difference of many observations is nil within four errors."""
    p, q = tie.samples(1, 100_000)
    d = (p - q)[0]
    assert d.std() > 0
    assert abs(d.mean()) < 4 * d.std() / np.sqrt(len(d))

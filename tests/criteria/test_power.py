"""What additive criteria find by chains of default length, beside what a comparison of exact log
densities finds in the same samples (slow).
"""

import itertools

import numpy as np
import oracles
import power_problems
import pytest
from power_problems import PowerProblem, Trial
from scipy import stats

import lksd

# of chains that did not converge, and of components that lie apart in some samples
pytestmark = pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
TRIALS = 200
GAUSSIAN = power_problems.gaussian_problems()
TOPICS = power_problems.topic_model_problems()
TOGETHER = 40  # samples of documents whose chains run at once


def study(problem: PowerProblem, by_chains) -> tuple[float, float]:
    """The shares of the samples in which Q is found, by chains and by exact log densities."""
    trials = [problem.trial(np.random.default_rng([number, problem.n])) for number in range(TRIALS)]
    exactly = [vuong(trial, seed) for seed, trial in enumerate(trials)]
    shares = [
        np.mean([one.favours == "Q" for one in each]) for each in (by_chains(trials), exactly)
    ]
    print(
        f"\npower | {problem.name} | n = {problem.n} | {problem.criterion} {shares[0]:.3f} | "
        f"exact log density {shares[1]:.3f}"
    )
    return float(shares[0]), float(shares[1])


def reached(share: float, wanted: float) -> bool:
    """Whether an exact binomial test at 1 % allows the power to be what is wanted."""
    found = round(share * TRIALS)
    return stats.binomtest(found, TRIALS, wanted, alternative="less").pvalue > 0.01


def vuong(trial: Trial, seed: int):
    losses = (-trial.log_densities(model, trial.x) for model in (trial.p, trial.q))
    return lksd.compare_pointwise(*losses, seed=seed)


def by_fisher_scores(trials: list[Trial]):
    for seed, (x, p, q, _) in enumerate(trials):
        yield lksd.compare(
            x, p, q, criterion="fisher", also=(), exact=False, check=False, seed=seed
        )


def by_conditional_scores(trials: list[Trial]):
    """The documents of many samples at once: a loss depends on its own document alone."""
    for start in range(0, TRIALS, TOGETHER):
        some = trials[start : start + TOGETHER]
        x = np.concatenate([trial.x for trial in some])
        losses = [
            lksd.estimate_scores(model, x, criteria="conditional", exact=False, seed=start + role)
            .losses[:, 0]
            .reshape(len(some), -1)
            for role, model in enumerate((some[0].p, some[0].q))
        ]
        for number, pair in enumerate(zip(*losses, strict=True)):
            yield lksd.compare_pointwise(*pair, seed=start + number)


@pytest.mark.slow
@pytest.mark.parametrize("problem", GAUSSIAN, ids=lambda one: f"{one.name}, n = {one.n}")
def test_power_of_the_fisher_score(problem):
    assert reached(study(problem, by_fisher_scores)[0], problem.wanted)


@pytest.mark.slow
@pytest.mark.parametrize("problem", TOPICS, ids=lambda one: f"{one.name}, n = {one.n}")
def test_power_of_the_conditional_score(problem):
    assert reached(study(problem, by_conditional_scores)[0], problem.wanted)


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem", power_problems.random_problems(), ids=lambda one: f"{one.name}, n = {one.n}"
)
def test_power_with_other_parameters_in_every_sample(problem):
    by_chains, exactly = study(problem, by_fisher_scores)
    assert reached(by_chains, problem.wanted * exactly)


@pytest.mark.slow
@pytest.mark.parametrize("problem", GAUSSIAN, ids=lambda one: f"{one.name}, n = {one.n}")
def test_where_densities_are_exact_the_default_is_their_comparison(problem):
    def by_default(trials):
        for seed, (x, p, q, _) in enumerate(trials):
            result = lksd.compare(x, p, q, also=(), check=False, seed=seed)
            assert result.criterion == "log"
            yield result

    shares = study(problem._replace(criterion="log"), by_default)
    assert abs(shares[0] - shares[1]) <= 0.03


def test_exact_log_densities_of_documents():
    rng = np.random.default_rng(0)
    model = lksd.models.LDA([0.3, 0.5, 0.9], rng.dirichlet(np.ones(5), 3))
    x = rng.integers(0, 5, (4, 6))
    masses = [oracles.lda_mass(model.concentration, model.topics, words) for words in x]
    np.testing.assert_allclose(power_problems.document_log_densities(model, x), np.log(masses))


@pytest.mark.parametrize(
    "problem",
    [next(g) for _, g in itertools.groupby(GAUSSIAN, lambda one: one.name)],
    ids=lambda one: one.name,
)
def test_exact_log_densities_of_real_data(problem):
    trial = problem.trial(np.random.default_rng(0))
    for model in (trial.p, trial.q):
        wanted = -lksd.estimate_scores(model, trial.x, criteria="log").losses[:, 0]
        np.testing.assert_allclose(trial.log_densities(model, trial.x), wanted, rtol=1e-9)

"""Fisher losses by chains against exact ones: honest errors, and no bias that fewer draws would
enlarge (slow).
"""

import numpy as np
import power_problems
import pytest
import scale_mixture
from scale_mixture import ScaleMixture, by_differentiation

import lksd
from lksd.models.simulation import draw

# of chains that did not converge
pytestmark = pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
OBSERVATIONS, SEEDS = 200, 10
DRAWS = 400  # the default
MIXTURE = lksd.models.GaussianMixture(
    [0.5, 0.3, 0.2],
    1.2 * np.random.default_rng(0).normal(size=(3, 4)),
    np.stack([np.eye(4), 2 * np.eye(4), np.eye(4)]),
)
LOADINGS = power_problems.draw_loadings(np.random.default_rng(1))[:6, :2]


def own_draws(model):
    return draw(model, OBSERVATIONS, 0)


CASES = {
    "mixture": (MIXTURE, own_draws, {}),
    "scale mixture": (ScaleMixture(), own_draws, {}),
    "scale mixture, long tails": (
        ScaleMixture(),
        lambda model: np.random.default_rng(0).standard_t(4, size=(OBSERVATIONS, 2)),
        {},
    ),
    "PPCA, plain draws": (
        lksd.models.PPCA(LOADINGS, 0.8),
        own_draws,
        {"control_variates": "none"},
    ),
    "factor analysis, plain draws": (
        lksd.models.FactorAnalysis(LOADINGS, np.arange(1.0, 7.0) / 3),
        own_draws,
        {"control_variates": "none"},
    ),
}


def exact_losses(model, x: np.ndarray, metric: np.ndarray) -> np.ndarray:
    if isinstance(model, ScaleMixture):
        return scale_mixture.fisher_losses(model, x, metric)
    return by_differentiation(model.log_marginal, x, metric)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_fisher_losses(name):
    model, data, options = CASES[name]
    x = data(model)
    wanted = exact_losses(model, x, x.var(0, ddof=1))
    z, off = [], {DRAWS: [], DRAWS // 2: []}
    for seed in range(SEEDS):
        for draws, kept in off.items():
            found = lksd.estimate_scores(
                model, x, criteria="fisher", exact=False, draws=draws, seed=seed, **options
            )
            kept.append(found.losses[:, 0] - wanted)
            if draws == DRAWS:
                z.append(kept[-1] / found.loss_errors[:, 0])
    squares = float(np.mean(np.square(z)))
    means = {draws: np.mean(kept, 0) for draws, kept in off.items()}  # over the seeds
    moved = means[DRAWS // 2] - means[DRAWS]
    ratio = moved.mean() / (moved.std(ddof=1) / np.sqrt(OBSERVATIONS))
    print(f"\nFisher by chains | {name} | mean z^2 {squares:.2f} | half the draws: z = {ratio:.1f}")
    assert 0.75 < squares < 1.3
    assert abs(ratio) < 3

"""The oracle of held-out likelihood against sums over all topics."""

import left_to_right
import numpy as np
import oracles
import pytest

from lksd.models import LDA


def tiny(seed=0):
    rng = np.random.default_rng(seed)
    return LDA(rng.uniform(0.2, 1.0, 3), rng.dirichlet(np.full(5, 0.5), 3))


DOCUMENTS = [[0, 3, 3, 1, 4, 2], [2, 2], [4], [1, 0, 2, 4]]


def exact(model, documents=DOCUMENTS):
    return np.array(
        [oracles.lda_mass(model.concentration, model.topics, document) for document in documents]
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_estimates_are_unbiased_with_few_particles(seed):
    model = tiny(seed)
    runs = np.exp(left_to_right.log_likelihoods(model, 10_000 * DOCUMENTS, 3, seed)).reshape(
        10_000, -1
    )
    error = runs.std(0, ddof=1) / np.sqrt(len(runs))
    np.testing.assert_allclose(runs[:, 2], exact(model)[2])  # of one word nothing is left to chance
    long = [0, 1, 3]
    assert (error[long] > 0).all()
    assert (np.abs(runs.mean(0) - exact(model))[long] < 4 * error[long]).all()


def test_mean_differences_are_those_of_the_exact_likelihoods():
    models, rng = {"a": tiny(0), "b": tiny(1)}, np.random.default_rng(2)
    documents = [rng.integers(0, 5, 3 + number % 3).tolist() for number in range(60)]
    found = left_to_right.held_out(models, documents)["a", "b"]
    difference = np.log(exact(models["b"], documents)) - np.log(exact(models["a"], documents))
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    assert abs(found.difference - difference.mean()) < left_to_right.STABLE * error
    np.testing.assert_allclose(found.error, error, rtol=0.1)

"""Which Gaussian latent variable model is closer to handwritten digits?

Fitted on one half of scikit-learn's digits and compared on the other: two factors against ten, then
probabilistic PCA (one noise variance) against factor analysis (one for each pixel). The marginal
scores are exact here, -C^-1 (x - mean) with C the model's covariance.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, FactorAnalysis

import lksd


def score(model, x):
    """grad log p(x) of the fitted Gaussian, whose covariance is W W' + noise."""
    return -np.linalg.solve(model.get_covariance(), (x - model.mean_).T).T


def main() -> None:
    pixels = load_digits().data
    pixels = pixels[:, pixels.std(axis=0) > 2] / 16  # those that are nearly always white carry nothing
    order = np.random.default_rng(0).permutation(len(pixels))
    train, test = pixels[order[:900]], pixels[order[900:]]
    kernel = lksd.kernels.IMQ.median(train)
    questions = [
        ("factor analysis with 2 factors", FactorAnalysis(2), "factor analysis with 10 factors", FactorAnalysis(10)),
        ("probabilistic PCA with 10 factors", PCA(10), "factor analysis with 10 factors", FactorAnalysis(10)),
    ]
    print(f"{len(test)} held-out digits of {test.shape[1]} pixels")
    for name_p, p, name_q, q in questions:
        result = lksd.compare_scores(test, score(p.fit(train), test), score(q.fit(train), test), kernel)
        print(f"\n{'=' * 88}\nP: {name_p}.  Q: {name_q}.\n\n{result}")


if __name__ == "__main__":
    main()

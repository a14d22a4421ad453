"""The relative MMD test against brute force and the Gaussian closed form."""

import numpy as np
import oracles
import pytest
from scipy import stats

import lksd
from lksd.inference import kernel_sums
from lksd.kernels import IMQ, BagOfWords, Gaussian, Hamming, gram


def brute_force(kernel, x, p, q):
    """Appendix B.5 with the full matrices: the two MMDs and the standard error of their
    difference.
    """

    def off_mean(k):
        return (k.sum() - np.trace(k)) / (len(k) * (len(k) - 1))

    k_x, k_p, k_q = gram(kernel, x, x), gram(kernel, p, p), gram(kernel, q, q)
    k_px, k_qx = gram(kernel, p, x), gram(kernel, q, x)
    mmd_p = off_mean(k_p) - 2 * k_px.mean() + off_mean(k_x)
    mmd_q = off_mean(k_q) - 2 * k_qx.mean() + off_mean(k_x)

    def spread(k, cross):
        f = (k.sum(1) - np.diag(k)) / (len(k) - 1) - cross.mean(1)
        n = len(f)
        return sum((f[i] - f[j]) ** 2 / 2 for i in range(n) for j in range(n) if i != j) / (
            n * (n - 1)
        )

    g = k_px.mean(0) - k_qx.mean(0)
    variance = 4 * (
        spread(k_p, k_px) / len(p) + spread(k_q, k_qx) / len(q) + np.var(g, ddof=1) / len(x)
    )
    return mmd_p, mmd_q, np.sqrt(variance)


@pytest.mark.parametrize(
    "kernel", [Gaussian(2.0), IMQ(np.array([1.0, 3.0])), lambda a, b: 1 / (1 + abs(a[0] - b[0]))]
)
def test_equals_brute_force_with_three_sizes(kernel, monkeypatch):
    monkeypatch.setattr(kernel_sums, "TILE", 16)  # several tiles, the last ones cut
    monkeypatch.setattr(kernel_sums, "POINTWISE_TILE", 16)
    rng = np.random.default_rng(0)
    x, p, q = rng.normal(size=(20, 2)), rng.normal(0.5, 1, (33, 2)), rng.normal(0, 1.2, (17, 2))
    result = lksd.relative_mmd(x, p, q, kernel)
    mmd_p, mmd_q, error = brute_force(kernel, x, p, q)
    assert result.mmd_p == pytest.approx(mmd_p, rel=1e-9)
    assert result.mmd_q == pytest.approx(mmd_q, rel=1e-9)
    assert result.difference == pytest.approx(mmd_p - mmd_q, rel=1e-9)
    assert result.standard_error == pytest.approx(error, rel=1e-9)
    assert result.pvalue == pytest.approx(stats.norm.sf((mmd_p - mmd_q) / error), rel=1e-9)
    assert (result.n, result.n_p, result.n_q) == (20, 33, 17)


def test_gaussian_closed_form_within_monte_carlo_error():
    rng = np.random.default_rng(1)
    roots = [rng.normal(size=(3, 3)) for _ in range(3)]
    cov_p, cov_q, cov_r = (a @ a.T + 0.5 * np.eye(3) for a in roots)
    p, q, x = (
        rng.multivariate_normal(np.zeros(3), c, n)
        for c, n in ((cov_p, 2500), (cov_q, 2000), (cov_r, 3000))
    )
    scale = 1.7
    result = lksd.relative_mmd(x, p, q, Gaussian(scale**2))
    exact = oracles.gaussian_mmd_difference(cov_p, cov_q, cov_r, scale)
    assert abs(result.difference - exact) < 3 * result.standard_error


def test_level_and_power():
    rng = np.random.default_rng(2)
    kernel = Gaussian(4.0)
    null = alternative = 0
    for _ in range(400):
        x = rng.normal(size=(60, 2))
        p, q, far = (
            rng.normal(0.4, 1, (90, 2)),
            rng.normal(-0.4, 1, (90, 2)),
            rng.normal(1.0, 1, (90, 2)),
        )
        null += lksd.relative_mmd(x, p, q, kernel).reject
        alternative += lksd.relative_mmd(x, far, q, kernel).reject
    assert stats.binomtest(null, 400, 0.055, alternative="greater").pvalue > 0.001
    assert alternative > 350


def test_documents():
    rng = np.random.default_rng(3)
    x, p, q = (
        [rng.integers(0, 6, size=rng.integers(2, 7)).tolist() for _ in range(n)]
        for n in (10, 12, 9)
    )
    result = lksd.relative_mmd(x, p, q, BagOfWords(IMQ(), 6))
    counts = [
        np.array([np.bincount(document, minlength=6) for document in sample], float)
        for sample in (x, p, q)
    ]
    assert result.difference == pytest.approx(
        lksd.relative_mmd(*counts, IMQ()).difference, rel=1e-9
    )
    integers = rng.integers(0, 3, (12, 4))
    assert np.isfinite(lksd.relative_mmd(integers, integers[::-1], integers, Hamming()).statistic)

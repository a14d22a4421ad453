"""The tests at scale on the accelerator at hand: ``make bench-gpu``. Prints the figures of
docs/performance.md.

``python benchmarks/gpu.py comparisons`` prints some of them; the others are named scores and
documents.

A million observations need 3 GB of memory on the host and 5 GB on the device.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from functools import cache

# so that the peak is that of the work
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
from run import gaussian_problem, ppca, topic_models, warm

import lksd

DIM = 100
# matrix products of n x n that two models need: their scores', the scores' with what is added to
# them, the data's
PRODUCTS = 5


def peak() -> str:
    stats = jax.local_devices()[0].memory_stats() or {}
    return f"{stats.get('peak_bytes_in_use', 0) / 1e9:.1f} GB"


def report(what: str, took: float, **rest: str) -> None:
    extra = "   ".join(f"{name} {value}" for name, value in rest.items())
    print(f"{what:<58}{took:8.2f} s   peak {peak():<8}   {extra}", flush=True)


@cache
def product_rate() -> float:
    """The device's rate of float64 matrix products, in operations a second."""
    with jax.enable_x64(True):
        a, times = jnp.ones((8192, 8192)), 5
        multiply = jax.jit(lambda a: a @ a)
        multiply(a).block_until_ready()
        start = time.perf_counter()
        for _ in range(times):
            result = multiply(a)
        result.block_until_ready()
        return times * 2 * 8192**3 / (time.perf_counter() - start)


def comparisons() -> None:
    kernel = lksd.kernels.IMQ(2.0 * DIM)
    for n, limit, times in ((100_000, "0.35 s", 3), (1_000_000, "30 s, 6 GB", 1)):
        x, p, q = gaussian_problem(n, DIM)
        took = warm(lambda x=x, p=p, q=q: lksd.compare_scores(x, p, q, kernel), times)
        # half of all pairs, two operations each
        share = PRODUCTS * DIM * float(n) ** 2 / product_rate() / took
        report(
            f"IMQ test, n = {n:,}, D = {DIM}",
            took,
            limit=limit,
            share=f"{share:.0%} of the product rate",
        )
    took = warm(lambda: lksd.compare_scores(x, p, q, kernel, pairs=10**9), 1)
    report("the same with pairs=10**9", took)


def scores() -> None:
    x, weight, _ = ppca(100_000)
    model = lksd.models.PPCA(weight, 1.0)
    report(
        "PPCA scores, n = 100,000, m = 100",
        warm(lambda: lksd.estimate_scores(model, x, exact=False, draws=100), 1),
        limit="60 s",
    )
    x, model, _ = topic_models(100_000, 100, 10_000, 100)
    took = warm(lambda: lksd.estimate_scores(model, x, warmup=25, draws=25), 1)
    report("LDA scores, K = D = 100, n = 100,000, 50 sweeps", took, limit="120 s")


def documents(n: int = 8_000, length: int = 100, size: int = 10_000) -> None:
    rng = np.random.default_rng(0)
    operator = lksd.stein.Difference(size, witness="shared")
    x, given = (
        operator.observations(rng.integers(0, size, (n, length))),
        rng.normal(size=(2, n, length)),
    )
    kernel = lksd.kernels.BagOfWords(lksd.kernels.IMQ(length), size)
    took = warm(lambda: lksd.stein.gram_sums(operator, kernel, x, given, [1.0, -1.0]), 1)
    report(
        f"bag-of-words Gram, {n:,} documents",
        took,
        hundred_thousand=f"{took * (1e5 / n) ** 2 / 60:.0f} min",
    )


def agreement(n: int = 12_000) -> None:
    """The same test on this device and on the processor."""
    x, p, q = gaussian_problem(n, DIM)
    kernel = lksd.kernels.IMQ(2.0 * DIM)
    here = lksd.compare_scores(x, p, q, kernel, calibration="normal").statistic
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        there = lksd.compare_scores(x, p, q, kernel, calibration="normal").statistic
    print(
        f"statistic on the processor and here: relative difference {abs(here / there - 1):.1e} "
        "(limit 1e-8)",
        flush=True,
    )


def main() -> int:
    if jax.default_backend() == "cpu":
        print(
            "there is no accelerator here; install jax for yours, for example pip install "
            "'jax[cuda12]'",
            file=sys.stderr,
        )
        return 1
    parts = {"comparisons": comparisons, "scores": scores, "documents": documents}
    if unknown := set(sys.argv[1:]) - set(parts):
        print(f"expected {', '.join(parts)}; got {', '.join(sorted(unknown))}", file=sys.stderr)
        return 1
    warnings.simplefilter("ignore", lksd.LksdWarning)
    device, rate = jax.local_devices()[0].device_kind, product_rate() / 1e12
    print(
        f"{device}, jax {jax.__version__}, lksd {lksd.__version__}, {rate:.0f} TFLOP/s in float64 "
        "products",
        flush=True,
    )
    agreement()
    for name in sys.argv[1:] or parts:
        parts[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Speed and memory of the tests on scores, as ratios taken in one run: ``make bench``.

Every measurement runs in a process of its own, so that memory peaks do not mix.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def gaussian_problem(n: int, dim: int):
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, dim))
    return x, -(x - 0.1), -x / 1.1


def comparison(n: int, dim: int) -> dict:
    """A whole two-model test, warm, with its peak of resident memory above the import."""
    import lksd

    baseline = peak_megabytes()
    x, p, q = gaussian_problem(n, dim)
    kernel = lksd.kernels.IMQ(2.0 * dim)
    lksd.compare_scores(x[:3000], p[:3000], q[:3000], kernel)
    took = seconds(lambda: lksd.compare_scores(x, p, q, kernel))
    return {"seconds": took, "megabytes": peak_megabytes() - baseline}


def products(n: int, dim: int) -> dict:
    """The five full NumPy products that a comparison cannot do without."""
    x, p, q = gaussian_problem(n, dim)

    def five():
        for a, b in ((x, x), (p, p), (q, q), (p, x), (q, x)):
            a @ b.T

    return {"seconds": seconds(five)}


def bag_of_words(n: int, length: int, vocabulary: int) -> dict:
    """The Gram sums of the cyclic difference operator on documents."""
    import numpy as np

    import lksd

    rng = np.random.default_rng(0)
    x, scores = rng.integers(0, vocabulary, (n, length)), rng.normal(size=(2, n, length))
    kernel, operator = lksd.kernels.BagOfWords(lksd.kernels.IMQ(length), vocabulary), lksd.stein.Difference(vocabulary)
    x = operator.observations(x)

    def run():
        return lksd.stein.gram_sums(operator, kernel, x, scores, [1.0, -1.0])

    run()
    return {"seconds": min(seconds(run) for _ in range(3))}


def imports() -> dict:
    """Median of seven alternating runs of each import, in new processes."""

    def fresh(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    runs = [(fresh("import jax"), fresh("import lksd")) for _ in range(7)]
    jax_alone, ours = (statistics.median(column) for column in zip(*runs, strict=True))
    return {"jax": jax_alone, "lksd": ours}


MEASUREMENTS = {function.__name__: function for function in (comparison, products, bag_of_words, imports)}


def measure(name: str, *arguments: int) -> dict:
    output = subprocess.run(
        [sys.executable, __file__, name, *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout
    return json.loads(output.splitlines()[-1])


def line(what: str, took: float | None = None, **rest: str) -> None:
    time_text = "" if took is None else f"{took:8.2f} s"
    print(f"{what:<46}{time_text:<12}{'   '.join(f'{name} {value}' for name, value in rest.items())}", flush=True)


def main() -> None:
    half, full, five = measure("comparison", 10_000, 100), measure("comparison", 20_000, 100), measure("products", 20_000, 100)
    line("IMQ test, n = 20,000, D = 100", full["seconds"], peak=f"{full['megabytes']:.0f} MB", limit="800 MB")
    line("five NumPy products, same size", five["seconds"], ratio=f"{full['seconds'] / five['seconds']:.2f}", limit="2.5")
    line("from n = 10,000 to 20,000", None, ratio=f"{full['seconds'] / half['seconds']:.2f}", quadratic="4")
    long = measure("comparison", 100_000, 10)
    line("IMQ test, n = 100,000, D = 10", long["seconds"], peak=f"{long['megabytes']:.0f} MB", limit="800 MB")
    small, large = measure("bag_of_words", 500, 100, 2_000), measure("bag_of_words", 500, 100, 200_000)
    line("bag of words, n = 500, D = 100, L = 2,000", small["seconds"])
    line("the same with L = 200,000", large["seconds"], ratio=f"{large['seconds'] / small['seconds']:.2f}", limit="1.5")
    loading = measure("imports")
    line("import lksd, against import jax", loading["lksd"], ratio=f"{loading['lksd'] / loading['jax']:.2f}", limit="2.5")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(MEASUREMENTS[sys.argv[1]](*map(int, sys.argv[2:]))))
    else:
        main()

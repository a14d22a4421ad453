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


def warm(function, times: int = 2) -> float:
    """The fastest of some runs after the first, which compiles."""
    function()
    return min(seconds(function) for _ in range(times))


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
    kernel, operator = (
        lksd.kernels.BagOfWords(lksd.kernels.IMQ(length), vocabulary),
        lksd.stein.Difference(vocabulary),
    )
    x = operator.observations(x)

    return {
        "seconds": warm(lambda: lksd.stein.gram_sums(operator, kernel, x, scores, [1.0, -1.0]), 3)
    }


def ppca(n: int):
    """The paper's PPCA problem: data and two perturbed models in 100 dimensions, 10 latent."""
    import numpy as np

    rng = np.random.default_rng(0)
    weight = rng.random((100, 10))
    x = rng.normal(size=(n, 10)) @ weight.T + rng.normal(size=(n, 100))

    def perturbed(delta: float):
        changed = weight.copy()
        changed[0, 0] += delta
        return changed

    return x, perturbed(2.0), perturbed(1.0)


def sampled(x, p, q, **options) -> dict:
    """A whole comparison by chains, warm: the faster of two, in seconds of wall clock and of all
    processors.
    """
    import lksd

    lksd.compare(x, p, q, exact=False, **options)
    best = {"seconds": float("inf"), "cpu": float("inf")}
    for seed in (1, 2):
        cpu = time.process_time()
        took = seconds(lambda seed=seed: lksd.compare(x, p, q, exact=False, seed=seed, **options))
        best = min(
            best,
            {"seconds": took, "cpu": time.process_time() - cpu},
            key=lambda run: run["seconds"],
        )
    return best


def chains(n: int, nuts: int) -> dict:
    """PPCA by the default sampler or by NUTS, t = 200 and m = 500."""
    import lksd

    x, weight_p, weight_q = ppca(n)
    p, q = (lksd.models.PPCA(weight, 1.0) for weight in (weight_p, weight_q))
    return sampled(x, p, q, warmup=200, draws=500, sampler=lksd.samplers.NUTS() if nuts else None)


def mixture(n: int) -> dict:
    """The Dirichlet process mixture of Section 4.2, t = 1,000 and m = 500."""
    import numpy as np

    import lksd

    rng = np.random.default_rng(0)
    train, x = np.sqrt(3) * rng.normal(size=(5, 10)), np.sqrt(3) * rng.normal(size=(n, 10))
    p, q = (
        lksd.models.DirichletProcessMixture(d * np.ones(10) / np.sqrt(10), 1.0, 2.0, 1.0, train)
        for d in (1.5, 1.0)
    )
    return sampled(x, p, q, warmup=1000, draws=500)


def truncated(n: int) -> dict:
    """Truncated PPCA of Appendix C.2, t = 500 and m = 2,000."""
    import warnings

    import numpy as np

    import lksd

    warnings.simplefilter("ignore", lksd.LksdWarning)
    x, weight_p, weight_q = ppca(2 * n)
    x = x[np.linalg.norm(x, axis=1) < 45][:n]
    p, q = (lksd.models.TruncatedPPCA(weight, 1.0, 50.0, 45.0) for weight in (weight_p, weight_q))
    return sampled(x, p, q, warmup=500, draws=2000)


def many_scores(n: int) -> dict:
    """The peak of resident memory above the import while scores of n observations are estimated."""
    import lksd

    baseline = peak_megabytes()
    x, weight, _ = ppca(n)
    took = seconds(
        lambda: lksd.estimate_scores(
            lksd.models.PPCA(weight, 1.0), x, exact=False, warmup=200, draws=500
        )
    )
    return {"seconds": took, "megabytes": peak_megabytes() - baseline}


def topic_models(n: int, topics: int, vocabulary: int, length: int):
    """Documents of one LDA model and two others with its topics."""
    import equinox as eqx
    import jax
    import numpy as np

    import lksd

    words = np.random.default_rng(0).dirichlet(np.ones(vocabulary), topics)
    data, p, q = (lksd.models.LDA(np.full(topics, a), words) for a in (0.1, 1.1, 0.6))
    sample = eqx.filter_jit(
        lambda model, keys: jax.vmap(lambda key: model.sample(key, length)[1])(keys)
    )
    with jax.enable_x64(True):
        return np.asarray(sample(data, jax.random.split(jax.random.key(0), n))), p, q


def topics(n: int) -> dict:
    """The paper's LDA problem, both operators, 80 + 20 sweeps."""
    return sampled(*topic_models(n, 3, 10_000, 50), warmup=80, draws=20)


def barker(n: int) -> dict:
    """Barker weights at K = 100 and D = 100, 5 + 10 sweeps."""
    import warnings

    import lksd

    warnings.simplefilter("ignore", lksd.LksdWarning)
    return sampled(*topic_models(n, 100, 10_000, 100), operator="barker", warmup=5, draws=10)


def many_documents(n: int) -> dict:
    """The peak of resident memory above the import for a whole test of n documents, K = 100."""
    import lksd

    baseline = peak_megabytes()
    x, p, q = topic_models(n, 100, 10_000, 50)
    took = seconds(lambda: lksd.compare(x, p, q, exact=False, warmup=10, draws=20))
    return {"seconds": took, "megabytes": peak_megabytes() - baseline}


def imports() -> dict:
    """Median of seven alternating runs of each import, in new processes."""

    def fresh(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    runs = [(fresh("import jax"), fresh("import lksd")) for _ in range(7)]
    jax_alone, ours = (statistics.median(column) for column in zip(*runs, strict=True))
    return {"jax": jax_alone, "lksd": ours}


MEASUREMENTS = {
    function.__name__: function
    for function in (
        comparison,
        products,
        bag_of_words,
        chains,
        mixture,
        truncated,
        many_scores,
        topics,
        barker,
        many_documents,
        imports,
    )
}


def measure(name: str, *arguments: int) -> dict:
    output = subprocess.run(
        [sys.executable, __file__, name, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(output.splitlines()[-1])


def line(what: str, took: float | None = None, **rest: str) -> None:
    time_text = "" if took is None else f"{took:8.2f} s"
    print(
        f"{what:<46}{time_text:<12}{'   '.join(f'{name} {value}' for name, value in rest.items())}",
        flush=True,
    )


def published(run: dict, cpu_seconds: float) -> dict[str, str]:
    """Against the processor seconds recorded for the published program on two such cores."""
    return {
        "published / wall": f"{cpu_seconds / run['seconds']:.0f}",
        "published / cpu": f"{cpu_seconds / run['cpu']:.0f}",
        "wanted": "20",
    }


def main() -> None:
    half, full, five = (
        measure("comparison", 10_000, 100),
        measure("comparison", 20_000, 100),
        measure("products", 20_000, 100),
    )
    line(
        "IMQ test, n = 20,000, D = 100",
        full["seconds"],
        peak=f"{full['megabytes']:.0f} MB",
        limit="800 MB",
    )
    line(
        "five NumPy products, same size",
        five["seconds"],
        ratio=f"{full['seconds'] / five['seconds']:.2f}",
        limit="2.5",
    )
    line(
        "from n = 10,000 to 20,000",
        None,
        ratio=f"{full['seconds'] / half['seconds']:.2f}",
        quadratic="4",
    )
    long = measure("comparison", 100_000, 10)
    line(
        "IMQ test, n = 100,000, D = 10",
        long["seconds"],
        peak=f"{long['megabytes']:.0f} MB",
        limit="800 MB",
    )
    small, large = (
        measure("bag_of_words", 500, 100, 2_000),
        measure("bag_of_words", 500, 100, 200_000),
    )
    line("bag of words, n = 500, D = 100, L = 2,000", small["seconds"])
    line(
        "the same with L = 200,000",
        large["seconds"],
        ratio=f"{large['seconds'] / small['seconds']:.2f}",
        limit="1.5",
    )
    default, nuts = measure("chains", 300, 0), measure("chains", 300, 1)
    line("PPCA by chains, n = 300", default["seconds"], limit="2 s", **published(default, 100))
    line("the same by NUTS", nuts["seconds"], limit="8 s", **published(nuts, 100))
    larger = measure("chains", 500, 0)
    line("PPCA by chains, n = 500", larger["seconds"], **published(larger, 175))
    mixed = measure("mixture", 200)
    line("Dirichlet process mixture, n = 200", mixed["seconds"], **published(mixed, 60))
    cut = measure("truncated", 100)
    line("truncated PPCA, n = 100", cut["seconds"], **published(cut, 50))
    many = measure("many_scores", 5_000)
    line(
        "PPCA scores, n = 5,000, with compilation",
        many["seconds"],
        peak=f"{many['megabytes']:.0f} MB",
        limit="1000 MB",
    )
    lda = measure("topics", 300)
    line("LDA, n = 300, K = 3, both operators", lda["seconds"], limit="0.5 s", **published(lda, 6))
    stable = measure("barker", 300)
    line(
        "LDA by Barker, n = 300, K = 100", stable["seconds"], limit="10 s", **published(stable, 600)
    )
    library = measure("many_documents", 5_000)
    line(
        "LDA, n = 5,000, K = 100, with compilation",
        library["seconds"],
        peak=f"{library['megabytes']:.0f} MB",
        limit="2000 MB",
    )
    loading = measure("imports")
    line(
        "import lksd, against import jax",
        loading["lksd"],
        ratio=f"{loading['lksd'] / loading['jax']:.2f}",
        limit="2.5",
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(MEASUREMENTS[sys.argv[1]](*map(int, sys.argv[2:]))))
    else:
        main()

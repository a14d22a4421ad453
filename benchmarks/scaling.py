"""How the cost grows with n, D and m: ``python benchmarks/scaling.py FILE.json`` measures,
``--plot`` draws what files hold.

The exponent of a line is the slope of log(seconds) in log(size), by least squares without the
smallest size, where what does not grow counts most.
"""

from __future__ import annotations

import json
import platform
import sys
from datetime import date
from pathlib import Path

import numpy as np
from run import gaussian_problem, ppca, topic_models, warm

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "scaling.svg"


def gram(n: int, dim: int) -> float:
    import lksd

    x, p, q = gaussian_problem(n, dim)
    scores, kernel, operator = np.stack([p, q]), lksd.kernels.IMQ(2.0 * dim), lksd.stein.Langevin()
    return warm(lambda: lksd.stein.gram_sums(operator, kernel, x, scores, [1.0, -1.0]), 3)


def chains(n: int, draws: int) -> float:
    import lksd

    x, weight, _ = ppca(n)
    return warm(
        lambda: lksd.estimate_scores(lksd.models.PPCA(weight, 1.0), x, exact=False, draws=draws)
    )


def sweeps(n: int) -> float:
    import lksd

    x, model, _ = topic_models(n, 10, 1_000, 50)
    return warm(lambda: lksd.estimate_scores(model, x, warmup=10, draws=20))


def exponent(sizes, times) -> float:
    return float(np.polyfit(np.log(sizes[1:]), np.log(times[1:]), 1)[0])


def measure() -> dict:
    import jax

    import lksd
    from lksd._jax import cores

    large = jax.default_backend() != "cpu"
    each = (
        np.array([8_192, 16_384, 32_768, 65_536]) if large else np.array([250, 500, 1_000, 2_000])
    )
    lines = {
        "Gram, n (D = 100)": (
            (20 if large else 2) * np.array([1_000, 2_000, 4_000, 8_000]),
            lambda n: gram(n, 100),
        ),
        "Gram, D": (
            np.array([50, 100, 200, 400]),
            lambda dim: gram(80_000 if large else 6_000, dim),
        ),
        "PPCA scores, n (m = 200)": (each, lambda n: chains(n, 200)),
        "PPCA scores, m": (
            np.array([250, 500, 1_000, 2_000]),
            lambda m: chains(16_384 if large else 400, m),
        ),
        "LDA scores, n": (each if large else 2 * each, sweeps),
    }
    found = {}
    for name, (sizes, cost) in lines.items():
        times = [cost(int(size)) for size in sizes]
        found[name] = {
            "sizes": sizes.tolist(),
            "seconds": times,
            "exponent": exponent(sizes, times),
        }
        print(
            f"{name:<28}{found[name]['exponent']:6.2f}   {'  '.join(f'{t:.3g} s' for t in times)}",
            flush=True,
        )
    device = jax.local_devices()[0].device_kind
    named = device if large else f"{len(cores())} cores, {platform.machine()}"
    return {
        "device": named,
        "date": str(date.today()),
        "jax": jax.__version__,
        "lksd": lksd.__version__,
        "lines": found,
    }


def plot(files: list[str]) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    plt.rcParams.update({"svg.hashsalt": "lksd", "svg.fonttype": "none", "font.size": 9})
    studies = [json.loads(Path(file).read_text(encoding="utf-8")) for file in files]
    names = list(studies[0]["lines"])
    figure, axes = plt.subplots(1, len(names), figsize=(2.5 * len(names), 3), layout="constrained")
    for axis, name in zip(axes, names, strict=True):
        for study, marker in zip(studies, "os^", strict=False):
            line = study["lines"][name]
            axis.loglog(
                line["sizes"],
                line["seconds"],
                marker=marker,
                label=f"{study['device']}: {line['exponent']:.2f}",
            )
        axis.set_title(name)
        axis.set_xlabel(name.split(", ")[1].split()[0])
        axis.minorticks_off()
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
        sizes = sorted({size for study in studies for size in study["lines"][name]["sizes"]})
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=45)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(title="exponent", frameon=False, fontsize=7, title_fontsize=7)
    axes[0].set_ylabel("seconds")
    figure.savefig(IMAGE, metadata={"Date": None})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plot"]:
        plot(sys.argv[2:])
    else:
        found = measure()
        if len(sys.argv) > 1:
            Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

"""Score estimation on one and on two workers of a Dask cluster, each pinned to a processor: the
ratio of their throughputs.

``python benchmarks/cluster.py``. Runs alternate and the best of each counts, since other programs
may use the machine.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack

ROUNDS = 5


def main(n: int) -> None:
    import numpy as np

    import lksd
    from lksd._jax import cores
    from lksd.engines.cluster import own_cluster

    rng = np.random.default_rng(0)
    model, x = lksd.models.PPCA(rng.random((100, 10)), 1.0), rng.normal(size=(n, 100))
    every = cores()
    if len(every) < 2:
        raise SystemExit("two processors are needed")
    best = {1: float("inf"), 2: float("inf")}
    with ExitStack() as stack:
        clients = {}
        for workers in best:
            clients[workers] = stack.enter_context(own_cluster(every[:workers]))
            lksd.estimate_scores(model, x[:64], exact=False, engine=clients[workers])  # compiles
        for _ in range(ROUNDS):
            for workers, client in clients.items():
                began = time.perf_counter()
                lksd.estimate_scores(model, x, exact=False, engine=client)
                best[workers] = min(best[workers], time.perf_counter() - began)
    print(
        f"{n} observations: {best[1]:.2f} s on one worker, {best[2]:.2f} s on two; ratio "
        f"{best[1] / best[2]:.2f}, wanted 1.6"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)

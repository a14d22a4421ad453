"""Trials over processes: the same digits in any order, on any number of them."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for_end
from pathlib import Path

from .._jax import cores, keep_to
from .._validation import LksdWarning
from ..engines import Engine, track
from .experiment import Experiment, Outcome, Task, trial_seed
from .problems import experiment_named
from .store import Store


def run_experiment(
    experiment: Experiment,
    store: Store,
    *,
    trials: int | None = None,
    sizes: tuple[int, ...] = (),
    methods: tuple[str, ...] = (),
    cases: tuple[str, ...] = (),
    processes: int = 1,
    seed: int = 0,
    data: Path | None = None,
    engine: Engine | None = None,
) -> int:
    """Run what the store lacks of an experiment; returns how many trials that took.

    Parameters
    ----------
    trials : int, optional
        Default: as many as the experiment says.
    sizes, methods, cases : tuples, optional
        Default: all.
    processes : int
        Trials that run at a time. The digits do not depend on it.
    data : Path, optional
        A snapshot of arXiv, for the experiments on it.
    engine : Engine, optional
        Where trials run, instead of processes of this machine. Its workers must see the same files.
    """
    numbers = list(range(experiment.trials if trials is None else trials))
    # Two processes on one store should not go the same way through the trials; the digits do not
    # mind the order.
    start = random.randrange(len(numbers))
    wanted = Task(
        trial=0,
        seed=seed,
        sizes=tuple(sorted(sizes)) or experiment.sizes,
        methods=methods or experiment.all_methods,
        cases=cases or experiment.cases,
        alphas=experiment.alphas,
        data=data and data.resolve(),  # a worker may have another working directory
        cache=store.path.parent.resolve() / f"{store.path.stem}-cache",
    )
    if experiment.prepare is not None:
        if data is None:
            raise ValueError(
                f"data: {experiment.name} needs a snapshot of arXiv. Give its file with --data."
            )
        assert wanted.cache is not None
        with quiet():
            experiment.prepare(data, wanted.cache, wanted.methods, engine)
    finished = 0
    with track(experiment.name, len(numbers)) as advance:

        def tasks() -> Iterator[Task]:
            for trial in numbers[start:] + numbers[:start]:
                task = wanted._replace(trial=trial, seed=trial_seed(experiment.name, trial, seed))
                lacking = missing(task, store.done(experiment, trial, task.seed))
                if lacking is None:
                    advance(1)
                else:
                    yield lacking

        name = experiment.name
        done = (
            completed(name, tasks(), processes)
            if engine is None
            else engine.map(trials_of, name, tasks())
        )
        for task, outcomes in done:
            store.write(experiment, task.trial, task.seed, outcomes)
            finished += 1
            advance(1)
    return finished


def missing(task: Task, done: set[tuple[str, str, int, float]]) -> Task | None:
    """The task narrowed to what is not done yet; None where nothing is left."""
    left = [
        (case, method, n)
        for case in task.cases
        for method in task.methods
        for n in task.sizes
        if any((case, method, n, alpha) not in done for alpha in task.alphas)
    ]
    if not left:
        return None
    cases, methods, sizes = (set(column) for column in zip(*left, strict=True))
    return task._replace(
        cases=tuple(one for one in task.cases if one in cases),
        methods=tuple(one for one in task.methods if one in methods),
        sizes=tuple(one for one in task.sizes if one in sizes),
    )


def completed(
    name: str, tasks: Iterator[Task], processes: int
) -> Iterator[tuple[Task, list[Outcome]]]:
    """Tasks with their outcomes, in the order in which they end."""
    if processes == 1:
        for task in tasks:
            yield task, run_trial(name, task)
        return
    pool = pool_of(processes)
    running: dict[Future, Task] = {}
    try:
        for task in tasks:
            running[pool.submit(run_trial, name, task)] = task
            if len(running) >= processes:  # no queue: the store is asked again before each start
                yield from ended(running)
        while running:
            yield from ended(running)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def pool_of(processes: int) -> ProcessPoolExecutor:
    """Processes that share the processors between them, and end with this one."""
    # After Ctrl-C the system takes back the pool's semaphores; Python's helper need not say so.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
    # JAX has threads, and cannot be forked (https://github.com/jax-ml/jax/pull/20734)
    context = multiprocessing.get_context("spawn")
    shares = context.SimpleQueue()
    for worker in range(processes):
        shares.put(cores()[worker % len(cores()) :: processes])
    return ProcessPoolExecutor(
        processes, mp_context=context, initializer=start_worker, initargs=(shares,)
    )


def ended(running: dict[Future, Task]) -> Iterator[tuple[Task, list[Outcome]]]:
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        yield running.pop(future), future.result()


def trials_of(name: str) -> Callable[[Task], tuple[Task, list[Outcome]]]:
    """The function of one task, for an engine."""
    return lambda task: (task, run_trial(name, task))


def run_trial(name: str, task: Task) -> list[Outcome]:
    with quiet():
        return list(experiment_named(name).run(task))


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings of poor chains, which are part of what is studied."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LksdWarning)
        yield


def start_worker(shares) -> None:
    """A worker keeps to its share of the processors, leaves Ctrl-C to its parent, and ends when
    that ends, however it does.
    """
    keep_to(shares.get())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait_for_end([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

"""A Dask cluster: workers that may come, go, freeze and die while the work is done."""

from __future__ import annotations

import asyncio
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dask
import jax
import psutil
from distributed import Client, Future, KilledWorker, LocalCluster, rpc
from distributed.comm.addressing import get_address_host_port
from distributed.security import Security

from .._jax import cores, device_memory, keep_to
from .._validation import LksdWarning, warn
from . import Engine, EngineError, in_order
from .sending import dumps

ANSWER = 6  # seconds for a scheduler to answer
START = 60  # seconds for workers on this machine to start
# items for each thread of the cluster that run, wait there, or are finished before they are asked
# for
AHEAD = 3
KEPT = 2  # setups that a worker keeps ready
# whoever reaches a worker's port can run any code there, so nobody outside this machine may
LOOPBACK = "127.0.0.1"
VARIABLE = "LKSD_SILENCE"
SECONDS = 120.0  # without a sign of life; a worker that computes gives one every second or so
LOOK = 5.0  # seconds between two looks


class Dask(Engine):
    """The workers of a client's cluster; the client is made when it is first needed.

    ``own`` says that the cluster was started here: nobody else adds workers to it.
    """

    def __init__(self, connect: Callable[[], Client], own: bool = False):
        self._connect, self._own = connect, own

    @cached_property
    def client(self) -> Client:
        client = self._connect()
        if not count_threads(client):
            address = address_of(client)
            warnings.warn(
                f"engine: the cluster at {address} has no workers yet; the work waits for them.",
                LksdWarning,
                stacklevel=2,
            )
        return client

    @property
    def workers(self) -> int:
        return max(count_threads(self.client), 1)

    @cached_property
    def backend(self) -> str:
        with explained(self.client):
            return self._submitted(jax.default_backend).result()

    @cached_property
    def memory(self) -> int | None:
        with explained(self.client):
            return self._submitted(device_memory).result()

    def _submitted(self, function: Callable, *arguments: Any) -> Watched:
        return Watched(self.client, self.client.submit(function, *arguments, pure=False), self._own)

    def map(
        self,
        setup: Callable[[Any], Callable],
        shared: Any,
        items: Iterable[Any],
        at_once: int | None = None,
    ) -> Iterator[Any]:
        client = self.client
        # What all parts share is the result of a task: where all workers that hold it die, the
        # scheduler computes it again, while data that are scattered would be lost, as long as
        # https://github.com/dask/distributed/issues/3149 is open.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            payload = client.submit(bytes, dumps((setup, shared, at_once)), pure=False)

        def submit(item):
            return self._submitted(run_item, versions(), payload, dumps(item))

        with explained(client):
            yield from in_order(submit, items, lambda: AHEAD * self.workers)


def run_item(wanted: dict[str, str], payload: bytes, item: bytes) -> Any:
    """One item, on a worker."""
    if (found := versions()) != wanted:
        raise EngineError(
            f"engine: expected workers with {said(wanted)}, as here; one has {said(found)}. "
            "Install the same there."
        )
    with preparing:  # by one thread of the worker, while the others wait
        function, slots = prepared(payload)
    with slots:
        return function(pickle.loads(item))


@lru_cache(maxsize=KEPT)
def prepared(payload: bytes) -> tuple[Callable, threading.Semaphore]:
    setup, shared, at_once = pickle.loads(payload)
    return setup(shared), threading.BoundedSemaphore(at_once or os.cpu_count() or 1)


preparing = threading.Lock()


def versions() -> dict[str, str]:
    """What decides the digits, and whether objects can be sent."""
    return {name: version(name) for name in ("lksd", "jax")} | {
        "Python": ".".join(platform.python_version_tuple()[:2])
    }


def address_of(client: Client) -> Any:
    return client.scheduler and client.scheduler.address


def said(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in found.items())


@contextmanager
def explained(client: Client) -> Iterator[None]:
    """Errors of the cluster in our words; those of the work itself as they are."""
    try:
        yield
    except KilledWorker as error:
        raise EngineError(
            f"engine: a part of the work ended {error.allowed_failures + 1} workers, one after the "
            "other. Most often they lack memory: give a smaller batch_size, or workers with more; "
            "their logs say more."
        ) from error
    except CancelledError as error:
        raise EngineError(
            f"engine: the cluster at {address_of(client)} ended or was restarted in the middle. "
            "Run again; with a checkpoint what was finished is not lost."
        ) from error
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"engine: {error} on a worker. Install there what is installed here.",
            name=error.name,
            path=error.path,
        ) from error


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address."""
    try:
        get_address_host_port(address)
    except ValueError as error:
        raise ValueError(
            f"engine: expected an address such as 'tcp://host:8786'; got {address!r} ({error}). "
            "Fix it."
        ) from error
    security = Security().get_connection_args("client")
    if address.startswith("tls://") and security["ssl_context"] is None:
        raise ValueError(
            f"engine: expected certificates for {address!r}; Dask's configuration has none. Give a "
            "client, Client(address, security=Security(...)), or set distributed.comm.tls in the "
            "configuration."
        )
    if security["require_encryption"] and not address.startswith("tls://"):
        raise ValueError(
            "engine: expected an address that begins with tls://, since Dask's configuration "
            f"demands it; got {address!r}. Change one of them."
        )
    # an event loop of its own, since a notebook has one that runs
    with ThreadPoolExecutor(1) as thread:
        kind = thread.submit(asyncio.run, kind_of(address, security)).result()
    if kind != "Scheduler":
        said = "nothing answered" if kind is None else f"a {kind.lower()} answered"
        raise EngineError(
            f"engine: expected a Dask scheduler at {address!r}; {said}. Check the address, and "
            "that it runs."
        )
    with Client(address, timeout=ANSWER, set_as_default=False) as client:
        yield client


async def kind_of(address: str, security: dict[str, Any]) -> str | None:
    """What Dask calls that which answers; None where nothing does, or something else
    listens there.
    """

    async def identity() -> str:
        async with rpc(address, connection_args=security) as server:
            return (await server.identity())["type"]

    try:
        return await asyncio.wait_for(identity(), ANSWER)
    except (OSError, TimeoutError, asyncio.CancelledError):
        return None


def check_client(client: Any) -> Client:
    if not isinstance(client, Client):
        raise TypeError(
            f"engine: expected a dask.distributed.Client; got {client!r}. Give Client(cluster)."
        )
    if client.asynchronous:
        raise ValueError(
            "engine: expected a client that waits for results; this one is asynchronous. Give "
            "Client(cluster)."
        )
    if client.status != "running":
        raise EngineError(
            f"engine: expected a client that is connected; this one is {client.status}. Make a new "
            "one."
        )
    return client


@contextmanager
def own_cluster(processors: list[int] | None = None) -> Iterator[Client]:
    """A worker process for each processor, or each that this process may use, pinned to it.

    Workers are programs of their own, not copies of this one, so that a script or notebook needs no
    guard.
    """
    with (
        tempfile.TemporaryDirectory(prefix="lksd-") as folder,
        LocalCluster(n_workers=0, host=LOOPBACK, dashboard_address=f"{LOOPBACK}:0") as scheduler,
        Client(scheduler, set_as_default=False) as client,
    ):
        allowed, log = cores(), Path(folder, "log")
        running = []
        try:
            for core in processors or allowed:
                # inherited by what is started, with the number of threads that follow from it
                keep_to([core])
                running.append(start_worker(scheduler.scheduler_address, Path(folder), log))
            keep_to(allowed)
            wait_for(client, running, log)
            yield client
        finally:
            keep_to(allowed)
            end(running)


def start_worker(address: str, folder: Path, log: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "dask", "worker", address]
    command += ["--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
    # Dask serves its HTTP routes without a dashboard too, as long as
    # https://github.com/dask/distributed/issues/5634 is open
    command += ["--host", LOOPBACK, "--dashboard-address", f"{LOOPBACK}:0"]
    command += ["--death-timeout", str(START), "--local-directory", str(folder)]
    with log.open("ab") as file:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={"JAX_PLATFORMS": "cpu"} | os.environ,
        )


def end(running: list[subprocess.Popen]) -> None:
    """Workers and what they have started; those that are frozen do not hear that they
    should end.
    """
    every = [one for process in running for one in family(process.pid)]
    for process in running:
        process.terminate()
    _, left = psutil.wait_procs(every, timeout=ANSWER)
    for one in left:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    for process in running:
        process.wait()


def family(process: int) -> list[psutil.Process]:
    try:
        first = psutil.Process(process)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def wait_for(client: Client, running: list[subprocess.Popen], log: Path) -> None:
    try:
        client.wait_for_workers(len(running), timeout=START)
    except TimeoutError as error:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        why = lines[-1] if lines else "they say nothing"
        raise EngineError(
            f"engine: the workers on this machine did not start within {START} seconds ({why})."
        ) from error


def longest_silence() -> float:
    """Seconds that a worker or scheduler may be silent, as the environment says."""
    given = os.environ.get(VARIABLE, str(SECONDS))
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 5 <= seconds < float("inf"):
        raise ValueError(
            f"{VARIABLE}: expected a number of seconds of at least 5; got {given!r}. Set another, "
            "or unset it."
        )
    return seconds


class Watched:
    """A part of the work, which is waited for as long as the scheduler answers and those who
    compute it are alive.
    """

    def __init__(self, client: Client, future: Future, own: bool):
        self.client, self.future, self.own = client, future, own

    def result(self) -> Any:
        limit = longest_silence()
        last: dict[str, float] = {}
        alone: float | None = None  # since when there is no worker, where none will come by itself
        given_up: set[str] = set()
        while True:
            try:
                return self.future.result(
                    timeout=limit if self.future.status == "finished" else LOOK
                )
            except TimeoutError:
                if self.future.status == "error":  # it may be one of the work itself
                    raise self.future.exception() from None
            seen = ask(self.client, self.client.run_on_scheduler, last_seen)
            frozen = {one: since for one, (since, silent) in seen.items() if silent > limit}
            # Two looks, since a machine that has slept finds every worker silent at first.
            if dead := [
                one
                for one, since in frozen.items()
                if last.get(one) == since and one not in given_up
            ]:
                warn(
                    f"engine: {' and '.join(dead)} gave no sign of life for {limit:g} seconds "
                    f"({VARIABLE}) and are given up; what these workers had to compute runs again "
                    "elsewhere."
                )
                # a frozen nanny takes its time
                ask(self.client, self.client.run_on_scheduler, give_up, dead, wait=False)
                given_up |= set(dead)
            last = frozen
            alone = None if seen or not (given_up or self.own) else alone or time.monotonic()
            if alone is not None and time.monotonic() - alone > limit:
                raise EngineError(
                    f"engine: expected workers that answer; for {limit:g} seconds there was none, "
                    "since all were frozen or ended. Look at their machines and logs, and run "
                    "again; with a checkpoint what was finished is not lost."
                )

    def cancel(self) -> None:
        """Work that nobody waits for is not done; this does not wait for the scheduler."""
        self.future.release()


def ask(client: Client, question: Callable, *arguments: Any, **options: Any) -> Any:
    """What a question to the scheduler finds, if that answers."""
    limit = longest_silence()
    try:
        return question(*arguments, **options, callback_timeout=limit)
    except TimeoutError as error:
        raise EngineError(
            "engine: expected a scheduler that answers; "
            f"{client.scheduler and client.scheduler.address} was silent for {limit:g} seconds. "
            f"See whether it is frozen or overloaded; {VARIABLE} sets another number of seconds."
        ) from error


def count_threads(client: Client) -> int:
    return sum(ask(client, client.nthreads).values())


def last_seen(dask_scheduler: Any) -> dict[str, tuple[float, float]]:
    """When each worker gave its last sign of life, and the seconds since, by the
    scheduler's clock.
    """
    now = time.time()
    return {
        address: (worker.last_seen, now - worker.last_seen)
        for address, worker in dask_scheduler.workers.items()
    }


async def give_up(workers: list[str], dask_scheduler: Any) -> None:
    """End workers, and start them again where they have a nanny that does so."""
    await dask_scheduler.restart_workers(
        workers, timeout=5, wait_for_workers=False, on_error="return", stimulus_id="lksd-silent"
    )

"""Workers and schedulers that are frozen: they hold their connections, and never answer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from distributed import Client, Future

from .._validation import warn
from .local import EngineError

VARIABLE = "LKSD_SILENCE"
SECONDS = 120.0  # without a sign of life; a worker that computes gives one every second or so
LOOK = 5.0  # seconds between two looks


def longest_silence() -> float:
    """Seconds that a worker or scheduler may be silent, as the environment says."""
    given = os.environ.get(VARIABLE, str(SECONDS))
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 5 <= seconds < float("inf"):
        raise ValueError(f"{VARIABLE}: expected a number of seconds of at least 5; got {given!r}. Set another, or unset it.")
    return seconds


class Watched:
    """A part of the work, which is waited for as long as the scheduler answers and those who compute it are alive."""

    def __init__(self, client: Client, future: Future, own: bool):
        self.client, self.future, self.own = client, future, own

    def result(self) -> Any:
        limit = longest_silence()
        last: dict[str, float] = {}
        alone: float | None = None  # since when there is no worker, where none will come by itself
        given_up: set[str] = set()
        while True:
            try:
                return self.future.result(timeout=limit if self.future.status == "finished" else LOOK)
            except TimeoutError:
                if self.future.status == "error":  # it may be one of the work itself
                    raise self.future.exception() from None
            seen = ask(self.client, self.client.run_on_scheduler, last_seen)
            frozen = {one: since for one, (since, silent) in seen.items() if silent > limit}
            # Two looks, since a machine that has slept finds every worker silent at first.
            if dead := [one for one, since in frozen.items() if last.get(one) == since and one not in given_up]:
                warn(
                    f"engine: {' and '.join(dead)} gave no sign of life for {limit:g} seconds ({VARIABLE}) and are given up; "
                    "what these workers had to compute runs again elsewhere."
                )
                ask(self.client, self.client.run_on_scheduler, give_up, dead, wait=False)  # a frozen nanny takes its time
                given_up |= set(dead)
            last = frozen
            alone = None if seen or not (given_up or self.own) else alone or time.monotonic()
            if alone is not None and time.monotonic() - alone > limit:
                raise EngineError(
                    f"engine: expected workers that answer; for {limit:g} seconds there was none, since all were frozen or ended. "
                    "Look at their machines and logs, and run again; with a checkpoint what was finished is not lost."
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
            f"engine: expected a scheduler that answers; {client.scheduler and client.scheduler.address} was silent for {limit:g} "
            f"seconds. See whether it is frozen or overloaded; {VARIABLE} sets another number of seconds."
        ) from error


def count_threads(client: Client) -> int:
    return sum(ask(client, client.nthreads).values())


def last_seen(dask_scheduler: Any) -> dict[str, tuple[float, float]]:
    """When each worker gave its last sign of life, and the seconds since, by the scheduler's clock."""
    now = time.time()
    return {address: (worker.last_seen, now - worker.last_seen) for address, worker in dask_scheduler.workers.items()}


async def give_up(workers: list[str], dask_scheduler: Any) -> None:
    """End workers, and start them again where they have a nanny that does so."""
    await dask_scheduler.restart_workers(workers, timeout=5, wait_for_workers=False, on_error="return", stimulus_id="lksd-silent")

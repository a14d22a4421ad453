"""What every fit returns, and what makes its digits those of the data and the seed alone."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_seed
from ..models import LatentVariableModel


class Fit(NamedTuple):
    """A fitted model, and what its user should know of how it was fitted."""

    model: LatentVariableModel
    notes: tuple[str, ...] = ()


PACKAGES = r"(gensim|joblib|numpy|scipy|sklearn|tomotopy)(\.|$)"  # whose warnings become notes
_door = threading.Lock()
_running = 0
_shared = ExitStack()


@contextmanager
def steady() -> Iterator[None]:
    """Linear algebra in one thread, so that its digits do not depend on how many there are, and no
    warnings of other packages.

    Both are settings of the whole process: the first of several fits at a time makes them, and the
    last one undoes them.
    """
    global _running, _shared
    from threadpoolctl import ThreadpoolController

    controller = ThreadpoolController()
    with _door:
        if not _running:
            with ExitStack() as opened:
                opened.enter_context(one_thread(controller.select(user_api="blas")))
                opened.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", module=PACKAGES)
                warnings.simplefilter("ignore", DeprecationWarning)  # as packages are loaded
                _shared = opened.pop_all()
        _running += 1
    try:
        with controller.select(user_api="openmp").limit(limits=1):  # a setting of each thread
            yield
    finally:
        with _door:
            _running -= 1
            if not _running:
                _shared.close()


@contextmanager
def one_thread(controller: Any) -> Iterator[None]:
    """A limit that is set and undone by a thread of its own: it can be undone by no other than
    the one that has set it.
    """
    ready, end = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with controller.limit(limits=1):
                ready.set()
                end.wait()
        finally:
            ready.set()

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    ready.wait()
    try:
        yield
    finally:
        end.set()
        holder.join()


def check_how_many(count, most: int, what: str, why: str) -> int:
    """How many components a candidate has: an integer from 1 to ``most``."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise ValueError(
            f"count: expected an integer of at least 1; got {count!r}. Say how many {what}."
        )
    if count > most:
        raise ValueError(
            f"count: expected at most {most} {what}, {why}; got {count}. Ask for fewer."
        )
    return int(count)


def seed_of_package(seed: int) -> int:
    """A seed below 2^32, as other packages take it."""
    return int(np.random.SeedSequence(check_seed(seed)).generate_state(1)[0])

"""From what a user gives as ``engine`` to an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from .base import Engine
from .local import Local


@contextmanager
def opened(engine: Any) -> Iterator[Engine]:
    """The engine for the time of a call; what is started or connected here is closed after it.

    None is this process, "dask" a worker for each of its processors, an address such as "tcp://host:8786" or "tls://host:8786" a
    cluster's scheduler; a ``dask.distributed.Client`` and an engine are used as they are and stay open.
    """
    if engine is None or isinstance(engine, Engine):
        yield engine or Local()
        return
    named = isinstance(engine, str)
    if named and engine != "dask" and "://" not in engine:
        raise ValueError(f"{EXPECTED}; got {engine!r}. Check the spelling.")
    if not named and not any(kind.__module__.startswith("distributed.") for kind in type(engine).__mro__):
        raise TypeError(f"{EXPECTED}; got {engine!r}. Leave it out to use this process.")
    cluster = dask_engine()
    with ExitStack() as stack:
        if engine == "dask":
            yield cluster.Dask(lambda: stack.enter_context(cluster.own_cluster()), own=True)
        else:
            client = stack.enter_context(cluster.connected(engine)) if named else cluster.check_client(engine)
            yield cluster.Dask(lambda: client)


EXPECTED = 'engine: expected None, "dask", the address of a scheduler such as "tcp://host:8786", or a dask.distributed.Client'


def dask_engine() -> ModuleType:
    try:
        from . import cluster
    except ImportError as error:
        raise ImportError("engine: Dask is not installed. Run: pip install 'lksd[dask]'") from error
    return cluster

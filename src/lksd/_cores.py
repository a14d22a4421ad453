"""The processors that this process may use."""

from __future__ import annotations

import os


def cores() -> list[int]:
    """Their numbers. Containers and ``taskset`` leave a process fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def keep_to(allowed: list[int]) -> None:
    """Let this process use these only, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, allowed)

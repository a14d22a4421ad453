"""The device that JAX computes on."""

from __future__ import annotations

import jax


def device_memory() -> int | None:
    """The bytes of an accelerator that JAX may use; None for a processor, or where the device does not say."""
    stats = jax.local_devices()[0].memory_stats()
    return None if jax.default_backend() == "cpu" or not stats else stats.get("bytes_limit")

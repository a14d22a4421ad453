"""Discrepancies by a kernel, which are U-statistics of pairs of observations."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx

from .base import Criterion


class KSD(Criterion):
    """The squared kernel Stein discrepancy.

    Parameters
    ----------
    kernel, operator : optional
        As in ``lksd.compare``.
    """

    name: ClassVar[str] = "ksd"

    kernel: Any = eqx.field(default=None, static=True)
    operator: Any = eqx.field(default=None, static=True)


class MMD(Criterion):
    """The squared maximum mean discrepancy, on samples from the models.

    Parameters
    ----------
    kernel : optional
        Default: IMQ at the median distance.
    samples : int, optional
        From each model; default 2,000, or n if that is more.
    """

    name: ClassVar[str] = "mmd"

    kernel: Any = eqx.field(default=None, static=True)
    samples: int | None = eqx.field(default=None, static=True)

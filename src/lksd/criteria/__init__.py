"""What "fits better" means: proper scores that add up over the observations, and discrepancies."""

from .base import Additive, Criterion
from .conditional import Conditional
from .fisher import Fisher
from .kernels import KSD, MMD
from .log import LogScore

__all__ = ["KSD", "MMD", "Additive", "Conditional", "Criterion", "Fisher", "LogScore"]

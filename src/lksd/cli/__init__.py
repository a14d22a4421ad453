"""The command line: arguments to calls."""

from .main import main, run

__all__ = ["main", "run"]

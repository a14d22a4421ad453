"""Models from where people already build them. Each adapter imports its package only when it is called."""

from .numpyro import from_numpyro
from .pymc import from_pymc
from .topics import from_gensim

__all__ = ["from_gensim", "from_numpyro", "from_pymc"]

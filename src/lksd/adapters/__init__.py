"""Models from where people already build them. Each adapter imports its package only when it is called."""

from .topics import from_gensim

__all__ = ["from_gensim"]

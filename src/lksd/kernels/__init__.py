"""Kernels: small immutable objects with a pointwise form."""

from .base import Kernel, as_kernel, check_on, named_errors
from .compose import BallBump, BoxBump, Polynomial, Product, Sum, Weighted, family
from .discrete import BagOfWords, Graphs, Hamming, IntegerDistance, OneHot
from .gram import gram, kernel_block
from .radial import IMQ, Gaussian, PerCoordinate, Radial
from .standardised import Standardised, Tilted

__all__ = [
    "IMQ",
    "BagOfWords",
    "BallBump",
    "BoxBump",
    "Gaussian",
    "Graphs",
    "Hamming",
    "IntegerDistance",
    "Kernel",
    "OneHot",
    "PerCoordinate",
    "Polynomial",
    "Product",
    "Radial",
    "Standardised",
    "Sum",
    "Tilted",
    "Weighted",
    "as_kernel",
    "check_on",
    "family",
    "gram",
    "kernel_block",
    "named_errors",
]

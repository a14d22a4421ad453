"""From row sums to decisions, in plain NumPy."""

from .compare import compare, goodness_of_fit
from .comparison import compare_scores
from .details import Diagnostics, Words
from .goodness_of_fit import goodness_of_fit_scores
from .mmd import relative_mmd
from .results import ComparisonResult, GoodnessOfFitResult, MMDResult, load_result

__all__ = [
    "ComparisonResult",
    "Diagnostics",
    "GoodnessOfFitResult",
    "MMDResult",
    "Words",
    "compare",
    "compare_scores",
    "goodness_of_fit",
    "goodness_of_fit_scores",
    "load_result",
    "relative_mmd",
]

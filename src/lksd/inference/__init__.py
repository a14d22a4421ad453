"""From models and data to results."""

from .compare import compare, goodness_of_fit
from .comparison import compare_scores
from .goodness_of_fit import goodness_of_fit_scores
from .mmd import relative_mmd
from .rank import rank
from .ranking import rank_scores

__all__ = [
    "compare",
    "compare_scores",
    "goodness_of_fit",
    "goodness_of_fit_scores",
    "rank",
    "rank_scores",
    "relative_mmd",
]

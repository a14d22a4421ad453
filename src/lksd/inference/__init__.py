"""From row sums to decisions, in plain NumPy."""

from .compare import compare, goodness_of_fit
from .comparison import compare_scores
from .details import Diagnostics, Words
from .fit_result import GoodnessOfFitResult
from .goodness_of_fit import goodness_of_fit_scores
from .loading import load_result
from .mmd import relative_mmd
from .rank import rank
from .rank_result import RankResult
from .ranking import rank_scores
from .results import ComparisonResult, MMDResult

__all__ = [
    "ComparisonResult",
    "Diagnostics",
    "GoodnessOfFitResult",
    "MMDResult",
    "RankResult",
    "Words",
    "compare",
    "compare_scores",
    "goodness_of_fit",
    "goodness_of_fit_scores",
    "load_result",
    "rank",
    "rank_scores",
    "relative_mmd",
]

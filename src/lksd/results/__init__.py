"""The answers of the tests: frozen records that print, plot and store themselves."""

from .choice import Choice
from .comparison import ComparisonResult, MMDResult
from .details import Diagnostics, Words
from .fit import GoodnessOfFitResult
from .loading import load_result
from .ranking import RankResult

__all__ = [
    "Choice",
    "ComparisonResult",
    "Diagnostics",
    "GoodnessOfFitResult",
    "MMDResult",
    "RankResult",
    "Words",
    "load_result",
]

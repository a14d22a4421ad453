"""lksd: which of these latent variable models fits my data better, and how sure am I?"""

from . import _stop as _stop  # before the imports below, which take their time

# isort: split

from importlib.metadata import version

from . import adapters, criteria, graphs, kernels, models, samplers, statistics, stein
from ._jax import clear_caches
from ._validation import LksdWarning
from .choosing import choose
from .domains import discrete_operators
from .inference.mmd import relative_mmd
from .models.files import load_model, save_model
from .options import Chains, Decision, Run
from .results import (
    Choice,
    ComparisonResult,
    Diagnostics,
    GoodnessOfFitResult,
    MMDResult,
    RankResult,
    Words,
    load_result,
)
from .scores import ScoreEstimate, estimate_scores, load_scores
from .verbs import (
    compare,
    compare_pointwise,
    compare_scores,
    goodness_of_fit,
    goodness_of_fit_scores,
    rank,
    rank_pointwise,
    rank_scores,
)

__version__ = version("lksd")

__all__ = [
    "Chains",
    "Choice",
    "ComparisonResult",
    "Decision",
    "Diagnostics",
    "GoodnessOfFitResult",
    "LksdWarning",
    "MMDResult",
    "RankResult",
    "Run",
    "ScoreEstimate",
    "Words",
    "adapters",
    "choose",
    "clear_caches",
    "compare",
    "compare_pointwise",
    "compare_scores",
    "criteria",
    "discrete_operators",
    "estimate_scores",
    "goodness_of_fit",
    "goodness_of_fit_scores",
    "graphs",
    "kernels",
    "load_model",
    "load_result",
    "load_scores",
    "models",
    "rank",
    "rank_pointwise",
    "rank_scores",
    "relative_mmd",
    "samplers",
    "save_model",
    "statistics",
    "stein",
]

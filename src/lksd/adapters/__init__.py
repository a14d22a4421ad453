"""Models from where people already build them. Each adapter imports its package only when it is
called.
"""

from ..domains import share_vocabulary
from .draws import from_draws
from .fitted import from_gensim, from_sklearn, from_tomotopy
from .functions import from_functions
from .numpyro import from_numpyro
from .pymc import from_pymc

__all__ = [
    "from_draws",
    "from_functions",
    "from_gensim",
    "from_numpyro",
    "from_pymc",
    "from_sklearn",
    "from_tomotopy",
    "share_vocabulary",
]

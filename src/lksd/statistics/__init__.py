"""U-statistics, null distributions, resampling and multiplicity: plain NumPy and SciPy, without
JAX.
"""

from .nulls import Calibration, Evidence, NullDistribution

__all__ = ["Calibration", "Evidence", "NullDistribution"]

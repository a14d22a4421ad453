"""U-statistics, null distributions, resampling and multiplicity: plain NumPy and SciPy, without JAX."""

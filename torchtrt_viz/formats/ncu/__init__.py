"""Pages of Nsight Compute as CSV: what it measured of single kernels."""

"""Exact kernels without a momentum: relative to a Gaussian reference law, and by Barker's rule for the proposal."""

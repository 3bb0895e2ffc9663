"""Experiments of the SCIR paper (Baker et al. 2018)."""

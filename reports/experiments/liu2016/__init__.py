"""Experiments of the SGGMC paper (Liu, Zhu and Song 2016)."""

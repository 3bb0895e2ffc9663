"""Experiments of the RSVGD paper (Liu and Zhu 2018)."""

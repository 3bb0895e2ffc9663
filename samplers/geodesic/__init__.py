"""Samplers on embedded manifolds that move along geodesics."""

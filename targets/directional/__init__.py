"""Targets on spheres, circles and Stiefel manifolds."""

"""Manifolds on which targets live, one a file."""

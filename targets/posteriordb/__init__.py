"""Posteriors of posteriordb: its files, densities of its models in JAX, and expectations from its reference draws.

A posterior is data, a model and reference draws [magnusson2024posteriordb]. `layout` reads the files, `registry` has
the densities by the names of the models, and `target` joins the two. A density that is not here is added with one file,
see `regression` for the pattern, and one row in `registry`.
"""

"""Root conftest: `pytest` puts this folder on sys.path, and `pytest checks` gets its options here."""

import os

# Matrices here are small: a product that two threads share waits longer for the second one than it takes, and workers
# of pytest-xdist are in each other's way. Read when NumPy is loaded, here and in the workers, which inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest_plugins = ["checks.pytest_plugin.plugin"]

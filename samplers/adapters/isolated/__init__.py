"""The bridge: samplers of libraries that need another jax, run by a Python of their own environment.

    python -m sgmcmc_verification.samplers.adapters.isolated build NAME      builds the environment, once

A worker of that environment (`worker.py`) holds the library. It is asked by files of arrays for chains, and for the
one-step map (z, noise, h) -> z' with the library's own random draws replaced by given ones, so that the checks that
need no samples run on it as they do on a sampler in this process.
"""

"""Dynamics of the overdamped Langevin equation."""

import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, MatrixField, coordinate_names
from sgmcmc_verification.targets.target import Target


def reversible_dynamics(target: Target, D: MatrixField, temperature: float = 1.0) -> Dynamics:
    """H = U / T, Q = 0: d theta = (-D grad U / T + div D) dt + sqrt(2 D) dW, for a diffusion D(theta) (n, n)."""
    n = target.size
    return Dynamics(
        H=lambda z: target.flat_potential(z) / temperature,
        D=D,
        Q=lambda z: jnp.zeros((n, n), z.dtype),
        names=coordinate_names(n),
        size=n,
    )


def overdamped_dynamics(target: Target, temperature: float = 1.0) -> Dynamics:
    """H = U / T, D = T I, Q = 0: d theta = -grad U dt + sqrt(2 T) dW.

    Source: ma2015complete, section 3.1 (SGLD), at temperature T.
    """
    return reversible_dynamics(target, lambda z: temperature * jnp.eye(target.size, dtype=z.dtype), temperature)

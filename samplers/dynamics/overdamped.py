"""Dynamics of the overdamped Langevin equation."""

import jax.numpy as jnp

from samplers.dynamics.complete_recipe import Dynamics, coordinate_names
from targets.target import Target


def overdamped_dynamics(target: Target, temperature: float = 1.0) -> Dynamics:
    """H = U / T, D = T I, Q = 0: d theta = -grad U dt + sqrt(2 T) dW.

    Source: ma2015complete, section 3.1 (SGLD), at temperature T.
    """
    T, n = temperature, target.size
    return Dynamics(
        H=lambda z: target.flat_potential(z) / T,
        D=lambda z: T * jnp.eye(n, dtype=z.dtype),
        Q=lambda z: jnp.zeros((n, n), z.dtype),
        names=coordinate_names(n),
        size=n,
    )

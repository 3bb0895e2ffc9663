"""Particles that follow the marginals of an SDE, from the definition of their estimate of grad log q.

    det   v_j = -D (grad H + s_j) - Q grad H + div Q          fgh   v_j = -(D + Q) (grad H + s_j)

at z_j, with the declared H, D and Q and s_j the estimate of grad log q(z_j); E(x, y) = exp(-|x - y|^2 / (2 c)),

    gfsd  s_j = grad_y log (1/M) sum_i E(z_i, y) at z_j       blob  s_j = d/dz_j sum_k log (1/M) sum_i E(z_i, z_k)

For s = grad log q both have the marginals of dz = f dt + sqrt(2 D) dW, which keeps exp(-H), if Q is skew and D
symmetric: the current of that SDE is q (f - div D - D grad log q), and q Q grad log q + q div Q has no divergence. The
positions and the auxiliary variables each have an estimate of their own, unless there is a joint one.

Source: liu2019understanding, lemma 1 and theorem 5; liu2019accelerating; chen2018unified.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from samplers.dynamics.complete_recipe import Dynamics, row_divergence
from samplers.interface.aliases import Scalar

ESTIMATES = ("gfsd", "blob")
"""Estimates that are derivatives of a sum of kernels."""


def estimate_of(density: str, particles: jax.Array, width: Scalar) -> jax.Array:
    """s (M, n) of particles (M, n) by automatic differentiation, for a width c that is held fixed."""

    def log_density(among: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.log(jnp.mean(jnp.exp(-jnp.sum((among - y) ** 2, axis=1) / (2 * width))))

    if density == "gfsd":
        return jax.vmap(lambda y: jax.grad(log_density, 1)(particles, y))(particles)
    whole = lambda z: jnp.sum(jax.vmap(lambda y: log_density(z, y))(z))
    return jax.grad(whole)(particles)


def flow_of(dynamics: Dynamics, form: str) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """(z (n,), s (n,)) -> v (n,)."""

    def velocity(z: jax.Array, score: jax.Array) -> jax.Array:
        slope, D, Q = jax.grad(dynamics.H)(z), dynamics.D(z), dynamics.Q(z)
        if form == "fgh":
            return -(D + Q) @ (slope + score)
        return -D @ (slope + score) - Q @ slope + row_divergence(dynamics.Q, z)

    return velocity

"""Particles that follow the marginals of an SDE, from the definition of their estimate of grad log q.

    det   v_j = -D (grad H + s_j) - Q grad H + div Q          fgh   v_j = -(D + Q) (grad H + s_j)

at z_j, with the declared H, D and Q and s_j the estimate of grad log q(z_j); E(x, y) = exp(-|x - y|^2 / (2 c)),

    gfsd  s_j = grad_y log (1/M) sum_i E(z_i, y) at z_j       blob  s_j = d/dz_j sum_k log (1/M) sum_i E(z_i, z_k)
    gfsf  sum_i E(z_i, z_j) s_i + r s_j = -sum_i grad_i E(z_i, z_j) + r (z_j - mean) / c,   r the ridge
    jko   s_j = (1 / (d c)) grad_j of sum_ik u_i u_k E(z_i, z_k) |z_i - z_k|^2 / M at fixed multipliers u > 0,
          u_j sum_i u_i E(z_i, z_j) = M

The third is Stein's identity at the particles. The multipliers of the last are taken from the method and their
equations are a statement of their own, since a fixed number of sweeps solves them: each halves the error of log u, near
the solution at least (knight2014symmetry), and `SETTLED` is what 30 halvings leave of one.

For s = grad log q both have the marginals of dz = f dt + sqrt(2 D) dW, which keeps exp(-H), if Q is skew and D
symmetric: the current of that SDE is q (f - div D - D grad log q), and q Q grad log q + q div Q has no divergence. The
positions and the auxiliary variables each have an estimate of their own, unless there is a joint one.

Source: liu2019understanding, lemma 1 and theorem 5; liu2019accelerating; chen2018unified.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, row_divergence
from sgmcmc_verification.samplers.interface.aliases import Scalar
from sgmcmc_verification.samplers.particles.density_gradients import transport_scaling

ESTIMATES = ("gfsd", "blob", "gfsf", "jko")
"""Estimates with a definition here."""
SETTLED = 2.0**-30
"""Largest residual of the equations of the multipliers."""


def kernel_of(x: jax.Array, y: jax.Array, width: Scalar) -> jax.Array:
    """E(x, y) of two points (n,)."""
    return jnp.exp(-jnp.sum((x - y) ** 2) / (2 * width))


def kernels_of(particles: jax.Array, width: Scalar) -> jax.Array:
    """E(z_i, z_j), (M, M)."""
    return jax.vmap(lambda x: jax.vmap(lambda y: kernel_of(x, y, width))(particles))(particles)


def multipliers_of(particles: jax.Array, width: Scalar) -> jax.Array:
    """u (M,) as the method has them."""
    count = len(particles)
    return transport_scaling(kernels_of(particles, width), jnp.full(count, 1 / count, particles.dtype))


def residuals_of(particles: jax.Array, width: Scalar) -> jax.Array:
    """u_j sum_i u_i E(z_i, z_j) / M - 1, (M,)."""
    u = multipliers_of(particles, width)
    return u * (kernels_of(particles, width) @ u) / len(particles) - 1


def estimate_of(density: str, particles: jax.Array, width: Scalar, ridge: Scalar) -> jax.Array:
    """s (M, n) of particles (M, n) by automatic differentiation, for a width c that is held fixed."""
    if density == "gfsf":
        return _of_test_functions(particles, width, ridge)
    if density == "jko":
        return _of_transport(particles, width)

    def log_density(among: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.log(jnp.mean(jax.vmap(lambda x: kernel_of(x, y, width))(among)))

    if density == "gfsd":
        return jax.vmap(lambda y: jax.grad(log_density, 1)(particles, y))(particles)
    whole = lambda z: jnp.sum(jax.vmap(lambda y: log_density(z, y))(z))
    return jax.grad(whole)(particles)


def _of_test_functions(particles: jax.Array, width: Scalar, ridge: Scalar) -> jax.Array:
    """The solution of the equations of `gfsf`."""
    centred = particles - jnp.mean(particles, axis=0)
    slopes = jax.vmap(lambda y: jnp.sum(jax.vmap(lambda x: jax.grad(kernel_of)(x, y, width))(centred), axis=0))(centred)
    matrix = kernels_of(centred, width) + ridge * jnp.eye(len(particles), dtype=particles.dtype)
    return jnp.linalg.solve(matrix, ridge * centred / width - slopes)


def _of_transport(particles: jax.Array, width: Scalar) -> jax.Array:
    """The slope of the cost of transport; each pair is in the sum twice, which the other particle's share halves."""
    (count, size), u = particles.shape, multipliers_of(particles, width)

    def cost(among: jax.Array) -> jax.Array:
        distances = jax.vmap(lambda x: jnp.sum((among - x) ** 2, axis=1))(among)
        return u @ (kernels_of(among, width) * distances) @ u / count

    return jax.grad(cost)(particles) / (size * width)


def flow_of(dynamics: Dynamics, form: str) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """(z (n,), s (n,)) -> v (n,)."""

    def velocity(z: jax.Array, score: jax.Array) -> jax.Array:
        slope, D, Q = jax.grad(dynamics.H)(z), dynamics.D(z), dynamics.Q(z)
        if form == "fgh":
            return -(D + Q) @ (slope + score)
        return -D @ (slope + score) - Q @ slope + row_divergence(dynamics.Q, z)

    return velocity

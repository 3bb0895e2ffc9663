"""Overdamped samplers whose state is the position. Six small experiments."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def slope(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


# -- 1. Langevin with a mobility that falls off away from the origin -------------------------------------------------


def _mobile(key, x, h, estimator):
    """dq = (-D grad U + div D) dt + sqrt(2 D) dW, D = 1 / (1 + |q|^2 / (2 d))."""
    k1, k2 = jax.random.split(key)
    q, back = ravel_pytree(x)
    g, _ = ravel_pytree(slope(estimator, k1, x))
    d = q.size
    mobility = 1 / (1 + 0.5 * jnp.mean(q**2))
    # chain rule through the mean: D' = -D^2 * (q / d), per coordinate
    correction = -(mobility**2) * (q / d) / d
    n = jax.random.normal(k2, q.shape, q.dtype)
    return back(q + h * (correction - mobility * g) + jnp.sqrt(2 * h * mobility) * n)


mobility_langevin = simple_sampler(_mobile)


# -- 2. SGLD for parameter trees -------------------------------------------------------------------------------------


def _tree_sgld(key, params, h, estimator):
    gkey, nkey = jax.random.split(key)
    grads = slope(estimator, gkey, params)

    def update(p, g):
        # one stream per parameter
        noise = jax.random.normal(jax.random.fold_in(nkey, p.size), p.shape, p.dtype)
        return p - h * g + jnp.sqrt(2 * h).astype(p.dtype) * noise

    return jax.tree.map(update, params, grads)


tree_sgld = simple_sampler(_tree_sgld)


# -- 3. second-order accurate Langevin, gradient at a perturbed point ------------------------------------------------


def _perturbed(key, x, h, estimator):
    """X' = X - h grad U(X + sqrt(h / 2) xi) + sqrt(2 h) xi: order two for the invariant measure (Vilmart 2015)."""
    k1, k2 = jax.random.split(key)
    q, back = ravel_pytree(x)
    xi = jax.random.normal(k2, q.shape, q.dtype)
    g, _ = ravel_pytree(slope(estimator, k1, back(q + jnp.sqrt(h / 2) * xi)))
    return back(q - h * g + jnp.sqrt(2 * h) * xi)


perturbed_gradient = simple_sampler(
    _perturbed, claims=Claims(Source("", "Vilmart 2015, postprocessed integrators"), StationaryLaw(order=2))
)


# -- 4. SGLD with bounded noise, against blow-ups --------------------------------------------------------------------


def _bounded(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    q, back = ravel_pytree(x)
    g, _ = ravel_pytree(slope(estimator, k1, x))
    n = jax.random.truncated_normal(k2, -2.5, 2.5, q.shape, q.dtype)
    return back(q - h * g + jnp.sqrt(2 * h) * n)


bounded_noise = simple_sampler(_bounded)


# -- 5. mirrored Langevin on the simplex -----------------------------------------------------------------------------


def _mirror(key, x, h, estimator):
    """Langevin for y = log(x / x_K), K - 1 free coordinates, with the log Jacobian of y -> x."""
    k1, k2 = jax.random.split(key)
    g = slope(estimator, k1, x)
    free = x.size - 1
    pulled = x * (jnp.dot(g, x) - g)  # -dU/dy
    jacobian = 1 - free * x  # d/dy of sum_{i < K} log x_i
    drift = (pulled + jacobian)[:-1]
    y = jnp.log(x[:-1] / x[-1]) + h * drift + jnp.sqrt(2 * h) * jax.random.normal(k2, drift.shape, x.dtype)
    return jax.nn.softmax(jnp.append(y, jnp.zeros((), x.dtype)))


mirror_simplex = simple_sampler(
    _mirror, claims=Claims(Source("", "own"), StationaryLaw(order=1), spaces=("simplex",))
)


# -- 6. half of the coordinates at a time ----------------------------------------------------------------------------


def _half_blocks(key, x, h, estimator):
    """Moves a cyclic block of d // 2 coordinates that begins anywhere; time is stretched to make up for it."""
    k1, k2, k3 = jax.random.split(key, 3)
    q, back = ravel_pytree(x)
    g, _ = ravel_pytree(slope(estimator, k1, x))
    d = q.size
    block = max(1, d // 2)
    start = jax.random.randint(k3, (), 0, d)
    moved = (jnp.arange(d) - start) % d < block
    n = jax.random.normal(k2, q.shape, q.dtype)
    proposal = q - h * (d / block) * g + jnp.sqrt(2 * h * min(2, d)) * n
    return back(jnp.where(moved, proposal, q))


half_blocks = simple_sampler(_half_blocks)

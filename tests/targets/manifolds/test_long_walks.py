"""Long walks on the constrained manifolds: the constraint stays at round-off over a million steps of a sampler."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.targets.manifolds.product import Product
from sgmcmc_verification.targets.manifolds.simplex import Simplex
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel

EPS = float(np.finfo(np.float64).eps)
STEPS = 1_000_000
WALK = Product((ProductOfSpheres(2, 2), Simplex(4), Stiefel(3, 2)))
NAMES = [factor.name for factor in WALK.factors]
RESIDUALS = (
    lambda x: jnp.max(jnp.abs(jnp.sum(x * x, axis=1) - 1)),
    lambda x: jnp.maximum(jnp.abs(jnp.sum(x) - 1), -jnp.min(x)),
    lambda x: jnp.max(jnp.abs(x.T @ x - jnp.eye(2))),
)


@cache
def walk():
    """Worst constraint error after a step, and worst relative change of speed within one, by factor.

    A step is half a geodesic, a kick of the velocity, half a geodesic, and the move back to the constraint.
    """
    start = WALK.random(jax.random.key(1))
    sizes = [int(np.size(leaf)) for leaf in start]

    def step(i, state):
        x, v, error, change = state
        # an irregular sequence serves as noise: no random numbers are needed to visit the space
        phase = jnp.sqrt(jnp.arange(2.0, 2 + sum(sizes)))
        noise = jnp.split(jnp.sin(jnp.asarray(i + 1, float) * phase), np.cumsum(sizes)[:-1])
        kicked = tuple(0.8 * u + n.reshape(u.shape) for u, n in zip(v, noise, strict=True))
        v = WALK.tangent(x, kicked)
        y, w = WALK.geodesic(x, v, 0.7)
        turned = [jnp.abs(jnp.sum(b * b) / jnp.sum(a * a) - 1) for a, b in zip(v, w, strict=True)]
        y = WALK.project_roundoff(y)
        w = WALK.tangent(y, w)
        off = [residual(point) for residual, point in zip(RESIDUALS, y, strict=True)]
        return y, w, jnp.maximum(error, jnp.stack(off)), jnp.maximum(change, jnp.stack(turned))

    zero = jnp.zeros(len(RESIDUALS))
    initial = (start, jax.tree.map(jnp.zeros_like, start), zero, zero)
    x, _, error, change = jax.jit(lambda s: jax.lax.fori_loop(0, STEPS, step, s))(initial)
    return x, np.asarray(error), np.asarray(change)


@pytest.mark.parametrize("name", NAMES)
def test_the_constraint_stays_at_roundoff_over_a_million_steps_and_speeds_are_kept_in_each(name):
    point, error, change = walk()
    index = NAMES.index(name)
    # sums of at most six terms of order one
    assert error[index] <= 16 * EPS
    # |v| is at most 5 |noise| <= 5 sqrt(6), a path at most 0.7 |v| < 10; errors grow as (1 + length)^2 at most
    assert change[index] <= 16 * EPS * 11**2
    assert bool(WALK.contains(point))

"""Exact kernels with auxiliary points: ellipses, clouds, Crank-Nicolson, tempered excursions, sweeps."""

import itertools

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

exact = Claims(Source("", "textbook"), ExactLaw())


def energy(estimator, key, back=lambda flat: flat):
    return lambda flat: estimator.estimate(key, (), back(flat))[0].potential


def _ellipse(key, position, h, estimator):
    """Elliptical slice sampling with the reference N(0, I); the bracket of angles has the width 2 pi h / (1 + h)."""
    k_u, k_nu, k_level, k_place, k_loop = jax.random.split(key, 5)
    x, back = ravel_pytree(position)
    potential = energy(estimator, k_u, back)
    likelihood = lambda flat: 0.5 * jnp.sum(flat**2) - potential(flat)
    nu = jax.random.normal(k_nu, x.shape, x.dtype)
    level = likelihood(x) - jax.random.exponential(k_level, (), x.dtype)
    width = 2 * jnp.pi * h / (1 + h)
    low = -width * jax.random.uniform(k_place, (), x.dtype)
    at = lambda angle: x * jnp.cos(angle) + nu * jnp.sin(angle)

    def shrink(carry):
        k, low, high, last, _ = carry
        low, high = jnp.where(last < 0, last, low), jnp.where(last > 0, last, high)
        k, k_angle = jax.random.split(k)
        angle = low + (high - low) * jax.random.uniform(k_angle, (), x.dtype)
        return k, low, high, angle, likelihood(at(angle)) >= level

    start = (k_loop, low, low + width, jnp.zeros((), low.dtype), jnp.array(False))
    return back(at(jax.lax.while_loop(lambda carry: ~carry[-1], shrink, start)[3]))


ellipse = simple_sampler(_ellipse, claims=exact)


def _cloud(key, position, h, estimator):
    """Six points about a centre that is drawn about x; one of all seven is taken in proportion to its density."""
    k_u, k_centre, k_points, k_choice = jax.random.split(key, 4)
    x, back = ravel_pytree(position)
    centre = x + h**0.5 * jax.random.normal(k_centre, x.shape, x.dtype)
    others = centre + h**0.5 * jax.random.normal(k_points, (6, *x.shape), x.dtype)
    points = jnp.concatenate([x[None], others])
    return back(points[jax.random.categorical(k_choice, -jax.vmap(energy(estimator, k_u, back))(points))])


cloud = simple_sampler(_cloud, claims=exact)


def _crank_nicolson_langevin(key, position, h, estimator):
    """Langevin step, trapezoidal in the part |x|^2 / 2 of U and explicit in the rest, with its Hastings ratio."""
    k_u, k_noise, k_test = jax.random.split(key, 3)
    x, back = ravel_pytree(position)

    def look(flat):
        seen = estimator.estimate(k_u, (), back(flat))[0]
        mean = ((2 - h) * flat - 2 * h * (ravel_pytree(seen.gradient)[0] - flat)) / (2 + h)
        return seen.potential, mean

    spread = (8 * h) ** 0.5 / (2 + h)
    u_x, mean_x = look(x)
    y = mean_x + spread * jax.random.normal(k_noise, x.shape, x.dtype)
    u_y, mean_y = look(y)
    log_ratio = u_x - u_y + (jnp.sum((y - mean_x) ** 2) - jnp.sum((x - mean_y) ** 2)) / (2 * spread**2)
    moves = jax.random.bernoulli(k_test, jnp.exp(jnp.minimum(log_ratio, 0)))
    return back(jnp.where(moves, y, x))


crank_nicolson_langevin = simple_sampler(_crank_nicolson_langevin, claims=exact)

BETAS = (1.0, 0.7, 0.45)


def _excursion(key, x, h, estimator):
    """Tempered transitions (Neal): random walks at falling, then at rising inverse temperatures, tested as a whole."""
    k_u, k_test, *k_walks = jax.random.split(key, 2 + 2 * (len(BETAS) - 1))
    potential = energy(estimator, k_u)

    def walk(k, a, beta):
        k_move, k_accept = jax.random.split(k)
        b = a + (2 * h / beta) ** 0.5 * jax.random.normal(k_move, a.shape, a.dtype)
        log_u = jnp.log(jax.random.uniform(k_accept, dtype=a.dtype))
        return jnp.where(log_u < beta * (potential(a) - potential(b)), b, a)

    y, work, rungs = x, 0.0, list(itertools.pairwise(BETAS))
    for k, (colder, hotter) in zip(k_walks[:2], rungs):
        work = work + (colder - hotter) * potential(y)
        y = walk(k, y, hotter)
    for k, (colder, hotter) in zip(k_walks[2:], rungs[::-1]):
        y = walk(k, y, hotter)
        work = work - (colder - hotter) * potential(y)
    return jnp.where(jnp.log(jax.random.uniform(k_test, dtype=x.dtype)) < work, y, x)


excursion = simple_sampler(_excursion, claims=exact)


def _sweep(key, position, h, estimator):
    """Metropolis within Gibbs: all coordinates in their order, uniform proposals of variance 2 h."""
    k_u, k_move, k_test = jax.random.split(key, 3)
    x, back = ravel_pytree(position)
    potential = energy(estimator, k_u, back)
    moves = (6 * h) ** 0.5 * jax.random.uniform(k_move, x.shape, x.dtype, -1, 1)
    levels = jax.random.exponential(k_test, x.shape, x.dtype)

    def one(i, carry):
        flat, u = carry
        other = flat.at[i].add(moves[i])
        u_other = potential(other)
        return jax.lax.cond(u_other - u < levels[i], lambda: (other, u_other), lambda: (flat, u))

    return back(jax.lax.fori_loop(0, x.size, one, (x, potential(x)))[0])


fixed_scan = simple_sampler(_sweep, claims=exact)

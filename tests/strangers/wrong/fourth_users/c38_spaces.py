"""Samplers on positive numbers, the simplex, the sphere, the box, and a product."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw, simple_sampler

LEAST = 1e-5
EDGE = 1e-2
TINY = 1e-12


def first_order(space):
    return Claims(Source("", "own"), StationaryLaw(order=1), spaces=(space,))


def exact(space):
    return Claims(Source("", "own"), ExactLaw(), spaces=(space,))


def gradient(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def energy_of(estimator, key):
    return lambda x: estimator.estimate(key, (), x)[0].potential


def normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def log_langevin_step(key, x, h, estimator):
    """Langevin in log x; x is kept from underflow."""
    a, b = jax.random.split(key)
    y = x * jnp.exp(h * (1 - x * gradient(estimator, a, x)) + jnp.sqrt(2 * h) * normal(b, x))
    return jnp.maximum(y, LEAST)


log_langevin = simple_sampler(log_langevin_step, claims=first_order("positive"))


def log_walk_step(key, x, h, estimator):
    """A random walk of log x, with the Jacobian."""
    a, b, c = jax.random.split(key, 3)
    energy = energy_of(estimator, a)
    step = jnp.sqrt(2 * h) * normal(b, x)
    y = x * jnp.exp(step)
    log_ratio = energy(x) - energy(y) + jnp.mean(step)
    return jnp.where(jnp.log(jax.random.uniform(c, dtype=x.dtype)) < log_ratio, y, x)


log_walk = simple_sampler(log_walk_step, claims=exact("positive"))


def transfer_step(key, x, h, estimator):
    """Moves mass between two coordinates of the simplex."""
    a, b, c, d = jax.random.split(key, 4)
    energy = energy_of(estimator, a)
    i, j = jax.random.choice(b, x.size, (2,), replace=False)
    both = x[i] + x[j]
    new = jnp.clip(x[i] + jnp.sqrt(2 * h) * jax.random.normal(c, (), x.dtype), TINY, both - TINY)
    y = x.at[i].set(new).at[j].set(both - new)
    return jnp.where(jnp.log(jax.random.uniform(d, dtype=x.dtype)) < energy(x) - energy(y), y, x)


transfer = simple_sampler(transfer_step, claims=exact("simplex"))


def on_sphere(target):
    """Langevin on the sphere, with minibatches of four where there are data."""
    terms = target.terms
    batch = 4

    def slope(key, x, estimator):
        if terms is None:
            return gradient(estimator, key, x)
        index = jax.random.randint(key, (batch,), 0, terms.size)
        rows = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
        of_rows = lambda q: jnp.sum(jax.vmap(terms.datum, (None, 0))(q, rows))
        return jax.grad(terms.prior)(x) + max(terms.size // batch, 1) * jax.grad(of_rows)(x)

    def step(key, x, h, estimator):
        a, b = jax.random.split(key)
        v = jnp.sqrt(2 * h) * normal(b, x) - h * slope(a, x, estimator)
        y = x + v - x * jnp.sum(x * v)
        return y / jnp.linalg.norm(y)

    return simple_sampler(step, claims=first_order("sphere"))


def reflected_step(key, x, h, estimator):
    """Langevin in a box, folded at the faces; the gradient is taken a little inside, where it is finite."""
    a, b = jax.random.split(key)
    inside = jnp.clip(x, EDGE, 1 - EDGE)
    y = x - h * gradient(estimator, a, inside) + jnp.sqrt(2 * h) * normal(b, x)
    return 1 - jnp.abs(1 - y % 2)


reflected = simple_sampler(reflected_step, claims=first_order("box"))


def alternating_step(key, position, h, estimator):
    """Metropolis within Gibbs for a positive scale and the rest: one step of each."""
    a, b, c, d, e = jax.random.split(key, 5)
    energy = energy_of(estimator, a)
    scale, rest = position
    before = energy(position)
    step = jnp.sqrt(2 * h) * normal(b, scale)
    new_scale = scale * jnp.exp(step)
    log_ratio = before - energy((new_scale, rest)) + jnp.sum(step)
    scale_taken = jnp.log(jax.random.uniform(c, dtype=scale.dtype)) < log_ratio
    new_rest = rest + jnp.sqrt(2 * h) * normal(d, rest)
    rest_taken = jnp.log(jax.random.uniform(e, dtype=rest.dtype)) < before - energy((scale, new_rest))
    return jnp.where(scale_taken, new_scale, scale), jnp.where(rest_taken, new_rest, rest)


alternating = simple_sampler(alternating_step, claims=exact("positive x euclidean"))

"""Exact kernels in JAX: random numbers of leapfrog steps, slices, stages, temperatures, coins, walkers."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


def energy_of(estimator, key):
    return lambda q: estimator.estimate(key, (), q)[0].potential


def normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def log_uniform(key, x):
    return jnp.log(jax.random.uniform(key, dtype=x.dtype))


# 1. HMC with 1 to 6 leapfrog steps of size sqrt(h)


def hmc_step(key, position, h, estimator):
    batch_key, momentum_key, number_key, accept_key = jax.random.split(key, 4)
    x, back = ravel_pytree(position)
    eps = jnp.sqrt(h)
    at = lambda q: estimator.estimate(batch_key, (), back(q))[0]
    slope = lambda q: ravel_pytree(at(q).gradient)[0]
    p = normal(momentum_key, x)
    number = jax.random.randint(number_key, (), 1, 7)

    def leapfrog(_, carry):
        y, r = carry
        r = r - eps / 2 * slope(y)
        y = y + eps * r
        return y, r - eps / 2 * slope(y)

    y, r = lax.fori_loop(0, number, leapfrog, (x, p))
    rise = at(y).potential - at(x).potential + (jnp.dot(r, r) - jnp.dot(p, p)) / 2
    return back(jnp.where(log_uniform(accept_key, x) < -rise, y, x))


hmc = simple_sampler(hmc_step, claims=EXACT)


# 2. A slice along a random direction, stepping out and shrinking (Neal 2003); it has no step size

WIDTH = 2.0


def slice_step(key, position, h, estimator):
    batch_key, direction_key, level_key, window_key, shrink_key = jax.random.split(key, 5)
    x, back = ravel_pytree(position)
    direction = normal(direction_key, x)
    direction = direction / jnp.linalg.norm(direction)
    energy = lambda t: energy_of(estimator, batch_key)(back(x + t * direction))
    level = energy(jnp.zeros((), x.dtype)) + jax.random.exponential(level_key, dtype=x.dtype)
    left = -WIDTH * jax.random.uniform(window_key, dtype=x.dtype)
    right = left + WIDTH
    left = lax.while_loop(lambda t: energy(t) <= level, lambda t: t - WIDTH, left)
    right = lax.while_loop(lambda t: energy(t) <= level, lambda t: t + WIDTH, right)

    def draw(key, left, right):
        return left + (right - left) * jax.random.uniform(key, dtype=x.dtype)

    def shrink(carry):
        key, left, right, t = carry
        left, right = jnp.where(t < 0, t, left), jnp.where(t < 0, right, t)
        key, draw_key = jax.random.split(key)
        return key, left, right, draw(draw_key, left, right)

    key, draw_key = jax.random.split(shrink_key)
    first = (key, left, right, draw(draw_key, left, right))
    t = lax.while_loop(lambda carry: energy(carry[3]) > level, shrink, first)[3]
    return back(x + t * direction)


slices = simple_sampler(slice_step, claims=EXACT)


# 3. Delayed acceptance (Christen and Fox): a cheap energy first, the potential only of what it lets pass


def cheap_energy(x):
    return jnp.sum(jnp.log(jnp.cosh(x / 2)))


def delayed_step(key, position, h, estimator):
    batch_key, move_key, first_key, second_key = jax.random.split(key, 4)
    x, back = ravel_pytree(position)
    energy = lambda q: energy_of(estimator, batch_key)(back(q))
    y = x + jnp.sqrt(2 * h) * normal(move_key, x)
    cheap_rise = cheap_energy(y) - cheap_energy(x)

    def second_stage(x, y):
        rise = energy(y) - energy(x) - cheap_rise
        return jnp.where(log_uniform(second_key, x) < -rise, y, x)

    return back(lax.cond(log_uniform(first_key, x) < -cheap_rise, second_stage, lambda x, y: x, x, y))


delayed = simple_sampler(delayed_step, claims=EXACT)


# 4. Two temperatures: a walk of each, and an exchange; the cold one is the position


def tempering(temperature=3.0):
    if not temperature > 0:
        raise ValueError("temperature has to be positive")

    def init(key, position, estimator):
        return {"cold": position, "hot": position}

    def step(key, state, h, estimator):
        batch_key, cold_key, hot_key, swap_key = jax.random.split(key, 4)
        cold, back = ravel_pytree(state["cold"])
        hot, _ = ravel_pytree(state["hot"])
        energy = lambda q: energy_of(estimator, batch_key)(back(q))

        def walk(key, x, temperature):
            move_key, accept_key = jax.random.split(key)
            y = x + jnp.sqrt(2 * h * temperature) * normal(move_key, x)
            return jnp.where(log_uniform(accept_key, x) < (energy(x) - energy(y)) / temperature, y, x)

        cold, hot = walk(cold_key, cold, 1.0), walk(hot_key, hot, temperature)
        swap = log_uniform(swap_key, cold) < (1 - 1 / temperature) * (energy(cold) - energy(hot))
        cold, hot = jnp.where(swap, hot, cold), jnp.where(swap, cold, hot)
        return {"cold": back(cold), "hot": back(hot)}

    return simple_sampler(step, init=init, position=lambda state: state["cold"], claims=EXACT)


# 5. A coin: an independent proposal N(0, 3^2), or a walk

SPREAD = 3.0


def coin_step(key, position, h, estimator):
    batch_key, coin_key, move_key, accept_key = jax.random.split(key, 4)
    x, back = ravel_pytree(position)
    energy = lambda q: energy_of(estimator, batch_key)(back(q))
    noise, threshold = normal(move_key, x), log_uniform(accept_key, x)

    def independent(x):
        y = SPREAD * noise
        log_ratio = energy(x) - energy(y) + (jnp.dot(y, y) - jnp.dot(x, x)) / (2 * SPREAD**2)
        return jnp.where(threshold < log_ratio, y, x)

    def walk(x):
        y = x + jnp.sqrt(2 * h) * noise
        return jnp.where(threshold < energy(x) - energy(y), y, x)

    return back(lax.cond(jax.random.bernoulli(coin_key, 0.3), independent, walk, x))


coin = simple_sampler(coin_step, claims=EXACT)


# 6. The stretch move (Goodman and Weare) of 2 (d + 1) walkers, half of them at a time; it has no step size

STRETCH = 2.0


def ensemble_init(key, position, estimator):
    size = sum(a.size for a in jax.tree.leaves(position))
    leaves, structure = jax.tree.flatten(position)
    keys = jax.random.split(key, len(leaves))
    spread = [
        jnp.concatenate([a[None], a + jax.random.normal(k, (2 * size + 1, *a.shape), a.dtype)])
        for k, a in zip(keys, leaves)
    ]
    return {"walkers": jax.tree.unflatten(structure, spread)}


def ensemble_step(key, state, h, estimator):
    batch_key, first_key, second_key = jax.random.split(key, 3)
    one = jax.tree.map(lambda a: a[0], state["walkers"])
    _, back = ravel_pytree(one)
    walkers = jax.vmap(lambda w: ravel_pytree(w)[0])(state["walkers"])
    count, size = walkers.shape
    energy = jax.vmap(lambda q: energy_of(estimator, batch_key)(back(q)))

    def stretch(key, moving, resting):
        partner_key, stretch_key, accept_key = jax.random.split(key, 3)
        partner = resting[jax.random.randint(partner_key, (len(moving),), 0, len(resting))]
        u = jax.random.uniform(stretch_key, (len(moving),), moving.dtype)
        z = ((STRETCH - 1) * u + 1) ** 2 / STRETCH  # density 1 / sqrt(z) from 1 / STRETCH to STRETCH
        proposal = partner + z[:, None] * (moving - partner)
        log_ratio = (size - 1) * jnp.log(z) + energy(moving) - energy(proposal)
        accept = jnp.log(jax.random.uniform(accept_key, (len(moving),), moving.dtype)) < log_ratio
        return jnp.where(accept[:, None], proposal, moving)

    first, second = walkers[: count // 2], walkers[count // 2 :]
    first = stretch(first_key, first, second)
    second = stretch(second_key, second, first)
    return {"walkers": jax.vmap(back)(jnp.concatenate([first, second]))}


ensemble = simple_sampler(
    ensemble_step,
    init=ensemble_init,
    position=lambda state: jax.tree.map(lambda a: a[0], state["walkers"]),
    claims=EXACT,
)

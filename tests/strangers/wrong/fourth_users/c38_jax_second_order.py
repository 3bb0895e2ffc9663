"""Underdamped splittings and thermostats, and replicas of them."""

import math

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

SECOND = Claims(Source("", "own"), StationaryLaw(order=2))
FRICTION = 1.0
RADIUS = 0.3


def gradient_at(key, x, estimator):
    return estimator.estimate(key, (), x)[0].gradient


def normals(key, like):
    leaves, tree = jax.tree.flatten(like)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(tree, [jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves, strict=True)])


def plus(a, factor, b):
    return jax.tree.map(lambda u, v: u + factor * v, a, b)


def with_momentum(key, position, estimator):
    return {"position": position, "momentum": normals(key, position)}


def noise_variance(rate):
    """1 - exp(-2 rate), without cancellation for a small rate."""
    return jnp.where(rate < 1e-4, rate * (1 - rate), 1 - jnp.exp(-2 * rate))


def obabo_step(key, state, h, estimator):
    first, second, before, after = jax.random.split(key, 4)
    x, p = state["position"], state["momentum"]
    kept, spread = jnp.exp(-FRICTION * h / 2), jnp.sqrt(noise_variance(FRICTION * h / 2))
    refresh = lambda k, q: jax.tree.map(lambda u, n: kept * u + spread * n, q, normals(k, q))
    p = refresh(before, p)
    p = plus(p, -h / 2, gradient_at(first, x, estimator))
    x = plus(x, h, p)
    p = plus(p, -h / 2, gradient_at(second, x, estimator))
    return {"position": x, "momentum": refresh(after, p)}


obabo = simple_sampler(obabo_step, init=with_momentum, claims=SECOND)


def fan_in(leaf):
    """The number of inputs of a kernel (.., in, out)."""
    return math.prod(leaf.shape[:-1]) if leaf.ndim > 1 else 1


def baoab_step(key, state, h, estimator):
    """BAOAB; the mass of a kernel is its number of inputs, at which all layers move alike."""
    first, second, noise_key = jax.random.split(key, 3)
    x, p = state["position"], state["momentum"]
    drift = lambda q, v: jax.tree.map(lambda a, b: a + h / 2 * b / fan_in(b), q, v)
    kept = jnp.exp(-FRICTION * h)
    mass = lambda leaf: leaf.shape[-2] if leaf.ndim > 1 else 1
    p = plus(p, -h / 2, gradient_at(first, x, estimator))
    x = drift(x, p)
    noise = normals(noise_key, p)
    p = jax.tree.map(lambda u, n: kept * u + jnp.sqrt((1 - kept**2) * mass(u)) * n, p, noise)
    x = drift(x, p)
    p = plus(p, -h / 2, gradient_at(second, x, estimator))
    return {"position": x, "momentum": p}


baoab = simple_sampler(baoab_step, init=with_momentum, claims=SECOND)


def smoothed_step(key, state, h, estimator):
    """A B O B A; the gradient is smoothed: it is taken at a perturbed point, which helps where the potential has kinks."""
    batch, noise_key, shift_key = jax.random.split(key, 3)
    x, p = state["position"], state["momentum"]
    kept = jnp.exp(-FRICTION * h)
    x = plus(x, h / 2, p)
    g = gradient_at(batch, plus(x, RADIUS * jnp.sqrt(h), normals(shift_key, x)), estimator)
    p = plus(p, -h / 2, g)
    p = jax.tree.map(lambda u, n: kept * u + jnp.sqrt(1 - kept**2) * n, p, normals(noise_key, p))
    p = plus(p, -h / 2, g)
    return {"position": plus(x, h / 2, p), "momentum": p}


smoothed = simple_sampler(smoothed_step, init=with_momentum, claims=SECOND)


def with_thermostat(key, position, estimator):
    return {**with_momentum(key, position, estimator), "xi": jnp.asarray(FRICTION)}


def sgnht_step(key, state, h, estimator):
    """SGNHT (Ding et al. 2014) for trees."""
    batch, noise_key = jax.random.split(key)
    x, p, xi = state["position"], state["momentum"], state["xi"]
    p = jax.tree.map(
        lambda u, g, n: u - h * g - h * xi * u + jnp.sqrt(2 * FRICTION * h) * n,
        p,
        gradient_at(batch, x, estimator),
        normals(noise_key, p),
    )
    x = plus(x, h, p)
    kinetic = [jnp.mean(u**2) for u in jax.tree.leaves(p)]
    return {"position": x, "momentum": p, "xi": xi + h * (sum(kinetic) / len(kinetic) - 1)}


sgnht = simple_sampler(sgnht_step, init=with_thermostat)


def nose_hoover_step(key, state, h, estimator):
    """Adaptive Langevin, B A (O D) A B: O is exact at the thermostat of the step, D moves the thermostat."""
    first, second, noise_key = jax.random.split(key, 3)
    x, p, xi = state["position"], state["momentum"], state["xi"]
    p = plus(p, -h / 2, gradient_at(first, x, estimator))
    x = plus(x, h / 2, p)
    small = jnp.abs(xi) < 1e-8
    rate = jnp.where(small, 1.0, xi)
    variance = FRICTION * jnp.where(small, 2 * h, -jnp.expm1(-2 * rate * h) / rate)
    p = jax.tree.map(lambda u, n: jnp.exp(-xi * h) * u + jnp.sqrt(variance) * n, p, normals(noise_key, p))
    numbers = sum(u.size for u in jax.tree.leaves(p))
    xi = xi + h * (sum(jnp.sum(u**2) for u in jax.tree.leaves(p)) / numbers - 1)
    x = plus(x, h / 2, p)
    p = plus(p, -h / 2, gradient_at(second, x, estimator))
    return {"position": x, "momentum": p, "xi": xi}


nose_hoover = simple_sampler(nose_hoover_step, init=with_thermostat, claims=SECOND)


def replicas(hot=2.0, swaps=1.0):
    """Replica exchange of two underdamped chains of unit mass, at temperatures 1 and hot; swaps is a rate in time."""

    def init(key, position, estimator):
        cold_key, hot_key = jax.random.split(key)
        hot_momentum = jax.tree.map(lambda u: hot**0.5 * u, normals(hot_key, position))
        cold = {"position": position, "momentum": normals(cold_key, position)}
        return {"cold": cold, "hot": {"position": position, "momentum": hot_momentum}}

    def langevin(key, chain, h, estimator, temperature):
        batch, noise_key = jax.random.split(key)
        kept = jnp.exp(-FRICTION * h)
        p = plus(chain["momentum"], -h, gradient_at(batch, chain["position"], estimator))
        spread = jnp.sqrt((1 - kept**2) * temperature)
        p = jax.tree.map(lambda u, n: kept * u + spread * n, p, normals(noise_key, p))
        return {"position": plus(chain["position"], h, p), "momentum": p}

    def step(key, state, h, estimator):
        cold_key, hot_key, batch, try_key, accept_key = jax.random.split(key, 5)
        cold = langevin(cold_key, state["cold"], h, estimator, 1.0)
        warm = langevin(hot_key, state["hot"], h, estimator, hot)
        energy = lambda chain: estimator.estimate(batch, (), chain["position"])[0].potential
        log_ratio = (1 - 1 / hot) * (energy(cold) - energy(warm))
        tried = jax.random.uniform(try_key) < 1 - jnp.exp(-swaps * h)
        swap = tried & (jnp.log(jax.random.uniform(accept_key)) < log_ratio)
        either = lambda a, b: jax.tree.map(lambda u, v: jnp.where(swap, u, v), a, b)
        return {"cold": either(warm, cold), "hot": either(cold, warm)}

    return simple_sampler(step, init=init, position=lambda state: state["cold"]["position"])

"""Underdamped samplers and a thermostat: factories that close over their constants."""

from collections import namedtuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

Phase = namedtuple("Phase", "position momentum")
Thermostatted = namedtuple("Thermostatted", "position momentum xi")
Buffered = namedtuple("Buffered", "position momentum noise")


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        structure, [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)]
    )


def add(a, scale, b):
    """a + scale * b, in the types of a."""
    return jax.tree.map(lambda x, y: (x + scale * y).astype(x.dtype), a, b)


def force(key, estimator, x):
    return estimator.estimate(key, (), x)[0].gradient


def make_layer_masses(friction):
    """BAOAB with the mass 1 + i for leaf i, momenta p ~ N(0, m), drift p / m.

    WRONG: the refreshments are closures made in a loop, all of which see the LAST mass: leaf i is heated with noise
    (1 - c^2) m_last for (1 - c^2) m_i. Correct: bind it, `lambda key, p, m=m: ..`. Momenta of `init` are right, a
    single leaf is right.
    Size, h -> 0: leaf i has the temperature m_last / m_i where leaves are independent: with two leaves of N(0, I) the
    first has variance 2, the second 1; with three 3, 1.5, 1.
    """

    def init(key, position, estimator):
        leaves, structure = jax.tree.flatten(normal_like(key, position))
        return Phase(position, jax.tree.unflatten(structure, [(1.0 + i) ** 0.5 * p for i, p in enumerate(leaves)]))

    def step(key, state, step_size, estimator):
        h = step_size
        first_key, noise_key, second_key = jax.random.split(key, 3)
        x, structure = jax.tree.flatten(state.position)
        p = jax.tree.leaves(state.momentum)
        masses = [1.0 + i for i in range(len(x))]
        c = jnp.exp(-friction * h)
        refresh = []
        for m in masses:
            refresh.append(lambda key, p: c * p + jnp.sqrt((1 - c**2) * m) * jax.random.normal(key, p.shape, p.dtype))

        def kick(key, x, p):
            slopes = jax.tree.leaves(force(key, estimator, jax.tree.unflatten(structure, x)))
            return [q - h / 2 * g for q, g in zip(p, slopes, strict=True)]

        def drift(x, p):
            return [y + h / 2 * q / mass for y, q, mass in zip(x, p, masses, strict=True)]

        old = x + p
        p = kick(first_key, x, p)
        x = drift(x, p)
        p = [f(k, q) for f, k, q in zip(refresh, jax.random.split(noise_key, len(p)), p, strict=True)]
        x = drift(x, p)
        p = kick(second_key, x, p)
        new = [a.astype(b.dtype) for a, b in zip(x + p, old, strict=True)]
        return Phase(jax.tree.unflatten(structure, new[: len(x)]), jax.tree.unflatten(structure, new[len(x) :]))

    return simple_sampler(step, init=init)


layer_masses = make_layer_masses(friction=1.0)


def make_thermostat(noise):
    """SGNHT: dp = -grad U dt - xi p dt + sqrt(2A) dW, dxi = (p.p / n - 1) dt.

    WRONG: n is the sum of `len(leaf)`, the number of ROWS. Correct: the number of entries d. The stationary law is
    exp(-(U + p^2 / 2) / T - d (xi - A / T)^2 / 2) with T = n / d, exactly.
    Scalars and vectors are right. Size, h -> 0: a matrix with c columns has T = 1 / c: N(0, I) on a 2 x 2 or 3 x 2
    matrix has variance 0.5.
    """

    def init(key, position, estimator):
        dtype = jnp.result_type(*jax.tree.leaves(position))
        return Thermostatted(position, normal_like(key, position), jnp.asarray(noise, dtype))

    def step(key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x, p, xi = state
        n = sum(len(q) if q.ndim else 1 for q in jax.tree.leaves(p))
        kinetic = lambda p: sum(jnp.sum(q**2) for q in jax.tree.leaves(p))
        p = add(p, -step_size * xi, p)
        p = add(p, -step_size, force(gradient_key, estimator, x))
        p = add(p, jnp.sqrt(2 * noise * step_size), normal_like(noise_key, p))
        x = add(x, step_size, p)
        return Thermostatted(x, p, (xi + step_size * (kinetic(p) / n - 1)).astype(xi.dtype))

    return simple_sampler(step, init=init)


thermostat = make_thermostat(noise=1.0)


def make_merged_obabo(friction):
    """OBABO; the last half refreshment of a step and the first one of the next "are one", so they share one draw.

    WRONG: two halves p <- c p + s e with the same e add up to the noise s^2 (1 + c)^2, c = exp(-friction h / 2), where
    1 - c^4 is due. Correct: a new draw for each half. The noise within any one step is independent: the draw is used
    again in the next.
    Size: temperature (1 + c)^2 / (1 + c^2), which tends to 2 as h -> 0: variance 2 for N(0, 1) in every coordinate.
    """

    def init(key, position, estimator):
        momentum_key, noise_key = jax.random.split(key)
        return Buffered(position, normal_like(momentum_key, position), normal_like(noise_key, position))

    def half_refresh(p, e, c):
        return jax.tree.map(lambda q, z: (c * q + jnp.sqrt(1 - c**2) * z).astype(q.dtype), p, e)

    def step(key, state, step_size, estimator):
        first_key, second_key, noise_key = jax.random.split(key, 3)
        c = jnp.exp(-friction * step_size / 2)
        x, p, noise = state
        p = half_refresh(p, noise, c)
        p = add(p, -step_size / 2, force(first_key, estimator, x))
        x = add(x, step_size, p)
        p = add(p, -step_size / 2, force(second_key, estimator, x))
        noise = normal_like(noise_key, x)
        return Buffered(x, half_refresh(p, noise, c), noise)

    return simple_sampler(step, init=init)


merged_obabo = make_merged_obabo(friction=1.0)


def make_mirrored(friction):
    """Underdamped Langevin on positive numbers, folded at zero: x <- |x + h p|.

    WRONG: the momentum keeps its sign. Correct: p <- -p where x + h p < 0. A particle that arrives at the wall stays
    within h |p| of it until the noise turns p: an atom at the wall as h -> 0. Nothing happens away from the wall, or
    where the density vanishes there.
    Size: half-Gaussian |N(0, 1)|: mean about 0.35 for 0.80, P(x < 0.1) about 0.5 for 0.08, at h = 0.02.
    """

    def init(key, position, estimator):
        return Phase(position, normal_like(key, position))

    def step(key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        c = jnp.exp(-friction * step_size)
        p = add(state.momentum, -step_size, force(gradient_key, estimator, state.position))
        p = jax.tree.map(lambda q, z: (c * q + jnp.sqrt(1 - c**2) * z).astype(q.dtype), p, normal_like(noise_key, p))
        return Phase(jax.tree.map(jnp.abs, add(state.position, step_size, p)), p)

    claims = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",))
    return simple_sampler(step, init=init, claims=claims)


mirrored = make_mirrored(friction=1.0)

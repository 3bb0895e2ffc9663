"""Class 20: coins with the wrong chance, lattices that lean, acceptances that forget something."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def energy(estimator, x):
    return estimator.estimate(jax.random.key(0), (), x)[0].potential


def _barker(chance):
    """Barker's rule with `chance(z g)` of keeping the sign."""

    def step(key, x, h, estimator):
        a, b, c = jax.random.split(key, 3)
        g = grad(estimator, a, x)
        z = jnp.sqrt(2 * h) * jax.random.normal(b, x.shape, x.dtype)
        keep = jax.random.uniform(c, x.shape, x.dtype) < chance(z * g)
        return jnp.where(keep, x + z, x - z)

    return simple_sampler(step)


# The sign is kept as if the chain were to climb.
barker_uphill = _barker(jax.nn.sigmoid)

# Half of the slope: a temperature of 2.
barker_half_slope = _barker(lambda a: jax.nn.sigmoid(-a / 2))

# min(1, exp) in place of the logistic has twice its slope: drift -2 h g, a temperature of 1 / 2.
barker_metropolis = _barker(lambda a: jnp.exp(jnp.minimum(-a, 0.0)))


def _signed(noise):
    def step(key, x, h, estimator):
        a, b = jax.random.split(key)
        return x - h * grad(estimator, a, x) + noise(b, x, h)

    return simple_sampler(step)


# sqrt h in place of sqrt 2 h: a temperature of 1 / 2.
signs_root_h = _signed(lambda k, x, h: jnp.sqrt(h) * jax.random.rademacher(k, x.shape, x.dtype))

# A centred coin has variance 1 / 4.
centred_coin = _signed(lambda k, x, h: jnp.sqrt(2 * h) * (jax.random.bernoulli(k, 0.5, x.shape) - 0.5).astype(x.dtype))

# The coin falls on heads in 55 of 100 tosses: a drift of 0.1 sqrt 2 h, which takes over as h -> 0.
biased_coin = _signed(
    lambda k, x, h: jnp.sqrt(2 * h) * jnp.where(jax.random.uniform(k, x.shape, x.dtype) < 0.55, 1.0, -1.0)
)


def _lattice(chance):
    """A walk on x + s Z with `chance(s g)` of going up."""

    def step(key, x, h, estimator):
        a, b = jax.random.split(key)
        s = jnp.sqrt(2 * h)
        up = jax.random.bernoulli(b, chance(s * grad(estimator, a, x)), x.shape)
        return jnp.where(up, x + s, x - s)

    return simple_sampler(step)


# Twice the slope: a temperature of 1 / 2.
lattice_twice = _lattice(lambda a: jax.nn.sigmoid(-2 * a))

# A coin that leans by one hundredth.
lattice_leans = _lattice(lambda a: jax.nn.sigmoid(-a) + 0.01)


def _metropolis(drift, ratio):
    """A proposal with `drift` h g, accepted with min(1, exp(ratio(drop, forth, back))); claimed to be exact."""

    def step(key, x, h, estimator):
        a, b = jax.random.split(key)
        g = grad(estimator, a, x)
        y = x - drift * h * g + jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
        f = grad(estimator, a, y)
        forth, back = jnp.sum((y - x + drift * h * g) ** 2), jnp.sum((x - y + drift * h * f) ** 2)
        log_ratio = ratio(energy(estimator, x) - energy(estimator, y), (forth - back) / (4 * h))
        return jnp.where(jax.random.uniform(b) < jnp.minimum(1.0, jnp.exp(log_ratio)), y, x)

    return simple_sampler(
        step, needs=("gradient", "potential"), claims=Claims(Source("", "Metropolis"), ExactLaw())
    )


# The densities of the proposal are left out.
mala_drop_alone = _metropolis(1.0, lambda drop, q: drop)

# Uphill is accepted and downhill tested.
walk_uphill = _metropolis(0.0, lambda drop, q: -drop)

# Half of the energy: a temperature of 2.
walk_half = _metropolis(0.0, lambda drop, q: drop / 2)

# The densities the wrong way round.
mala_inverted = _metropolis(1.0, lambda drop, q: drop - q)


@simple_sampler
def lazy_half(key, x, h, estimator):
    """Half of the steps rest and the others have twice the drift, but the noise of one: a temperature of 1 / 2."""
    a, b, c = jax.random.split(key, 3)
    y = x - 2 * h * grad(estimator, a, x) + jnp.sqrt(2 * h) * jax.random.normal(b, x.shape, x.dtype)
    return jnp.where(jax.random.bernoulli(c, 0.5), y, x)

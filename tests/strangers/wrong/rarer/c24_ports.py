"""Class 24: Metropolis kernels and ensembles, as ports and refactorings get them wrong."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("", "own"), ExactLaw())


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def energy(estimator, key, x):
    return estimator.estimate(key, (), x)[0].potential


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _log_uniform(key):
    return jnp.log(jax.random.uniform(key))


def _exact(step, **more):
    return simple_sampler(step, claims=EXACT, **more)


class Reported(NamedTuple):
    current: Any
    reported: Any


def _reports_proposals_step(key, s, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = s.current + jnp.sqrt(2 * h) * _normal(k2, s.current)
    accept = _log_uniform(k3) < energy(estimator, k1, s.current) - energy(estimator, k1, y)
    return Reported(jnp.where(accept, y, s.current), y)


# Random walk Metropolis that reports its proposals, accepted or not: the law is wider by the proposal.
reports_proposals = _exact(
    _reports_proposals_step, init=lambda key, x, e: Reported(x, x), position=lambda s: s.reported
)


class Weighted(NamedTuple):
    current: Any
    reported: Any


def _reports_accepted_step(key, s, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = s.current + jnp.sqrt(2 * h) * _normal(k2, s.current)
    a = jnp.exp(jnp.minimum(0.0, energy(estimator, k1, s.current) - energy(estimator, k1, y)))
    accept = jax.random.uniform(k3) < a
    return Weighted(jnp.where(accept, y, s.current), s.current * (1 - a) + y * a)


# "Rao-Blackwell": reports the mean of old and new position weighted by the acceptance, whose law is too narrow.
reports_means = _exact(_reports_accepted_step, init=lambda key, x, e: Weighted(x, x), position=lambda s: s.reported)


def _delayed_step(key, x, h, estimator):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    y = x + jnp.sqrt(2 * h) * _normal(k2, x)
    old = energy(estimator, k1, x)
    first = _log_uniform(k3) < old - energy(estimator, k1, y)
    z = x + 0.3 * jnp.sqrt(2 * h) * _normal(k4, x)
    second = _log_uniform(k5) < old - energy(estimator, k1, z)
    return jnp.where(first, y, jnp.where(second, z, x))


# Delayed rejection whose second stage is accepted as if it were the first.
delayed_rejection = _exact(_delayed_step)


def _surrogate_step(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = x + jnp.sqrt(2 * h) * _normal(k2, x)
    rough = lambda a: 0.5 * jnp.sum(a**2)
    first = _log_uniform(k3) < rough(x) - rough(y)
    second = _log_uniform(k4) < energy(estimator, k1, x) - energy(estimator, k1, y)
    return jnp.where(first & second, y, x)


# Delayed acceptance without the ratio of the surrogates in the second stage: the law is exp(-U - |x|^2 / 2).
surrogate_twice = _exact(_surrogate_step)


def _two_tries_step(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    tries = x + jnp.sqrt(2 * h) * jax.random.normal(k2, (2, *x.shape), x.dtype)
    energies = jax.vmap(lambda y: energy(estimator, k1, y))(tries)
    first = jax.random.uniform(k3) < jax.nn.sigmoid(energies[1] - energies[0])
    y, new = jnp.where(first, tries[0], tries[1]), jnp.where(first, energies[0], energies[1])
    return jnp.where(_log_uniform(k4) < energy(estimator, k1, x) - new, y, x)


# Two tries, one chosen by its weight, accepted by the ratio of a single try: too cold.
two_tries = _exact(_two_tries_step)


class Pair(NamedTuple):
    position: Any
    hot: Any


def _tempering(inverse):
    def step(key, s, h, estimator):
        k1, k2, k3, k4, k5, k6 = jax.random.split(key, 6)
        u = lambda a: energy(estimator, k1, a)

        def move(key, coin, x, beta):
            y = x + jnp.sqrt(2 * h / beta) * _normal(key, x)
            return jnp.where(_log_uniform(coin) < beta * (u(x) - u(y)), y, x)

        x, y = move(k2, k3, s.position, 1.0), move(k4, k5, s.hot, 0.5)
        swap = _log_uniform(k6) < inverse * 0.5 * (u(x) - u(y))
        return Pair(jnp.where(swap, y, x), jnp.where(swap, x, y))

    return step


# Parallel tempering (T = 1 and 2) whose exchange has the wrong sign.
tempering_sign = _exact(_tempering(-1.0), init=lambda key, x, e: Pair(x, x), position=lambda s: s.position)

# Parallel tempering (T = 1 and 2) whose exchange takes the difference of the inverse temperatures twice.
tempering_twice = _exact(_tempering(2.0), init=lambda key, x, e: Pair(x, x), position=lambda s: s.position)


class Walkers(NamedTuple):
    position: Any
    others: Any


def _stretch_step(key, s, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    z = (1 + jax.random.uniform(k2)) ** 2 / 2  # 1 / sqrt(z) between 1/2 and 2
    other = s.others[0]
    y = other + z * (s.position - other)
    accept = _log_uniform(k3) < energy(estimator, k1, s.position) - energy(estimator, k1, y)
    x = jnp.where(accept, y, s.position)
    w = other + jnp.sqrt(h) * _normal(k4, x)
    return Walkers(w, jnp.stack([x]))


# The stretch move of an ensemble without z^(d - 1), mixed with a walk that is always accepted.
stretch_move = _exact(
    _stretch_step, init=lambda key, x, e: Walkers(x, jnp.stack([x + 0.5])), position=lambda s: s.position
)


def _hmc_steps_of_gradient(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    first = estimator.estimate(k1, (), x)[0]
    r = _normal(k2, x)
    start = first.potential + jnp.sum(r**2) / 2
    size = h / jnp.sqrt(1 + jnp.mean(first.gradient**2))
    y, g = x, first.gradient
    for _ in range(3):
        r = r - size / 2 * g
        y = y + size * r
        new = estimator.estimate(k1, (), y)[0]
        g = new.gradient
        r = r - size / 2 * g
    accept = _log_uniform(k3) < start - new.potential - jnp.sum(r**2) / 2
    return jnp.where(accept, y, x)


# HMC with a step size from the gradient at the start: the way back has another one.
hmc_local_step = _exact(_hmc_steps_of_gradient)


def _barker_step(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    z = jnp.sqrt(2 * h) * _normal(k2, x)
    keep = jax.random.uniform(k3, x.shape) < jax.nn.sigmoid(-z * grad(estimator, k1, x))
    y = jnp.where(keep, x + z, x - z)
    return jnp.where(_log_uniform(k4) < energy(estimator, k1, x) - energy(estimator, k1, y), y, x)


# Barker's proposal, accepted by the ratio of the energies alone.
barker_alone = _exact(_barker_step)


def _one_coordinate_step(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    i = jax.random.randint(k2, (), 0, max(x.size - 1, 1))
    y = x.at[i].add(jnp.sqrt(2 * h) * jax.random.normal(k3, (), x.dtype))
    return jnp.where(_log_uniform(k4) < energy(estimator, k1, x) - energy(estimator, k1, y), y, x)


# One coordinate a step, its number from randint(0, d - 1): the last coordinate never moves (d = 1 is right).
last_never = _exact(_one_coordinate_step)


def _floor_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = x + jnp.sqrt(2 * h) * _normal(k2, x)
    a = jnp.exp(jnp.clip(energy(estimator, k1, x) - energy(estimator, k1, y), -10.0, 0.0))
    return jnp.where(jax.random.uniform(k3) < a, y, x)


# The exponent is clipped to [-10, 0] against overflow: an acceptance of at least 4.5e-5, however far uphill.
least_acceptance = _exact(_floor_step)


def _independence_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = 2.0 * _normal(k2, x)
    return jnp.where(_log_uniform(k3) < energy(estimator, k1, x) - energy(estimator, k1, y), y, x)


# Independence sampler without the ratio of the densities of the proposal: the law is exp(-U - |x|^2 / 8).
independence = _exact(_independence_step)


class Tuned(NamedTuple):
    position: Any
    mean: Any
    square: Any


def _tuned_mass_step(key, s, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x = s.position
    scale = jnp.sqrt(jnp.maximum(s.square - s.mean**2, 1e-3))
    y = x + jnp.sqrt(2 * h) * scale * _normal(k2, x)
    new = jnp.where(_log_uniform(k3) < energy(estimator, k1, x) - energy(estimator, k1, y), y, x)
    return Tuned(new, 0.9 * s.mean + 0.1 * new, 0.9 * s.square + 0.1 * new**2)


# Random walk Metropolis whose scale is the standard deviation of the last ten positions, for ever.
recent_scale = _exact(
    _tuned_mass_step, init=lambda key, x, e: Tuned(x, 0 * x, jnp.ones_like(x)), position=lambda s: s.position
)


class WithMomentum(NamedTuple):
    position: Any
    momentum: Any


def _ghmc_squared_step(key, s, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    r0 = 0.8 * s.momentum + 0.6 * _normal(k2, s.position)
    first = estimator.estimate(k1, (), s.position)[0]
    r = r0 - h / 2 * first.gradient
    y = s.position + h * r
    new = estimator.estimate(k1, (), y)[0]
    r = r - h / 2 * new.gradient
    # the momentum from before the refreshment is due nowhere
    fall = first.potential - new.potential + jnp.sum(s.momentum**2) / 2 - jnp.sum(r**2) / 2
    accept = _log_uniform(k3) < fall
    return WithMomentum(jnp.where(accept, y, s.position), jnp.where(accept, r, -r0))


# Generalised HMC that compares with the energy from before the refreshment.
ghmc_old_energy = _exact(
    _ghmc_squared_step,
    init=lambda key, x, e: WithMomentum(x, _normal(key, x)),
    position=lambda s: s.position,
)


def _mala_half_noise_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    old = estimator.estimate(k1, (), x)[0]
    y = x - h * old.gradient + jnp.sqrt(2 * h) * _normal(k2, x)
    new = estimator.estimate(k1, (), y)[0]
    # the Taylor form of the ratio of the proposals, without its term h (|g|^2 - |g'|^2) / 4
    ratio = old.potential - new.potential + jnp.sum((y - x) * (old.gradient + new.gradient)) / 2
    return jnp.where(_log_uniform(k3) < ratio, y, x)


# MALA whose ratio of proposals lacks the term h (|g|^2 - |g'|^2) / 4, which vanishes with h.
mala_lacks_h = _exact(_mala_half_noise_step)


def _random_length_step(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    first = estimator.estimate(k1, (), x)[0]
    r = _normal(k2, x)
    start = first.potential + jnp.sum(r**2) / 2
    steps = jnp.where(first.potential < 1.0, 1, 1 + jax.random.randint(k4, (), 0, 3))
    y, g, new = x, first.gradient, first
    for i in range(3):
        on = i < steps
        r1 = r - h / 2 * g
        y1 = y + h * r1
        new1 = estimator.estimate(k1, (), y1)[0]
        r1 = r1 - h / 2 * new1.gradient
        y, r, g = jnp.where(on, y1, y), jnp.where(on, r1, r), jnp.where(on, new1.gradient, g)
        new = new._replace(potential=jnp.where(on, new1.potential, new.potential)) if hasattr(new, "_replace") else new1
    new = estimator.estimate(k1, (), y)[0]
    return jnp.where(_log_uniform(k3) < start - new.potential - jnp.sum(r**2) / 2, y, x)


# HMC that takes short trajectories where the energy is low: the length belongs to the proposal.
hmc_length_of_energy = _exact(_random_length_step)

"""Class 14: Metropolis kernels that accept by the wrong ratio, or forget what has to be put back."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("", "own"), ExactLaw())


class Cached(NamedTuple):
    position: Any
    potential: Any


def _init(key, x, estimator):
    return Cached(x, estimator.estimate(key, (), x)[0].potential)


def _metropolis(step, needs=("gradient", "potential"), claims=EXACT):
    return simple_sampler(step, init=_init, position=lambda s: s.position, unpack=lambda s: s.position, pack=_init,
                          needs=needs, claims=claims)


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _mala_with(log_ratio):
    """MALA that accepts by `log_ratio(fall of U, log q(y, x) - log q(x, y), d)`."""

    def step(key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        x, u = state
        g = estimator.estimate(k1, (), x)[0].gradient
        y = x - h * g + jnp.sqrt(2 * h) * _normal(k2, x)
        new = estimator.estimate(k1, (), y)[0]
        forward = -jnp.sum((y - x + h * g) ** 2) / (4 * h)
        backward = -jnp.sum((x - y + h * new.gradient) ** 2) / (4 * h)
        log_u = jnp.log(jax.random.uniform(k3))
        accept = log_u < log_ratio(u - new.potential, backward - forward, x.size)
        return Cached(jnp.where(accept, y, x), jnp.where(accept, new.potential, u))

    return _metropolis(step)


# MALA without the ratio of the proposals.
mala_no_q = _mala_with(lambda fall, q, d: fall)

# MALA with the ratio of the proposals upside down.
mala_q_inverted = _mala_with(lambda fall, q, d: fall - q)

# MALA that takes the mean over coordinates of the log ratio of the proposals and the sum for U (d = 1 is right).
mala_mean_q = _mala_with(lambda fall, q, d: fall + q / d)


def _mala_updated_gradient_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, u = state
    g = estimator.estimate(k1, (), x)[0].gradient
    y = x - h * g + jnp.sqrt(2 * h) * _normal(k2, x)
    new = estimator.estimate(k1, (), y)[0]
    forward = -jnp.sum((y - x + h * g) ** 2) / (4 * h)
    backward = -jnp.sum((x - y + h * g) ** 2) / (4 * h)  # the gradient at y is due here
    accept = jnp.log(jax.random.uniform(k3)) < u - new.potential + backward - forward
    return Cached(jnp.where(accept, y, x), jnp.where(accept, new.potential, u))


# MALA whose reverse proposal uses the gradient at the start.
mala_reverse_gradient = _metropolis(_mala_updated_gradient_step)


def _hmc_with(kinetic, steps=3):
    """HMC that adds `kinetic(r)` to U."""

    def step(key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        x, u = state
        grad = lambda y: estimator.estimate(k2, (), y)[0].gradient
        r = _normal(k1, x)
        start = u + kinetic(r)
        y = x
        for _ in range(steps):
            r = r - h / 2 * grad(y)
            y = y + h * r
            r = r - h / 2 * grad(y)
        new = estimator.estimate(k2, (), y)[0].potential
        accept = jnp.log(jax.random.uniform(k3)) < start - new - kinetic(r)
        return Cached(jnp.where(accept, y, x), jnp.where(accept, new, u))

    return _metropolis(step)


# HMC without the kinetic energy.
hmc_no_kinetic = _hmc_with(lambda r: 0.0)

# HMC with r.r instead of r.r / 2.
hmc_kinetic_twice = _hmc_with(lambda r: jnp.sum(r**2))

# HMC with the mean over coordinates as kinetic energy (d = 1 is right).
hmc_kinetic_mean = _hmc_with(lambda r: 0.5 * jnp.mean(r**2))


def _hmc_full_kicks_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, u = state
    grad = lambda y: estimator.estimate(k2, (), y)[0].gradient
    r = _normal(k1, x)
    start = u + jnp.sum(r**2) / 2
    y = x
    for _ in range(3):
        r = r - h * grad(y)
        y = y + h * r
    new = estimator.estimate(k2, (), y)[0].potential
    accept = jnp.log(jax.random.uniform(k3)) < start - new - jnp.sum(r**2) / 2
    return Cached(jnp.where(accept, y, x), jnp.where(accept, new, u))


# HMC with full kicks (symplectic Euler): the map is not reversible, the test cannot make it so.
hmc_full_kicks = _metropolis(_hmc_full_kicks_step)


def _hmc_euler_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, u = state
    grad = lambda y: estimator.estimate(k2, (), y)[0].gradient
    r = _normal(k1, x)
    start = u + jnp.sum(r**2) / 2
    y = x
    for _ in range(3):
        y, r = y + h * r, r - h * grad(y)
    new = estimator.estimate(k2, (), y)[0].potential
    accept = jnp.log(jax.random.uniform(k3)) < start - new - jnp.sum(r**2) / 2
    return Cached(jnp.where(accept, y, x), jnp.where(accept, new, u))


# HMC with explicit Euler: neither volume nor reversibility.
hmc_explicit_euler = _metropolis(_hmc_euler_step)


class Phase(NamedTuple):
    position: Any
    momentum: Any
    potential: Any


def _phase_pack(key, z, estimator):
    return Phase(z[0], z[1], estimator.estimate(key, (), z[0])[0].potential)


def _ghmc_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, r, u = state
    c = jnp.exp(-h)
    r = c * r + jnp.sqrt(1 - c**2) * _normal(k1, x)
    grad = lambda y: estimator.estimate(k2, (), y)[0].gradient
    s = r - h / 2 * grad(x)
    y = x + h * s
    s = s - h / 2 * grad(y)
    new = estimator.estimate(k2, (), y)[0].potential
    accept = jnp.log(jax.random.uniform(k3)) < u + jnp.sum(r**2) / 2 - new - jnp.sum(s**2) / 2
    return Phase(jnp.where(accept, y, x), jnp.where(accept, s, r), jnp.where(accept, new, u))


# Generalised HMC (partial refreshment) that does not flip the momentum of a rejected move.
ghmc_no_flip = simple_sampler(
    _ghmc_step, init=lambda key, x, estimator: _phase_pack(key, (x, _normal(key, x)), estimator),
    position=lambda s: s.position, unpack=lambda s: (s.position, s.momentum), pack=_phase_pack,
    needs=("gradient", "potential"), claims=EXACT,
)


def _rwm_with(accept_of, scale=lambda x: 1.0):
    """Random walk Metropolis that accepts by `accept_of(uniform, fall of U)`."""

    def step(key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        x, u = state
        y = x + scale(x) * jnp.sqrt(2 * h) * _normal(k1, x)
        new = estimator.estimate(k2, (), y)[0].potential
        accept = accept_of(jax.random.uniform(k3), u - new)
        return Cached(jnp.where(accept, y, x), jnp.where(accept, new, u))

    return _metropolis(step, needs=("potential",))


# "not (log u > a)": a potential that is NaN is accepted, and so is everything from there on.
rwm_accepts_nan = _rwm_with(lambda u, fall: ~(jnp.log(u) > fall))

# exp forgotten: u < U - U'. Moves uphill are never accepted.
rwm_no_exp = _rwm_with(lambda u, fall: u < fall)

# Base 10: log10 u < U - U'. T = 2.3.
rwm_log10 = _rwm_with(lambda u, fall: jnp.log10(u) < fall)

# Clipped at 0.9 instead of 1 (never accept all): min(0.9, exp(a)).
rwm_clip_0_9 = _rwm_with(lambda u, fall: u < jnp.minimum(0.9, jnp.exp(fall)))

# A tolerance of 0.1 in the energy ("numerical noise"): falls of more than -0.1 are taken.
rwm_tolerance = _rwm_with(lambda u, fall: (jnp.log(u) < fall) | (fall > -0.1))

# Scale (1 + |x|) of the proposal depends on where it starts, without the ratio of the proposals.
rwm_local_scale = _rwm_with(lambda u, fall: jnp.log(u) < fall, scale=lambda x: 1 + jnp.sqrt(jnp.sum(x**2)))

# Barker's 1 / (1 + exp(-a)) with a / 2 by mistake: T = 2.
rwm_barker_half = _rwm_with(lambda u, fall: u < jax.nn.sigmoid(fall / 2))


def _rwm_stale_potential_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, u = state
    y = x + jnp.sqrt(2 * h) * _normal(k1, x)
    new = estimator.estimate(k2, (), y)[0].potential
    accept = jnp.log(jax.random.uniform(k3)) < u - new
    return Cached(jnp.where(accept, y, x), new)


# The potential of the proposal is kept when it was rejected: the next decision compares with the wrong one.
rwm_stale_potential = _metropolis(_rwm_stale_potential_step, needs=("potential",))


def _rwm_average_potential_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, u = state
    y = x + jnp.sqrt(2 * h) * _normal(k1, x)
    new = estimator.estimate(k2, (), y)[0].potential
    accept = jnp.log(jax.random.uniform(k3)) < u - new
    return Cached(jnp.where(accept, y, x), 0.9 * u + 0.1 * jnp.where(accept, new, u))


# The proposal is compared with a running average of the potential ("smoothed loss") instead of that of the position.
rwm_average_potential = _metropolis(_rwm_average_potential_step, needs=("potential",))


def _retry_step(key, state, h, estimator):
    x, u = state
    moved = jnp.asarray(False)
    for k in jax.random.split(key, 4):
        k1, k2, k3 = jax.random.split(k, 3)
        y = x + jnp.sqrt(2 * h) * _normal(k1, x)
        new = estimator.estimate(k2, (), y)[0].potential
        accept = (jnp.log(jax.random.uniform(k3)) < u - new) & ~moved
        x, u, moved = jnp.where(accept, y, x), jnp.where(accept, new, u), moved | accept
    return Cached(x, u)


# Tries again, up to four times, until a proposal is accepted: a rejected move must count as a step.
rwm_until_accepted = _metropolis(_retry_step, needs=("potential",))


def _coordinates_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, u = state
    moves = jnp.sqrt(2 * h) * _normal(k1, x).ravel()
    log_u = jnp.log(jax.random.uniform(k3))  # one for all coordinates
    for i in range(x.size):
        y = x.ravel().at[i].add(moves[i]).reshape(x.shape)
        new = estimator.estimate(k2, (), y)[0].potential
        accept = log_u < u - new
        x, u = jnp.where(accept, y, x), jnp.where(accept, new, u)
    return Cached(x, u)


# Metropolis within Gibbs with one uniform for the decisions about all coordinates (d = 1 is right).
gibbs_one_uniform = _metropolis(_coordinates_step, needs=("potential",))


def _simultaneous_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, u = state
    y = (x + jnp.sqrt(2 * h) * _normal(k1, x)).ravel()
    flat = x.ravel()
    rise = jnp.stack([estimator.estimate(k2, (), flat.at[i].set(y[i]).reshape(x.shape))[0].potential
                      for i in range(x.size)]) - u
    accept = jnp.log(jax.random.uniform(k3, flat.shape)) < -rise
    x = jnp.where(accept, y, flat).reshape(x.shape)
    return Cached(x, estimator.estimate(k2, (), x)[0].potential)


# All coordinates decide at once, each as if the others stayed: right for independent coordinates only.
gibbs_all_at_once = _metropolis(_simultaneous_step, needs=("potential",))


def _noisy_potential_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, u = state
    y = x + jnp.sqrt(2 * h) * _normal(k1, x)
    new = jnp.round(estimator.estimate(k2, (), y)[0].potential * 4) / 4
    accept = jnp.log(jax.random.uniform(k3)) < u - new
    return Cached(jnp.where(accept, y, x), jnp.where(accept, new, u))


# Energies of proposals are rounded to quarters: the law is exp of minus the rounded U, a staircase.
rwm_rounded_energy = _metropolis(_noisy_potential_step, needs=("potential",))


def minibatch_energy(target):
    """A factory: Metropolis by the potential of a minibatch, without a correction for its noise."""
    terms, n = target.terms, 2

    def energy(key, estimator, x):
        if terms is None:
            return estimator.estimate(key, (), x)[0].potential
        indices = jax.random.randint(key, (n,), 0, terms.size)
        batch = jax.tree.map(lambda a: jnp.asarray(a)[indices], terms.data)
        return terms.prior(x) + terms.size / n * jnp.sum(jax.vmap(terms.datum, (None, 0))(x, batch))

    def step(key, x, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        y = x + jnp.sqrt(2 * h) * _normal(k1, x)
        accept = jnp.log(jax.random.uniform(k3)) < energy(k2, estimator, x) - energy(k2, estimator, y)
        return jnp.where(accept, y, x)

    return simple_sampler(step, needs=("potential",))


def _independence_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, u = state
    y = jnp.exp(-h) * x + jnp.sqrt(1 - jnp.exp(-2 * h)) * _normal(k1, x)
    new = estimator.estimate(k2, (), y)[0].potential
    accept = jnp.log(jax.random.uniform(k3)) < u - new
    return Cached(jnp.where(accept, y, x), jnp.where(accept, new, u))


# pCN proposals that keep N(0, 1), accepted by the whole U: the law is exp(-U - |x|^2 / 2).
pcn_counts_prior_twice = _metropolis(_independence_step, needs=("potential",))

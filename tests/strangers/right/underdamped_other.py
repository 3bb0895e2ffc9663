"""Less usual samplers with a momentum, none adjusted by Metropolis: full and random refreshment of the momentum
(Andersen), friction that depends on the position, relativistic momenta, third-order Langevin, the bouncy
particle sampler by splitting, scan over leapfrog steps. Each composes (approximations of) flows that keep
exp(-U) times the law of the auxiliaries."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Composite, Source, StationaryLaw


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


class Phase(NamedTuple):
    """Position and velocity."""

    position: jax.Array
    velocity: jax.Array


def phase_sampler(step):
    """A sampler with a `Phase` state."""
    return simple_sampler(
        step,
        init=lambda key, position, estimator: Phase(position, _normal(key, position)),
        unpack=lambda s: s,
        pack=lambda key, z, estimator: Phase(*z),
    )


def leapfrog(key, x, v, h, estimator):
    """Half a kick, a drift, half a kick."""
    k1, k2 = jax.random.split(key)
    v = v - h / 2 * estimator.estimate(k1, (), x)[0].gradient
    x = x + h * v
    return x, v - h / 2 * estimator.estimate(k2, (), x)[0].gradient


def _full_refresh(key, x, step_size, estimator):
    momentum_key, loop_key = jax.random.split(key)
    body = lambda xv, k: (leapfrog(k, *xv, step_size, estimator), None)
    keys = jax.random.split(loop_key, 5)
    return jax.lax.scan(body, (x, _normal(momentum_key, x)), keys)[0][0]


# Unadjusted HMC: five leapfrog steps from a fresh momentum, no accept-reject; leapfrog errs by O(h^2).
unadjusted_hmc = simple_sampler(
    _full_refresh,
    claims=Claims(Source("", "unadjusted HMC, Bou-Rabee and Eberle"), StationaryLaw(order=2), Composite()),
)


def _andersen(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = leapfrog(k1, *state, h, estimator)
    refresh = jax.random.uniform(k2) < -jnp.expm1(-h)  # at rate 1
    return Phase(x, jnp.where(refresh, _normal(k3, v), v))


# Randomised HMC (Bou-Rabee and Sanz-Serna): leapfrog, and a fresh momentum with probability 1 - exp(-h).
random_refresh = phase_sampler(_andersen)


def _andersen_cond(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = leapfrog(k1, *state, h, estimator)
    refresh = jax.random.bernoulli(k2, 1 - jnp.exp(-2 * h))
    return Phase(x, jax.lax.cond(refresh, lambda: _normal(k3, v), lambda: v))


# The same at rate 2 by bernoulli, the draw inside lax.cond.
random_refresh_cond = phase_sampler(_andersen_cond)


def _andersen_one(key, state, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    x, v = leapfrog(k1, *state, h, estimator)
    i = jax.random.randint(k2, (), 0, x.size)
    refresh = -jax.random.exponential(k3, dtype=x.dtype) < jnp.log(-jnp.expm1(-h * x.size))
    fresh = v.ravel().at[i].set(jax.random.normal(k4, (), v.dtype)).reshape(v.shape)
    return Phase(x, jnp.where(refresh, fresh, v))


# Andersen's thermostat: one coordinate of the velocity, chosen by randint, is drawn afresh with probability 1 -
# exp(-h d).
andersen = phase_sampler(_andersen_one)


def _friction_of_position(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = state
    v = v - h / 2 * estimator.estimate(k1, (), x)[0].gradient
    x = x + h / 2 * v
    decay = jnp.exp(-h * (0.5 + 1 / (1 + x @ x)))
    v = decay * v + jnp.sqrt(1 - decay**2) * _normal(k2, v)
    x = x + h / 2 * v
    return Phase(x, v - h / 2 * estimator.estimate(k3, (), x)[0].gradient)


# BAOAB with a friction 1/2 + 1 / (1 + |x|^2): O keeps N(0, I) for every x, no Gamma is needed.
friction_of_position = phase_sampler(_friction_of_position)


def _speed(p, c=3.0):
    return p / jnp.sqrt(1 + p * p / c**2)


def _relativistic(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, p = state
    g = estimator.estimate(k1, (), x)[0].gradient
    p = p - h * (g + _speed(p)) + jnp.sqrt(2 * h) * _normal(k2, p)
    return Phase(x + h * _speed(p), p)


# Relativistic SGHMC: K(p) = sum c^2 sqrt(1 + p^2 / c^2), velocity K'(p), friction K'(p); the law is exp(-U - K).
relativistic = phase_sampler(_relativistic)


def _third_order(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, p, s = state["x"], state["p"], state["s"]
    p = p - h * estimator.estimate(k1, (), x)[0].gradient + h * s
    s = jnp.exp(-h) * (s - h * p) + jnp.sqrt(-jnp.expm1(-2 * h)) * _normal(k2, s)
    return {"x": x + h * p, "p": p, "s": s}


def _third_order_init(key, position, estimator):
    k1, k2 = jax.random.split(key)
    return {"x": position, "p": _normal(k1, position), "s": _normal(k2, position)}


# Third-order (generalised) Langevin: noise enters by s alone, dp = (-grad U + s) dt, ds = (-p - s) dt + sqrt(2) dW.
third_order = simple_sampler(
    _third_order,
    init=_third_order_init,
    position=lambda state: state["x"],
    unpack=lambda state: state,
    pack=lambda key, z, estimator: z,
)


def _bouncy(key, state, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    x, v = state
    x = x + h / 2 * v
    g = estimator.estimate(k1, (), x)[0].gradient
    bounce = jax.random.uniform(k2) > jnp.exp(-h * jnp.maximum(v @ g, 0.0))
    v = jnp.where(bounce, v - 2 * (v @ g) / jnp.maximum(g @ g, 1e-12) * g, v)
    x = x + h / 2 * v
    refresh = jax.random.bernoulli(k3, 1 - jnp.exp(-h))
    return Phase(x, jnp.where(refresh, _normal(k4, v), v))


# Bouncy particle sampler by the splitting drift, bounce, drift (Bertazzi, Dobson and Monmarche), refreshed at rate 1.
bouncy = phase_sampler(_bouncy)


@dataclass(frozen=True)
class SubsteppedLangevin:
    """`num_steps` OBABO steps of h / num_steps in one transition, by fori_loop; the law of OBABO at h / num_steps."""

    num_steps: int = 3
    friction: float = 1.0
    exact_friction: bool = True

    claims = Claims(Source("", "OBABO with inner steps"), StationaryLaw(order=1), Composite())

    def init(self, key, position, estimator):
        return Phase(position, _normal(key, position))

    def step(self, key, state, step_size, estimator):
        h = step_size / self.num_steps
        if self.exact_friction:
            decay = jnp.exp(-self.friction * h / 2)
        else:
            decay = 1 - self.friction * h / 2
        spread = jnp.sqrt(1 - decay**2)

        def inner(i, xv):
            k1, k2, k3 = jax.random.split(jax.random.fold_in(key, i), 3)
            x, v = xv
            v = decay * v + spread * _normal(k1, v)
            x, v = leapfrog(k2, x, v, h, estimator)
            return x, decay * v + spread * _normal(k3, v)

        return Phase(*jax.lax.fori_loop(0, self.num_steps, inner, tuple(state)))

    def position(self, state):
        return state.position

    def unpack(self, state):
        return state

    def pack(self, key, z, estimator):
        return Phase(*z)

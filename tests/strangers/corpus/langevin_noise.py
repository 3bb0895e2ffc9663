"""Overdamped Langevin steps whose noise has the wrong size, the wrong mean, or a step size of its own making.

Each bug is written anew from what its thread says, before and after the correction, in time h of the SDE: right is
x - h grad U + N(0, 2 h). The laws are derived for the potential k x^2 / 2; `bugs.toml` has them.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _langevin(move):
    """A sampler with the step `move(x, gradient, z, h)`, z a standard normal."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return move(x, estimator.estimate(k1, (), x)[0].gradient, _normal(k2, x), h)

    return simple_sampler(step)


def _half_gradient(deviation):
    """Welling and Teh's convention, a rate of 2 h and half of the gradient, with noise of `deviation(rate)`."""

    def move(x, g, z, h):
        rate = 2 * h
        return x - rate / 2 * g + deviation(rate) * z

    return _langevin(move)


# The scale of the normal is the rate itself, and a scale is a standard deviation.
edward_722_before = _half_gradient(lambda rate: rate)
edward_722_after = _half_gradient(jnp.sqrt)


def _shifted(mean):
    return _langevin(lambda x, g, z, h: x - h * g + jnp.sqrt(2 * h) * (mean + z))


# The second positional argument of the generator is the mean, and it was given the standard deviation.
tfp_50_before = _shifted(1.0)
tfp_50_after = _shifted(0.0)


def _noisy_loss(deviation):
    """Noise enters the loss, so that the rate multiplies it along with the gradient."""
    return _langevin(lambda x, g, z, h: x - h * (g + deviation(h) * z))


# 2 h in place of sqrt(2 / h), for a momentum of zero.
csgmcmc_1_before = _noisy_loss(lambda h: 2 * h)
csgmcmc_1_after = _noisy_loss(lambda h: jnp.sqrt(2 / h))


def _ibc_before(x, g, z, h):
    rate = 2 * h
    return x - rate * (0.5 * g + z)


# One rate in front of half of the gradient and of the noise.
ibc_6_before = _langevin(_ibc_before)
ibc_6_after = _langevin(lambda x, g, z, h: x - (h * g + jnp.sqrt(2 * h) * z))

# A transformation that is asked for noise of variance 2 / h in the gradient multiplies a normal by the variance.
optax_281_before = _noisy_loss(lambda h: 2 / h)
optax_281_after = _noisy_loss(lambda h: jnp.sqrt(2 / h))

# Noise that is meant for the gradient is added after the rate has multiplied it.
optax_337_before = _langevin(lambda x, g, z, h: x - h * g + jnp.sqrt(2 / h) * z)
optax_337_after = _langevin(lambda x, g, z, h: x - h * (g + jnp.sqrt(2 / h) * z))

PRECONDITIONER = 0.25


def _preconditioned(of_noise):
    return _langevin(lambda x, g, z, h: x - h * PRECONDITIONER * g + jnp.sqrt(2 * h * of_noise) * z)


# The preconditioner divides the gradient and not the noise; here it is a constant.
diffeqflux_695_before = _preconditioned(1.0)
diffeqflux_695_after = _preconditioned(PRECONDITIONER)

DATA = 50


def _mean_gradient(deviation):
    """The rate N h belongs to the gradient of the mean loss; the noise has `deviation(rate)`."""
    return _langevin(lambda x, g, z, h: x - DATA * h * (g / DATA) + deviation(DATA * h) * z)


# The noise is divided by N, for the sake of convergence; it is due for the root of N.
psgld_2_before = _mean_gradient(lambda rate: jnp.sqrt(2 * rate) / DATA)
psgld_2_after = _mean_gradient(lambda rate: jnp.sqrt(2 * rate / DATA))

FRICTION = 2.0


def _brownian(of_noise):
    return _langevin(lambda x, g, z, h: x - h / FRICTION * g + jnp.sqrt(2 * h) * of_noise * z)


# Brownian dynamics multiplies its noise by the root of the friction, which should divide it.
lammps_2948_before = _brownian(FRICTION**0.5)
lammps_2948_after = _brownian(FRICTION**-0.5)

# Noise is scaled by the learning rate (times a constant of the user) instead of its root.
gsplat_mcmc_before = _langevin(lambda x, g, z, h: x - h * g + h * z)
gsplat_mcmc_after = _langevin(lambda x, g, z, h: x - h * g + jnp.sqrt(2 * h) * z)


def _signal_to_noise(x, g, z, h):
    step = h * jnp.sum(z**2) / jnp.sum(g**2)
    return x - step * g + jnp.sqrt(2 * step) * z


# The step size is h |z|^2 / |grad U|^2: it depends on the state, and on the very noise that it multiplies.
score_sde_41_before = _langevin(_signal_to_noise)
score_sde_41_after = _langevin(lambda x, g, z, h: x - h * g + jnp.sqrt(2 * h) * z)


def _diffusion(coefficient):
    """x - h grad U + sqrt(2 h) coefficient(key, x) z."""

    def step(key, x, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        g = estimator.estimate(k1, (), x)[0].gradient
        return x - h * g + jnp.sqrt(2 * h) * coefficient(k2, x) * _normal(k3, x)

    return simple_sampler(step)


# The coefficient of the noise draws a normal itself: a product of two, with the right variance and a kurtosis of 9.
iap_diffusion_28_before = _diffusion(_normal)
iap_diffusion_28_after = _diffusion(lambda key, x: jnp.ones_like(x))


class Counted(NamedTuple):
    """Position and number of steps."""

    position: Any
    steps: Any


def _recalculated(factor):
    """The noise of every tenth step, the one after forces are calculated anew, is multiplied by `factor`."""

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x = state.position
        scale = jnp.where(state.steps % 10 == 0, factor, 1.0)
        move = h * estimator.estimate(k1, (), x)[0].gradient - jnp.sqrt(2 * h) * scale.astype(x.dtype) * _normal(k2, x)
        return Counted(x - move, state.steps + 1)

    return simple_sampler(
        step,
        init=lambda key, x, estimator: Counted(x, jnp.zeros((), jnp.int32)),
        position=lambda state: state.position,
    )


# A compensation for uniform random numbers, sqrt(3), outlived the generator that it was made for.
espresso_3341_before = _recalculated(3.0**0.5)
espresso_3341_after = _recalculated(1.0)

"""Samplers for positive numbers, boxes and discrete sites."""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw, simple_sampler


def softplus_step(key, x, step_size, estimator):
    """Langevin step of z, x = softplus(z), with the Jacobian of the transform."""
    gradient_key, noise_key = jax.random.split(key)
    g = estimator.estimate(gradient_key, (), x)[0].gradient
    h = jnp.asarray(step_size, x.dtype)
    z = x + jnp.log(-jnp.expm1(-x))
    log_jacobian_slope = 1 - jax.nn.sigmoid(x)
    drift = log_jacobian_slope - jax.nn.sigmoid(z) * g
    return jax.nn.softplus(z + h * drift + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape, x.dtype))


@dataclass(frozen=True)
class BoxLangevin:
    """Langevin steps in the unit box, brought back at the faces."""

    boundary: Literal["reflect", "wrap"] = "reflect"
    claims = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("box",))

    def step(self, key, x, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        g = estimator.estimate(gradient_key, (), x)[0].gradient
        h = jnp.asarray(step_size, x.dtype)
        y = x - h * g + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape, x.dtype)
        return y % 1 if self.boundary == "wrap" else 1 - jnp.abs(1 - y % 2)


def half_changes(x, gradient):
    """Minus half of the change of U, to first order, for every site (row) and new value (column)."""
    if gradient.ndim == x.ndim:
        return (x * gradient)[:, None]
    own = jnp.take_along_axis(gradient, x[:, None].astype(int), axis=1)
    same = jnp.arange(gradient.shape[1]) == x[:, None]
    return jnp.where(same, -jnp.inf, (own - gradient) / 2)


def gradient_gibbs_step(key, x, step_size, estimator):
    """Gibbs with gradients: one backward pass a step, a locally informed flip, and Metropolis-Hastings."""
    flip_key, accept_key, old_key, new_key = jax.random.split(key, 4)
    here = estimator.estimate(old_key, (), x)[0]
    logits = half_changes(x, here.gradient)
    index = jax.random.categorical(flip_key, logits.ravel())
    site, value = index // logits.shape[1], index % logits.shape[1]
    spins = here.gradient.ndim == x.ndim
    y = x.at[site].set(-x[site] if spins else value.astype(x.dtype))
    there = estimator.estimate(new_key, (), y)[0]
    back = half_changes(y, here.gradient)
    returning = 0 if spins else x[site].astype(int)
    forward = jax.nn.log_softmax(logits.ravel())[index]
    backward = back[site, returning] - jax.nn.logsumexp(back)
    log_ratio = here.potential - there.potential + backward - forward
    accept = jnp.log(jax.random.uniform(accept_key, (), logits.dtype)) < log_ratio
    return jnp.where(accept, y, x)


softplus = simple_sampler(
    softplus_step, claims=Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",))
)
gradient_gibbs = simple_sampler(
    gradient_gibbs_step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("finite",))
)

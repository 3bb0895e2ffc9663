"""Metropolis-adjusted Barker in the coordinates of a Cholesky factor, with noise of two modes and a random time step.

With C = L L^T a stationary covariance of a first-order autoregression over the flattened position, y = x + L w. Of each coordinate of w
the size comes from N(sqrt(1 - s^2), s^2), times a random scale that is drawn apart from the state, and the sign is minus that of the
gradient with the probability of the logistic function. The density of w is then (mu(w) + mu(-w)) sigma(-w c(x)), c = L^T grad U, and

    alpha = exp(U(x) - U(y)) prod_i sigma(w_i c_i(y)) / sigma(-w_i c_i(x)).

Now and then the signs of a random half of the coordinates are changed, which is its own inverse.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

log_sigmoid = jax.nn.log_sigmoid


def cholesky_of_autoregression(size, correlation, dtype):
    """The Cholesky factor of correlation^|i - j|, which is known."""
    rows, columns = jnp.arange(size)[:, None], jnp.arange(size)
    powers = jnp.asarray(correlation, dtype) ** jnp.abs(rows - columns)
    first = jnp.where(columns == 0, jnp.ones(size, dtype), (1 - correlation**2) ** 0.5)
    return jnp.tril(powers * first)


class BarkerMixture:
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, correlation=0.3, spread=0.3, jitter=0.4, mirror=0.1):
        if not 0 < correlation < 1:
            raise ValueError("correlation has to be in (0, 1)")
        if not 0 < spread < 1:
            raise ValueError("spread has to be in (0, 1)")
        if not 0 < mirror < 1:
            raise ValueError("mirror is a probability")
        self.correlation = correlation
        self.spread = spread
        self.jitter = jitter
        self.mirror = mirror

    def sizes(self, key, shape, dtype):
        mean = (1 - self.spread**2) ** 0.5
        return mean + self.spread * jax.random.normal(key, shape, dtype)

    def step(self, key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        which_key, kernel_key, accept_key, batch_key = jax.random.split(key, 4)
        factor = cholesky_of_autoregression(x.size, self.correlation, x.dtype)

        def at(q):
            estimate = estimator.estimate(batch_key, (), unravel(q))[0]
            return estimate.potential, factor.T @ ravel_pytree(estimate.gradient)[0]

        energy, slope = at(x)

        def barker(k):
            size_key, sign_key, time_key = jax.random.split(k, 3)
            time = step_size * jnp.exp(self.jitter * jax.random.normal(time_key, (), x.dtype))
            z = jnp.sqrt(2 * time) * self.sizes(size_key, x.shape, x.dtype)
            up = jnp.log(jax.random.uniform(sign_key, x.shape, x.dtype)) < log_sigmoid(-z * slope)
            w = jnp.where(up, z, -z)
            y = x + factor @ w
            energy_y, slope_y = at(y)
            correction = jnp.sum(log_sigmoid(w * slope_y) - log_sigmoid(-w * slope))
            return y, energy - energy_y + correction

        def mirrored(k):
            y = jnp.where(jax.random.bernoulli(k, 0.5, x.shape), -x, x)
            return y, energy - at(y)[0]

        which = jax.random.bernoulli(which_key, self.mirror).astype(int)
        y, log_ratio = jax.lax.switch(which, [barker, mirrored], kernel_key)
        accepted = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < log_ratio
        return unravel(jnp.where(accepted, y, x)), {"accepted": accepted, "kernel": which}

"""Random-walk Metropolis with delayed rejection in two stages.

Stage 1 proposes a bold move y1 ~ N(x, s1^2); where it is rejected, stage 2 proposes a timid one, y2 ~ N(x, s2^2), that is
accepted with

    alpha_2(x, y1, y2) = min(1, pi(y2) (1 - alpha_1(y2, y1)) / (pi(x) (1 - alpha_1(x, y1))))

Both proposals are symmetric. L. Tierney and A. Mira, Some adaptive Monte Carlo methods for Bayesian inference, Statistics
in Medicine 18 (1999). Scales are lengths of the target; there is no step size.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def _perturbed(key, position, scale):
    """The position plus normal noise of standard deviation `scale` in each coordinate."""
    leaves, structure = jax.tree.flatten(position)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten(
        [x + scale * jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)]
    )


def _select(flag, yes, no):
    return jax.tree.map(lambda a, b: jnp.where(flag, a, b), yes, no)


def _log1m(log_alpha):
    """log(1 - alpha) of a log acceptance probability, -inf at alpha = 1."""
    alpha = jnp.exp(log_alpha)
    return jnp.where(alpha < 1, jnp.log1p(-jnp.minimum(alpha, 1 - jnp.finfo(alpha.dtype).eps)), -jnp.inf)


def delayed_rejection(bold=1.5, shrink=2.0):
    """Stage 1 of scale bold / sqrt(d), stage 2 `shrink` times smaller."""
    if shrink <= 1:
        raise ValueError("the second stage has to be the smaller one")

    def step(key, position, step_size, estimator):
        del step_size
        batch_key, first_key, second_key, coin_key = jax.random.split(key, 4)

        def log_density(q):
            return -estimator.estimate(batch_key, (), q)[0].potential

        dimension = sum(leaf.size for leaf in jax.tree.leaves(position))
        scale = bold / dimension**0.5

        here = log_density(position)
        log_u = jnp.log(jax.random.uniform(coin_key, (2,), here.dtype))
        first = _perturbed(first_key, position, scale)
        there = log_density(first)
        log_alpha = jnp.minimum(0.0, there - here)
        taken = log_u[0] < log_alpha

        second = _perturbed(second_key, position, scale / shrink)
        nearby = log_density(second)
        log_alpha_back = jnp.minimum(0.0, there - nearby)
        log_ratio = nearby - here + _log1m(log_alpha_back) - _log1m(log_alpha)
        taken_late = log_u[1] < log_ratio

        return _select(taken, first, _select(taken_late, second, position))

    return simple_sampler(step, claims=Claims(Source("", "Tierney and Mira (1999)"), ExactLaw()))

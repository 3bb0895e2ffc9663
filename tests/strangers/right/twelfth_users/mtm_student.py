"""Multiple-try Metropolis with multivariate Student proposals.

From x, `tries` candidates x + scale t are drawn and one of them is taken with probability proportional to its weight; from there as many
reference points are drawn, of which x is one. The weights are those of Liu, Liang and Wong (2000), the density of the candidate, or the
locally balanced ones, the root of the ratio of densities (Gagnon, Maire and Zanella 2023). Both make pi(x) w(x, y) symmetric, so that
the acceptance is the ratio of the sums of weights.
"""

from typing import Literal

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def log_weights(kind, here, there):
    """log w(x, y) for U(x) = here and U(y) = there."""
    return (here - there) / 2 if kind == "balanced" else -there


def student(key, shape, dof, dtype):
    """Draws of a multivariate t law: one chi-squared number a row."""
    normal_key, gamma_key = jax.random.split(key)
    normal = jax.random.normal(normal_key, shape, dtype)
    mixing = jax.random.gamma(gamma_key, dof / 2, (shape[0], 1), dtype) * 2 / dof
    return normal / jnp.sqrt(mixing)


def multiple_try(tries: int = 4, dof: float = 5.0, weights: Literal["balanced", "density"] = "balanced"):
    if tries < 2 or dof <= 0:
        raise ValueError("two tries at least, and dof > 0")

    def step(key, position, step_size, estimator):
        candidate_key, choice_key, reference_key, accept_key, energy_key = jax.random.split(key, 5)
        x, unravel = ravel_pytree(position)
        scale = jnp.sqrt(2 * jnp.asarray(step_size, x.dtype))
        energy = lambda q: estimator.estimate(energy_key, (), unravel(q))[0].potential

        candidates = x + scale * student(candidate_key, (tries, x.size), dof, x.dtype)
        at_x, at_candidates = energy(x), jax.vmap(energy)(candidates)
        forward = log_weights(weights, at_x, at_candidates)
        chosen = jax.random.categorical(choice_key, forward)
        y, at_y = candidates[chosen], at_candidates[chosen]

        references = y + scale * student(reference_key, (tries - 1, x.size), dof, x.dtype)
        at_references = jnp.append(jax.vmap(energy)(references), at_x)
        backward = log_weights(weights, at_y, at_references)
        log_ratio = logsumexp(forward) - logsumexp(backward)
        accepted = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < log_ratio
        return unravel(jnp.where(accepted, y, x))

    return simple_sampler(step, claims=Claims(Source("", "Gagnon, Maire and Zanella 2023"), ExactLaw()))

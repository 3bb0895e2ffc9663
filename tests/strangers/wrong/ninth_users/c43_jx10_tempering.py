"""Parallel tempering with random-walk Metropolis moves.

A ladder of inverse temperatures 1, 1/2, 1/4, 1/8; every replica makes a random-walk move of a scale that suits its
temperature, then one random pair of neighbours is proposed for an exchange. Energies are kept in the state, so that a
step costs one evaluation for each replica. Exact at every step size.
"""
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

BETAS = (1.0, 0.5, 0.25, 0.125)


def energies_of(key, xs, estimator, unravel):
    return jax.vmap(lambda v: estimator.estimate(key, (), unravel(v))[0].potential)(xs)


def tempering():
    shape = {"unravel": lambda v: v}

    def init(key, position, estimator):
        flat, shape["unravel"] = ravel_pytree(position)
        xs = jnp.tile(flat, (len(BETAS), 1))
        return (xs, energies_of(key, xs, estimator, shape["unravel"]))

    def step(key, state, step_size, estimator):
        data_key, move_key, test_key, pair_key, swap_key = jax.random.split(key, 5)
        xs, energy = state
        betas = jnp.asarray(BETAS, xs.dtype)
        # moves within each temperature
        scale = jnp.sqrt(2 * step_size / betas).astype(xs.dtype)
        proposals = xs + scale[:, None] * jax.random.normal(move_key, xs.shape, xs.dtype)
        proposed = energies_of(data_key, proposals, estimator, shape["unravel"])
        accepted = jnp.log(jax.random.uniform(test_key, energy.shape, xs.dtype)) < betas * (energy - proposed)
        xs = jnp.where(accepted[:, None], proposals, xs)
        moved = jnp.where(accepted, proposed, energy)
        # exchange of one pair of neighbours
        i = jax.random.randint(pair_key, (), 0, len(BETAS) - 1)
        log_ratio = (betas[i] - betas[i + 1]) * (energy[i] - energy[i + 1])
        swap = jnp.log(jax.random.uniform(swap_key, dtype=xs.dtype)) < log_ratio
        order = jnp.arange(len(BETAS))
        order = jnp.where(swap, order.at[i].set(i + 1).at[i + 1].set(i), order)
        return (xs[order], moved[order])

    return simple_sampler(
        step,
        init=init,
        position=lambda state: shape["unravel"](state[0][0]),
        claims=Claims(Source("", "own"), ExactLaw()),
    )


# wrong: the exchange is tested with `energy`, from before the moves of this step, for `moved`.
# wrong: Variance 1.14 to 1.18 for 1 on N(0, 1) at h = 0.2 to 3, 1.05 at h = 0.03.

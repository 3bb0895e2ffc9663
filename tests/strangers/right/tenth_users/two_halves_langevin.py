"""An ensemble of Langevin proposals that take their metric from one another.

The walkers form two halves. Each walker of one half proposes a Langevin step that is preconditioned by the empirical
covariance of the other half, which stands still meanwhile, and decides by Metropolis' rule. The metric is a constant of
that decision, so the product of the targets is invariant and no divergence of the metric appears. Then the halves
change their roles.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def metric_root(walkers, ridge):
    """Cholesky factor of the covariance of `walkers` (n, d), with `ridge` on the diagonal."""
    count, dim = walkers.shape
    centred = walkers - jnp.mean(walkers, axis=0)
    covariance = centred.T @ centred / count + ridge * jnp.eye(dim, dtype=walkers.dtype)
    return jnp.linalg.cholesky(covariance)


def langevin_move(key, x, root, h, evaluate):
    """One step of MALA with the constant metric root rootT."""
    noise_key, accept_key = jax.random.split(key)
    xi = jax.random.normal(noise_key, x.shape, x.dtype)
    energy, slope = evaluate(x)
    y = x - h * root @ (root.T @ slope) + jnp.sqrt(2 * h) * root @ xi
    new_energy, new_slope = evaluate(y)
    # the noise that would lead from y back to x, in units of its root
    back = jnp.sqrt(h / 2) * root.T @ (slope + new_slope) - xi
    log_ratio = energy - new_energy + (jnp.sum(xi**2) - jnp.sum(back**2)) / 2
    log_u = jnp.log(jax.random.uniform(accept_key, (), x.dtype))
    return jnp.where(log_u < log_ratio, y, x)


class TwoHalves:
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, half=4, ridge=0.2, spread=0.5):
        if half < 2 or ridge <= 0 or spread < 0:
            raise ValueError("half >= 2, ridge > 0 and spread >= 0 are needed")
        self.half, self.ridge = half, ridge
        self.spread = spread  # of the first positions of the others around that of the first walker

    def init(self, key, position, estimator):
        flat, unravel = ravel_pytree(position)
        noise = jax.random.normal(key, (2 * self.half, flat.size), flat.dtype)
        walkers = flat + self.spread * noise.at[0].set(0)
        return {"walkers": jax.vmap(unravel)(walkers)}

    def position(self, state):
        return jax.tree.map(lambda a: a[0], state["walkers"])

    def step(self, key, state, step_size, estimator):
        batch_key, *move_keys = jax.random.split(key, 3)
        _, unravel = ravel_pytree(self.position(state))
        flat = jax.vmap(lambda w: ravel_pytree(w)[0])(state["walkers"])
        h = jnp.asarray(step_size, flat.dtype)

        def evaluate(x):
            estimate = estimator.estimate(batch_key, (), unravel(x))[0]
            return estimate.potential, ravel_pytree(estimate.gradient)[0]

        def move_half(key, moving, resting):
            root = metric_root(resting, self.ridge)
            keys = jax.random.split(key, self.half)
            return jax.vmap(lambda k, x: langevin_move(k, x, root, h, evaluate))(keys, moving)

        first, second = flat[: self.half], flat[self.half :]
        first = move_half(move_keys[0], first, second)
        second = move_half(move_keys[1], second, first)
        return {"walkers": jax.vmap(unravel)(jnp.concatenate([first, second]))}

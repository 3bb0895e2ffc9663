"""The walk move of Goodman and Weare's affine-invariant ensemble sampler, on all walkers.

A walker is moved by normal noise with the covariance of the ensemble,

    y = x_i + c sum_j Z_j (x_j - mean) / sqrt(n),   Z_j ~ N(0, 1),

and y is accepted with probability min(1, pi(y) / pi(x_i)). One step moves the walkers one after the other, so that each of them
sees where the others have gone. Directions, scales and correlations need no tuning, and no gradient is asked for; the size of
the ensemble grows with the dimension. The position is that of the first walker.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class WalkMove:
    """An ensemble of at least `walkers` walkers; `stretch` scales the proposals against 2.38 / sqrt(2 d)."""

    claims = Claims(Source("", "Goodman and Weare (2010), section 2, walk move"), ExactLaw())

    def __init__(self, walkers=12, stretch=1.0):
        if walkers < 4:
            raise ValueError("an ensemble has four walkers at least")
        if stretch <= 0:
            raise ValueError("stretch has to be positive")
        self.walkers = walkers
        self.stretch = stretch

    def _count(self, dimension):
        return max(self.walkers, 3 * dimension)

    def init(self, key, position, estimator):
        del estimator
        flat, unravel = ravel_pytree(position)
        others = jax.random.normal(key, (self._count(flat.size) - 1, flat.size), flat.dtype)
        return {"position": position, "others": jax.vmap(unravel)(others)}

    def step(self, key, state, step_size, estimator):
        del step_size
        batch_key, move_key, accept_key = jax.random.split(key, 3)
        first, unravel = ravel_pytree(state["position"])
        rest = jax.vmap(lambda q: ravel_pytree(q)[0])(state["others"])
        walkers = jnp.concatenate([first[None], rest])
        count, dimension = walkers.shape
        scale = self.stretch * 2.38 / (2 * dimension * count) ** 0.5

        def potential(q):
            return estimator.estimate(batch_key, (), unravel(q))[0].potential

        noise = jax.random.normal(move_key, (count, count), walkers.dtype)
        threshold = jnp.log(jax.random.uniform(accept_key, (count,), walkers.dtype))

        def move(i, carry):
            points, energies = carry
            spread = points - jnp.mean(points, axis=0)
            proposal = points[i] + scale * noise[i] @ spread
            energy = potential(proposal)
            accept = threshold[i] < energies[i] - energy
            points = points.at[i].set(jnp.where(accept, proposal, points[i]))
            return points, energies.at[i].set(jnp.where(accept, energy, energies[i]))

        energies = jax.vmap(potential)(walkers)
        walkers, _ = jax.lax.fori_loop(0, count, move, (walkers, energies))
        return {"position": unravel(walkers[0]), "others": jax.vmap(unravel)(walkers[1:])}

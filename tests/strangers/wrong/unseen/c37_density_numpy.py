"""Two small samplers in plain NumPy."""

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key


class DensityWalk:
    """Random-walk Metropolis that keeps the unnormalised density of the current point in its state."""

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())
    tiny = 1e-12  # never divide by zero

    def density(self, rng, position, estimator):
        estimate, _ = estimator.estimate(estimator_key(rng, estimator), (), position)
        return float(np.exp(-float(estimate.potential)))

    def init(self, rng, position, estimator):
        return {"position": position, "density": self.density(rng, position, estimator)}

    def step(self, rng, state, step_size, estimator):
        scale = (2 * float(step_size)) ** 0.5

        def shift(leaf):
            leaf = np.asarray(leaf)
            return leaf + scale * np.asarray(rng.standard_normal(leaf.shape)).astype(leaf.dtype)

        proposal = jax.tree.map(shift, state["position"])
        density = self.density(rng, proposal, estimator)
        ratio = density / (state["density"] + self.tiny)
        if rng.random() < ratio:
            return {"position": proposal, "density": density}
        return state


def box_muller(rng, size):
    """Standard normal numbers from uniform ones."""
    pairs = (size + 1) // 2
    radius = np.sqrt(-2.0 * np.log1p(-rng.random(pairs)))
    angle = 2.0 * np.pi * rng.random()
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size]


def polar_step(rng, position, step_size, estimator):
    """SGLD with its own Box-Muller generator."""
    gradient = estimator.estimate(estimator_key(rng, estimator), (), position)[0].gradient
    x, unravel = ravel_pytree(position)
    x, g, h = np.asarray(x), np.asarray(ravel_pytree(gradient)[0]), float(step_size)
    return unravel((x - h * g + np.sqrt(2 * h) * box_muller(rng, x.size)).astype(x.dtype))


polar = simple_sampler(polar_step, backend="host")

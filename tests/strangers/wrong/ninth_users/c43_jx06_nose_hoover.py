"""SGNHT: stochastic gradient Nose-Hoover thermostat (Ding et al. 2014) for the parameters of a network.

Parameters may be a list of layers or any pytree; one thermostat for all. With p the momentum and d the number of
degrees of freedom: dp = -grad U - xi p + sqrt(2 A) dW, dx = p, d xi = p.p / d - 1.
"""
from dataclasses import dataclass

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class NoseHoover:
    diffusion: float = 1.0

    def init(self, key, position, estimator):
        leaves, structure = jax.tree.flatten(position)
        keys = jax.random.split(key, len(leaves))
        momentum = [jax.random.normal(k, l.shape, l.dtype) for k, l in zip(keys, leaves)]
        return {
            "position": position,
            "momentum": jax.tree.unflatten(structure, momentum),
            "xi": jnp.asarray(self.diffusion, leaves[0].dtype),
        }

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), state["position"])[0].gradient
        x, structure = jax.tree.flatten(state["position"])
        p, g, xi = jax.tree.leaves(state["momentum"]), jax.tree.leaves(gradient), state["xi"]
        amplitude = jnp.sqrt(2 * self.diffusion * step_size)
        kinetic, dof = 0.0, 0
        for i, key in enumerate(jax.random.split(noise_key, len(x))):
            noise = jax.random.normal(key, x[i].shape, x[i].dtype)
            p[i] = p[i] - step_size * g[i] - step_size * xi * p[i] + amplitude.astype(x[i].dtype) * noise
            x[i] = x[i] + step_size * p[i]
            kinetic += jnp.sum(p[i] ** 2)
            dof += len(p[i]) if p[i].ndim else 1
        return {
            "position": jax.tree.unflatten(structure, x),
            "momentum": jax.tree.unflatten(structure, p),
            "xi": xi + step_size * (kinetic / dof - 1),
        }


# wrong: `len` of a matrix is its number of rows: dof of a (3, 2) matrix is 3 for 6, of a vector it is right. The
# wrong: thermostat holds p.p at dof, temperature dof / d: 0.5 for (3, 2): all variances half.

"""Mirror Langevin (Zhang, Peyre, Fadili and Pereyra 2020) with the mirror map phi(x) = sum cosh(x_i) on R^d.

    y = grad phi(x) = sinh x,    dy = -grad U(x) dt + sqrt(2 hess phi(x)) dW,    hess phi = cosh x = sqrt(1 + y^2)

Euler-Maruyama in the dual variable, which is what the state holds. Far out steps in x get short: good for steep potentials.
"""

import jax
import jax.numpy as jnp


class MirrorLangevin:
    def init(self, key, position, estimator):
        return jax.tree.map(jnp.sinh, position)

    def position(self, dual):
        return jax.tree.map(jnp.arcsinh, dual)

    def step(self, key, dual, step_size, estimator):
        grad_key, *noise_keys = jax.random.split(key, 1 + len(jax.tree.leaves(dual)))
        gradient = estimator.estimate(grad_key, (), self.position(dual))[0].gradient

        def euler(y, g, k):
            curvature = jnp.sqrt(1 + y**2)
            return y - step_size * g + jnp.sqrt(2 * step_size * curvature) * jax.random.normal(k, y.shape, y.dtype)

        keys = jax.tree.unflatten(jax.tree.structure(dual), noise_keys)
        return jax.tree.map(euler, dual, gradient, keys)

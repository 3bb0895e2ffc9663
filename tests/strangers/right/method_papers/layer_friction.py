"""Kinetic Langevin dynamics with a friction per layer that depends on the layer's weights (pytrees).

Friction of a leaf: gamma_l(q) = base * (1 + strength * ms / (1 + ms)), ms the mean square of the leaf. As it multiplies dW and p
but depends on q only, exp(-U - |p|^2/2) is invariant without any correction. Scheme A B O B A, where both kicks and the
friction share the midpoint, so that one gradient is enough.
"""

import jax
import jax.numpy as jnp


def normals(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


class LayerwiseFriction:
    def __init__(self, base=0.7, strength=2.0):
        self.base = base
        self.strength = strength

    def friction(self, leaf):
        ms = jnp.mean(jnp.square(leaf))
        return self.base * (1 + self.strength * ms / (1 + ms))

    def init(self, key, position, estimator):
        return {"position": position, "momentum": normals(key, position)}

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        half = step_size / 2
        axpy = lambda a: lambda y, x: y + a * x

        q = jax.tree.map(axpy(half), state["position"], state["momentum"])
        grad = estimator.estimate(gradient_key, (), q)[0].gradient
        p = jax.tree.map(axpy(-half), state["momentum"], grad)

        def ou(p, q, xi):
            decay = jnp.exp(-self.friction(q) * step_size).astype(p.dtype)
            return decay * p + jnp.sqrt(1 - decay**2) * xi

        p = jax.tree.map(ou, p, q, normals(noise_key, p))
        p = jax.tree.map(axpy(-half), p, grad)
        return {"position": jax.tree.map(axpy(half), q, p), "momentum": p}

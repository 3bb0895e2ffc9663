import jax
import jax.numpy as jnp


class LayerwiseSGNHT:
    """Stochastic gradient Nose-Hoover thermostat, with a thermostat for each layer (leaf) of the network."""

    def __init__(self, diffusion=1.0):
        self.diffusion = diffusion

    def init(self, key, position, estimator):
        return {
            "position": position,
            "momentum": self._noise(key, position),
            "xi": jax.tree.map(lambda w: jnp.full((), self.diffusion, w.dtype), position),
        }

    def step(self, key, state, h, estimator):
        key_grad, key_noise = jax.random.split(key)
        theta, p, xi = state["position"], state["momentum"], state["xi"]
        grad = estimator.estimate(key_grad, (), theta)[0].gradient
        scale = jnp.sqrt(2 * self.diffusion * h)

        p = jax.tree.map(lambda p, x, g, n: p - h * (g + x * p) + scale * n, p, xi, grad, self._noise(key_noise, p))
        theta = jax.tree.map(lambda w, p: w + h * p, theta, p)
        xi = jax.tree.map(lambda x, p: x + h * (self._temperature(p) - 1.0), xi, p)
        return {"position": theta, "momentum": p, "xi": xi}

    @staticmethod
    def _temperature(p):
        p = jnp.atleast_1d(p)
        return jnp.sum(p * p) / len(p)

    @staticmethod
    def _noise(key, tree):
        leaves, treedef = jax.tree.flatten(tree)
        keys = jax.random.split(key, len(leaves))
        return treedef.unflatten([jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves)])


thermostats = LayerwiseSGNHT()

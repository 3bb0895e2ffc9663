from dataclasses import dataclass

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Irreversible:
    """dx = -(I + alpha J) grad U dt + sqrt(2) dW with J = [[0, 1], [-1, 0]] between the two halves of x."""

    alpha: float = 0.5

    def init(self, key, position, estimator):
        return position

    def step(self, key, x, step_size, estimator):
        k1, k2 = jax.random.split(key)
        g = estimator.estimate(k1, (), x)[0].gradient
        f, k = g.ravel(), x.size // 2
        turned = jnp.concatenate([f[k : 2 * k], -f[:k], jnp.zeros(x.size - 2 * k, f.dtype)]).reshape(x.shape)
        noise = jax.random.normal(k2, x.shape, x.dtype)
        return x - step_size * (g + self.alpha * turned) + (2 * step_size) ** 0.5 * noise

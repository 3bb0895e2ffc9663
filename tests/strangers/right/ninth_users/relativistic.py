"""Relativistic kinetic Langevin (Lu et al. 2017), coordinate by coordinate, with the key carried in the state.

    K(p) = c^2 sum sqrt(1 + p_i^2 / c^2),     v(p) = K'(p) = p / sqrt(1 + p^2 / c^2)
    dx = v(p) dt,     dp = -grad U(x) dt - gamma v(p) dt + sqrt(2 gamma) dW
    scheme:  p' = p - h (g(x) + gamma v(p)) + sqrt(2 gamma h) z,     x' = x + h v(p')

Right: the recipe with H = U(x) + K(p), D = gamma in p and Q canonical keeps exp(-U - K); the marginal of x is exp(-U).  The
scheme is Euler-Maruyama with the new momentum, which has weak order 1.  Momenta are not normal, and speeds stay below c.
Object: Relativistic
"""
import jax
import jax.numpy as jnp


class Relativistic:
    def __init__(self, speed=1.5, gamma=1.0):
        if speed <= 0 or gamma <= 0:
            raise ValueError("speed and gamma are positive")
        self.speed, self.gamma = speed, gamma

    def velocity(self, p):
        return jax.tree.map(lambda a: a / jnp.sqrt(1 + (a / self.speed) ** 2), p)

    @staticmethod
    def _normals(key, like):
        leaves, treedef = jax.tree.flatten(like)
        return jax.tree.unflatten(
            treedef, [jax.random.normal(k, a.shape, a.dtype) for k, a in zip(jax.random.split(key, len(leaves)), leaves)]
        )

    def init(self, key, position, estimator):
        now, later = jax.random.split(key)
        return dict(position=position, momentum=self._normals(now, position), key=later)

    def step(self, key, state, step_size, estimator):
        del key  # all randomness is that of the chain's own key
        later, k_gradient, k_noise = jax.random.split(state["key"], 3)
        x, p, h = state["position"], state["momentum"], step_size
        g = estimator.estimate(k_gradient, (), x)[0].gradient
        z = self._normals(k_noise, x)
        p = jax.tree.map(
            lambda a, b, v, n: (a - h * (b + self.gamma * v) + jnp.sqrt(2 * self.gamma * h) * n).astype(a.dtype),
            p,
            g,
            self.velocity(p),
            z,
        )
        x = jax.tree.map(lambda a, v: (a + h * v).astype(a.dtype), x, self.velocity(p))
        return dict(position=x, momentum=p, key=later)

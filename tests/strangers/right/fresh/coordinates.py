"""Other coordinates: a mirror map, warped and whitened Langevin steps, polar coordinates, and states with a gauge, more
numbers than the position has. Exact where steps are tested, O(h) else."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source, StationaryLaw


def estimate(estimator, key, x):
    """(U, grad U)."""
    found = estimator.estimate(key, (), x)[0]
    return found.potential, found.gradient


def normal(key, x):
    """Normal of the shape of x."""
    return jax.random.normal(key, x.shape, x.dtype)


def invert(function, slope, y, steps=12):
    """x with function(x) = y, for 1 <= slope <= 2, by Newton's method from y / 2."""
    x = y / 2
    for _ in range(steps):
        x = x - (function(x) - y) / slope(x)
    return x


def _mirror(key, x, h, estimator):
    # Mirror Langevin (Zhang et al.): dY = -grad U dt + sqrt(2 phi'') dW for Y = phi'(X), phi = x^2 / 2 + log cosh x.
    # X has the generator of D = 1 / phi'' with its divergence, and the law exp(-U).
    a, b = jax.random.split(key)
    dual, curvature = lambda x: x + jnp.tanh(x), lambda x: 2 - jnp.tanh(x) ** 2
    y = dual(x) - h * estimate(estimator, a, x)[1] + jnp.sqrt(2 * h * curvature(x)) * normal(b, x)
    return invert(dual, curvature, y)


mirror_langevin = simple_sampler(_mirror)


class Warped:
    """Langevin for y with x = y + tanh(y), V(y) = U(x(y)) - sum log x'(y); the state is y."""

    def init(self, key, position, estimator):
        return invert(lambda y: y + jnp.tanh(y), lambda y: 2 - jnp.tanh(y) ** 2, position)

    def position(self, state):
        return state + jnp.tanh(state)

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        t = jnp.tanh(state)
        slope = 2 - t**2
        g = slope * estimate(estimator, a, state + t)[1] + 2 * t * (1 - t**2) / slope
        return state - step_size * g + jnp.sqrt(2 * step_size) * normal(b, state)


warped_langevin = Warped()


class Whitened:
    """BAOAB in eta, x_i = eta_i + eta_(i-1) / 2, the parameters of a non-centred model; state {eta, velocity}."""

    def _to_x(self, eta):
        return eta + 0.5 * jnp.concatenate([jnp.zeros_like(eta[:1]), eta[:-1]])

    def init(self, key, position, estimator):
        eta = jax.lax.scan(lambda old, x: (x - old / 2, x - old / 2), jnp.zeros_like(position[0]), position)[1]
        return {"eta": eta, "velocity": normal(key, position)}

    def position(self, state):
        return self._to_x(state["eta"])

    def _force(self, key, eta, estimator):
        g = estimate(estimator, key, self._to_x(eta))[1]
        return -(g + 0.5 * jnp.concatenate([g[1:], jnp.zeros_like(g[:1])]))

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        eta, v, h = state["eta"], state["velocity"], step_size
        v = v + h / 2 * self._force(a, eta, estimator)
        eta = eta + h / 2 * v
        v = jnp.exp(-h) * v + jnp.sqrt(1 - jnp.exp(-2 * h)) * normal(b, v)
        eta = eta + h / 2 * v
        return {"eta": eta, "velocity": v + h / 2 * self._force(c, eta, estimator)}


whitened = Whitened()


class Polar:
    """x = r w, r of either sign: Metropolis of r under |r|^(d-1), and of the direction, turned by a normal vector."""

    claims = Claims(Source("", "polar coordinates"), ExactLaw())
    needs = ("potential",)

    def init(self, key, position, estimator):
        r = jnp.sqrt(jnp.sum(position**2))
        up = jnp.zeros_like(position).ravel().at[0].set(1.0).reshape(position.shape)
        return {"direction": jnp.where(r > 0, position / jnp.where(r > 0, r, 1.0), up), "r": r}

    def position(self, state):
        return state["r"] * state["direction"]

    def step(self, key, state, step_size, estimator):
        a, b, c, d, e = jax.random.split(key, 5)
        u = lambda x: estimate(estimator, e, x)[0]
        log_p = lambda r, w: jax.scipy.special.xlogy(w.size - 1.0, jnp.abs(r)) - u(r * w)
        r, w = state["r"], state["direction"]
        new = r + jnp.sqrt(2 * step_size) * jax.random.normal(a, dtype=r.dtype)
        r = jnp.where(jnp.log(jax.random.uniform(b, dtype=r.dtype)) < log_p(new, w) - log_p(r, w), new, r)
        turned = w + jnp.sqrt(2 * step_size) * normal(c, w)
        turned = turned / jnp.sqrt(jnp.sum(turned**2))
        w = jnp.where(jnp.log(jax.random.uniform(d, dtype=r.dtype)) < u(r * w) - u(r * turned), turned, w)
        return {"direction": w, "r": r}


polar = Polar()


class DifferenceGauge:
    """x = a - b with both in the state: Langevin of exp(-U(a - b) - |a + b|^2 / 2), whose marginal of x is exp(-U)."""

    claims = Claims(Source("", "Langevin with a gauge"), StationaryLaw(order=1))

    def init(self, key, position, estimator):
        return {"a": position / 2, "b": -position / 2}

    def position(self, state):
        return state["a"] - state["b"]

    def step(self, key, state, step_size, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        a, b, h = state["a"], state["b"], step_size / 2
        g, gauge = estimate(estimator, k1, a - b)[1], a + b
        return {
            "a": a - h * (gauge + g) + jnp.sqrt(2 * h) * normal(k2, a),
            "b": b - h * (gauge - g) + jnp.sqrt(2 * h) * normal(k3, b),
        }


difference_gauge = DifferenceGauge()

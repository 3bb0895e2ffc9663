"""A stochastic-gradient Nose-Hoover chain with importance-weighted minibatches.

    dx = p dt,   dp = -(grad U + (friction + xi) p) dt + sqrt(2 friction) dW
    dxi  = ((|p|^2 - d) / Q - zeta xi) dt
    dzeta = ((Q xi^2 - 1) / R - rate zeta) dt + sqrt(2 rate / R) dB

keeps exp(-U - |p|^2/2 - Q xi^2/2 - R zeta^2/2). Q grows with the dimension d. Data are drawn with replacement, with
probabilities that follow the size of their gradients where the run began, and weighted by the inverse of them.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


def gradient_sizes(terms, x, data):
    slopes = jax.vmap(jax.grad(terms.datum), (None, 0))(x, data)
    return jnp.sqrt(sum(jnp.sum(a.reshape(terms.size, -1) ** 2, axis=1) for a in jax.tree.leaves(slopes)))


@dataclass(frozen=True)
class ImportanceThermostat:
    target: Any
    batch: int = 4
    evenness: float = 0.5  # share of a uniform law in the probabilities, relative to the rest
    friction: float = 1.0
    inertia: float = 1.0
    rate: float = 1.0

    def __post_init__(self):
        if self.batch < 1 or min(self.evenness, self.friction, self.inertia, self.rate) <= 0:
            raise ValueError("all options have to be positive")

    def init(self, key, position, estimator):
        p_key, xi_key, zeta_key = jax.random.split(key, 3)
        flat, _ = ravel_pytree(position)
        spread = self.inertia**-0.5
        state = {
            "position": position,
            "momentum": jax.random.normal(p_key, flat.shape, flat.dtype),
            "xi": spread * flat.size**-0.5 * jax.random.normal(xi_key, (), flat.dtype),
            "zeta": spread * jax.random.normal(zeta_key, (), flat.dtype),
        }
        if self.target.terms is not None:
            state["log_weights"] = self.log_probabilities(position).astype(flat.dtype)
        return state

    def log_probabilities(self, position):
        terms = self.target.terms
        sizes = gradient_sizes(terms, position, jax.tree.map(jnp.asarray, terms.data))
        return jax.nn.log_softmax(jnp.log(self.evenness + sizes / (jnp.mean(sizes) + 1e-9)))

    def gradient(self, key, state, x, estimator):
        terms = self.target.terms
        if terms is None:
            return estimator.estimate(key, (), x)[0].gradient
        index = jax.random.categorical(key, state["log_weights"], shape=(self.batch,))
        weights = jnp.exp(-state["log_weights"][index]) / self.batch
        rows = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)

        def estimate(q):
            return terms.prior(q) + jnp.sum(weights * jax.vmap(terms.datum, (None, 0))(q, rows))

        return jax.grad(estimate)(x)

    def chain(self, p, xi, zeta, time):
        """The two thermostats, while p stands still: a palindrome."""
        mass, top = self.inertia * p.size, self.inertia
        zeta = zeta + time / 2 * (mass * xi**2 - 1) / top
        xi = jnp.exp(-time / 2 * zeta) * xi
        xi = xi + time * (jnp.sum(p**2) - p.size) / mass
        xi = jnp.exp(-time / 2 * zeta) * xi
        zeta = zeta + time / 2 * (mass * xi**2 - 1) / top
        return xi, zeta

    def step(self, key, state, step_size, estimator):
        batch_key, p_key, zeta_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state["position"])
        h = jnp.asarray(step_size, x.dtype)
        p, xi, zeta = state["momentum"], state["xi"], state["zeta"]

        x = x + h / 2 * p
        xi, zeta = self.chain(p, xi, zeta, h / 2)
        p = jnp.exp(-h / 2 * xi) * p
        slope, _ = ravel_pytree(self.gradient(batch_key, state, unravel(x), estimator))
        p = p - h / 2 * slope

        kept = jnp.exp(-self.friction * h)
        p = kept * p + jnp.sqrt(1 - kept**2) * jax.random.normal(p_key, p.shape, p.dtype)
        kept = jnp.exp(-self.rate * h)
        zeta = kept * zeta + jnp.sqrt((1 - kept**2) / self.inertia) * jax.random.normal(zeta_key, (), p.dtype)

        p = p - h / 2 * slope
        p = jnp.exp(-h / 2 * xi) * p
        xi, zeta = self.chain(p, xi, zeta, h / 2)
        x = x + h / 2 * p
        return {**state, "position": unravel(x), "momentum": p, "xi": xi, "zeta": zeta}

"""NumPy samplers that follow stochastic dynamics: Langevin variants, minibatches, a zig-zag process."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import simple_sampler


class BufferedLangevin:
    """ULA with normals that are drawn a block at a time, which is faster than a call in every step."""

    backend = "host"

    def __init__(self, block=32):
        self.block = block
        self._buffer = None
        self._next = 0

    def _normals(self, rng, shape):
        if self._buffer is None or self._buffer.shape[1:] != shape:
            self._buffer = rng.standard_normal((self.block, *shape))
            self._next = 0
        z = self._buffer[self._next]
        self._next = (self._next + 1) % self.block
        return z

    def init(self, rng, position, estimator):
        return {"position": np.array(position)}

    def step(self, rng, state, h, estimator):
        x = state["position"]
        g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        return {"position": x - h * g + math.sqrt(2 * h) * self._normals(rng, x.shape)}


def _sgld(rng, w, lr, estimator):
    grad = np.asarray(estimator.estimate(rng, (), w)[0].gradient)
    noise = rng.standard_normal(w.shape[-1:]) * np.sqrt(2 * lr)
    return w - lr * grad + noise


weight_sgld = simple_sampler(_sgld, backend="host")


class AntitheticLangevin:
    """Langevin steps with antithetic pairs of noises, for a smaller variance of averages."""

    backend = "host"

    def init(self, rng, position, estimator):
        position = np.array(position)
        return {"position": position, "noise": np.zeros_like(position), "second": False}

    def step(self, rng, state, h, estimator):
        x = state["position"]
        g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        xi = -state["noise"] if state["second"] else rng.standard_normal(x.shape)
        return {"position": x - h * g + np.sqrt(2 * h) * xi, "noise": xi, "second": not state["second"]}


class MassiveLangevin:
    """Underdamped Langevin dynamics of particles with a mass, in the order O B A B."""

    backend = "host"

    def __init__(self, friction=1.0, mass=1.0):
        if friction <= 0 or mass <= 0:
            raise ValueError("friction and mass must be positive")
        self.friction, self.mass = friction, mass

    def init(self, rng, position, estimator):
        position = np.array(position)
        return {"position": position, "momentum": math.sqrt(self.mass) * rng.standard_normal(position.shape)}

    def step(self, rng, state, h, estimator):
        x, p = state["position"], state["momentum"]
        force = lambda y: -np.asarray(estimator.estimate(rng, (), y)[0].gradient)
        decay = math.exp(-self.friction * h / self.mass)
        p = decay * p + math.sqrt(1 - decay**2) * rng.standard_normal(p.shape)
        p = p + 0.5 * h * force(x)
        x = x + h * p / self.mass
        p = p + 0.5 * h * force(x)
        return {"position": x, "momentum": p}


def minibatch_sgld(target):
    """SGLD in NumPy with minibatches of sixty per cent of the data."""
    terms = target.terms
    if terms is not None:
        n = math.ceil(0.6 * terms.size)
        scale = terms.size // n
        prior_grad = jax.jit(jax.grad(terms.prior))
        batch_grad = jax.jit(jax.grad(lambda q, batch: jnp.sum(jax.vmap(terms.datum, (None, 0))(q, batch))))

    def step(rng, theta, h, estimator):
        if terms is None:
            g = np.asarray(estimator.estimate(rng, (), theta)[0].gradient)
        else:
            index = rng.integers(0, terms.size, n)
            batch = jax.tree.map(lambda a: np.asarray(a)[index], terms.data)
            g = np.asarray(prior_grad(theta)) + scale * np.asarray(batch_grad(theta, batch))
        return theta - h * g + np.sqrt(2 * h) * rng.standard_normal(theta.shape)

    return simple_sampler(step, backend="host")


class ZigZag:
    """The zig-zag process (Bierkens et al., 2019) in time steps of h."""

    backend = "host"

    def init(self, rng, position, estimator):
        position = np.array(position, dtype=float)
        velocity = np.where(rng.random(position.shape) < 0.5, -1.0, 1.0)
        return {"position": position, "velocity": velocity}

    def step(self, rng, state, h, estimator):
        x, v = state["position"], state["velocity"]
        x = x + h * v
        grad = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        rates = np.maximum(0.0, np.sum(v * grad))
        flips = rng.random(x.shape) < -np.expm1(-h * rates)
        return {"position": x, "velocity": np.where(flips, -v, v)}

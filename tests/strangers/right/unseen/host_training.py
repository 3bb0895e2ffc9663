"""Samplers for networks as written outside of JAX: two in torch, one in NumPy with batches of its own."""

import jax
import numpy as np
import torch
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler


def to_tensor(array):
    return torch.tensor(np.asarray(array))


class HeavyBall:
    """SGD with momentum 0.5 and noise: buffer <- mu buffer - (1 - mu) (h g - sqrt(2 h) n), x <- x + buffer."""

    backend = "host"
    mu = 0.5

    def init(self, rng, position, oracle):
        return {"x": to_tensor(position), "buffer": torch.zeros_like(to_tensor(position))}

    def position(self, state):
        return state["x"].numpy().copy()

    def step(self, rng, state, h, oracle):
        x, buffer, h = state["x"], state["buffer"], float(h)
        g = to_tensor(oracle.estimate(estimator_key(rng, oracle), (), x.numpy().copy())[0].gradient)
        noise = torch.tensor(rng.standard_normal(tuple(x.shape)), dtype=x.dtype)
        buffer = self.mu * buffer - (1 - self.mu) * (h * g - (2 * h) ** 0.5 * noise)
        return {"x": x + buffer, "buffer": buffer}


class Averaged:
    """A network's weights and their running mean, as in stochastic weight averaging."""

    def __init__(self, weights):
        self.weights, self.mean, self.seen = weights, weights.clone(), 0


@torch.no_grad()
def _swa_step(rng, state, h, oracle):
    """SGLD in place; the running mean of the weights is a record that no step reads."""
    w = state.weights
    g = to_tensor(oracle.estimate(estimator_key(rng, oracle), (), w.numpy().copy())[0].gradient)
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    noise = torch.randn(w.shape, generator=generator, dtype=w.dtype)
    w.add_(g, alpha=-float(h)).add_(noise, alpha=(2 * float(h)) ** 0.5)
    state.seen += 1
    state.mean.add_((w - state.mean) / (state.seen + 1))
    return state


swa = simple_sampler(
    _swa_step,
    init=lambda rng, position, oracle: Averaged(to_tensor(position)),
    position=lambda state: state.weights.numpy().copy(),
    backend="host",
)


def centred(target):
    """SGLD with control variates at a fixed point and three data a step, in NumPy; SGLD where there are no data."""
    terms = target.terms
    if terms is not None:
        row = jax.grad(lambda x, i: terms.datum(x, jax.tree.map(lambda a: jax.numpy.asarray(a)[i], terms.data)))
        rows = jax.jit(jax.vmap(lambda x, i: ravel_pytree(row(x, i))[0], (None, 0)))
        prior = jax.jit(lambda x: ravel_pytree(jax.grad(terms.prior)(x))[0])
        table = np.asarray(rows(target.example, np.arange(terms.size)))

    def step(rng, position, h, oracle):
        x, back = ravel_pytree(position)
        if terms is None:
            g = ravel_pytree(oracle.estimate(estimator_key(rng, oracle), (), position)[0].gradient)[0]
        else:
            batch = rng.integers(0, terms.size, size=3)
            change = np.asarray(rows(position, batch)) - table[batch]
            g = np.asarray(prior(position)) + table.sum(axis=0) + terms.size * change.mean(axis=0)
        moved = np.asarray(x) - float(h) * np.asarray(g) + np.sqrt(2 * float(h)) * rng.standard_normal(x.shape)
        return jax.tree.map(np.asarray, back(moved.astype(x.dtype)))

    return simple_sampler(step, backend="host")

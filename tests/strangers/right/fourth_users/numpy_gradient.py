"""Samplers of gradients in NumPy: two with minibatches of their own, two with draws that are not normal."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import simple_sampler


def slopes(terms):
    """Gradients of the prior and of a weighted sum over rows, compiled once for a target."""
    of_prior = jax.jit(jax.grad(terms.prior))
    weighted = lambda q, rows, weights: jnp.sum(weights * jax.vmap(terms.datum, (None, 0))(q, rows))
    return of_prior, jax.jit(jax.grad(weighted))


def poisson_batches(target):
    """SGLD in which each datum takes part with probability 0.4, on its own, with weight 1 / 0.4."""
    terms = target.terms
    chance = 0.4
    if terms is not None:
        of_prior, of_data = slopes(terms)

    def gradient(rng, x, estimator):
        if terms is None:
            return estimator.estimate(rng, (), x)[0].gradient
        weights = np.where(rng.random(terms.size) < chance, 1 / chance, 0.0)
        return jax.tree.map(lambda a, b: np.asarray(a + b), of_prior(x), of_data(x, terms.data, weights))

    def step(rng, x, h, estimator):
        move = lambda a, g: a - h * g + np.sqrt(2 * h) * rng.standard_normal(np.shape(a))
        return jax.tree.map(move, x, gradient(rng, x, estimator))

    return simple_sampler(step, backend="host")


def shuffled_epochs(target):
    """SGLD that goes through the data in an order that is shuffled anew before each epoch."""
    terms = target.terms
    size = 1 if terms is None else terms.size
    batch = min(3, size)
    if terms is not None:
        of_prior, of_data = slopes(terms)

    def init(rng, position, estimator):
        return {"position": position, "order": rng.permutation(size), "cursor": 0}

    def step(rng, state, h, estimator):
        x, order, cursor = state["position"], state["order"].copy(), state["cursor"]
        if terms is None:
            g = estimator.estimate(rng, (), x)[0].gradient
        else:
            if cursor + batch > size:  # the rows that are left over wait for the next order
                rng.shuffle(order)
                cursor = 0
            chosen = order[cursor : cursor + batch]
            cursor += batch
            rows = jax.tree.map(lambda a: np.asarray(a)[chosen], terms.data)
            weights = np.full(batch, size / batch)
            g = jax.tree.map(lambda a, b: np.asarray(a + b), of_prior(x), of_data(x, rows, weights))
        move = lambda a, b: a - h * b + np.sqrt(2 * h) * rng.standard_normal(np.shape(a))
        return {"position": jax.tree.map(move, x, g), "order": order, "cursor": cursor}

    return simple_sampler(step, init=init, backend="host")


@dataclass
class Phase:
    position: np.ndarray
    momentum: np.ndarray


class SignedMomentum:
    """Underdamped Langevin (half drift, kick, friction, half drift) whose noise is a vector of signs."""

    backend = "host"

    def __init__(self, friction=1.5):
        if not friction > 0:
            raise ValueError("friction has to be positive")
        self.friction = friction

    def init(self, rng, position, estimator):
        return Phase(np.array(position), 2.0 * rng.integers(0, 2, np.shape(position)) - 1.0)

    def step(self, rng, state, h, estimator):
        x = state.position + h / 2 * state.momentum
        p = state.momentum - h * estimator.estimate(rng, (), x)[0].gradient
        kept = np.exp(-self.friction * h)
        signs = np.sign(rng.uniform(-1.0, 1.0, x.shape))
        p = kept * p + np.sqrt(1 - kept**2) * signs
        return Phase(x + h / 2 * p, p)


class OneAtATime:
    """Langevin of one coordinate in each step, d times as long; its noise is a signed root of a gamma variable."""

    backend = "host"

    def step(self, rng, x, h, estimator):
        gradient = estimator.estimate(rng, (), x)[0].gradient
        i = rng.integers(x.size)
        time = x.size * h
        noise = rng.choice([-1.0, 1.0]) * np.sqrt(rng.gamma(2.0, 0.5))  # mean 0, variance 2 x 0.5 = 1, symmetric
        y = x.copy()
        y.flat[i] += -time * gradient.flat[i] + np.sqrt(2 * time) * noise
        return y

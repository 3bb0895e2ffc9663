"""Two temperatures: chains that change places, every second step or each time, and a tempered transition. The marginal
of the cold chain is exp(-U)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def energy(estimator, x):
    """U at x, without noise."""
    return estimator.estimate(jax.random.key(0), (), x)[0].potential


def walk(key, x, h, beta, estimator):
    """A step of random walk Metropolis for exp(-beta U)."""
    a, b = jax.random.split(key)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
    log_rate = beta * (energy(estimator, x) - energy(estimator, y))
    return jnp.where(jnp.log(jax.random.uniform(b, dtype=x.dtype)) < log_rate, y, x)


class Pair(NamedTuple):
    cold: Any
    hot: Any
    swaps: Any


class EvenOdd:
    """Walks in even steps, a swap in odd ones: two kernels in turn, each of which keeps both laws."""

    needs = ("potential",)
    beta = 0.4

    def init(self, key, position, estimator):
        return Pair(position, position, jnp.asarray(False))

    def step(self, key, state, h, estimator):
        a, b, c = jax.random.split(key, 3)
        x, y, swaps = state
        gain = (1 - self.beta) * (energy(estimator, x) - energy(estimator, y))
        swapped = swaps & (jnp.log(jax.random.uniform(c, dtype=x.dtype)) < gain)
        moved = walk(a, x, h, 1.0, estimator), walk(b, y, 2 * h, self.beta, estimator)
        cold = jnp.where(swaps, jnp.where(swapped, y, x), moved[0])
        hot = jnp.where(swaps, jnp.where(swapped, x, y), moved[1])
        return Pair(cold, hot, ~swaps)

    def position(self, state):
        return state.cold


even_odd = EvenOdd()


class HostExchange:
    """MALA at 1 and at 2, and a swap with probability 1/2, in a dict whose entries change places."""

    backend = "host"

    def init(self, key, position, estimator):
        x = np.array(position)
        return {"cold": x, "hot": x + key.standard_normal(x.shape)}

    def _both(self, rng, estimator, x):
        found = estimator.estimate(rng, (), x)[0]
        return float(found.potential), np.asarray(found.gradient)

    def _mala(self, rng, x, h, temperature, estimator):
        (u, g), s = self._both(rng, estimator, x), h / temperature
        y = (x - s * g + np.sqrt(2 * h) * rng.standard_normal(x.shape)).astype(x.dtype)
        v, back = self._both(rng, estimator, y)
        forth, home = np.sum((y - x + s * g) ** 2), np.sum((x - y + s * back) ** 2)
        return y if np.log(rng.random()) < (u - v) / temperature + (forth - home) / (4 * h) else x

    def step(self, key, state, step_size, estimator):
        h = float(step_size)
        x = self._mala(key, state["cold"], h, 1.0, estimator)
        y = self._mala(key, state["hot"], h, 2.0, estimator)
        if key.random() < 0.5:
            gain = (1 - 1 / 2) * (self._both(key, estimator, x)[0] - self._both(key, estimator, y)[0])
            if key.random() < np.exp(min(0.0, gain)):
                x, y = y, x
        return {"cold": x, "hot": y}

    def position(self, state):
        return state["cold"]


host_exchange = HostExchange()


def _tempered(key, x, h, estimator):
    # Neal (1996): up to exp(-U / 2) and exp(-U / 4) and down again by walks that keep them; the ratio has the laws
    # of neighbouring temperatures at each point of the way.
    a, b, c, d, e = jax.random.split(key, 5)
    up = walk(a, x, h, 0.5, estimator)
    top = walk(b, up, 2 * h, 0.25, estimator)
    down = walk(c, top, 2 * h, 0.25, estimator)
    end = walk(d, down, h, 0.5, estimator)
    u = lambda x: energy(estimator, x)
    log_rate = (u(x) - u(end)) / 2 + (u(up) - u(down)) / 4
    return jnp.where(jnp.log(jax.random.uniform(e, dtype=x.dtype)) < log_rate, end, x)


tempered_transition = simple_sampler(
    _tempered, needs=("potential",), claims=Claims(Source("", "Neal (1996), tempered transitions"), ExactLaw())
)


class LangevinPair:
    """SGLD at temperatures 1 and 3, two rows of one array, and Metropolis' rule for their exchange: O(h)."""

    def init(self, key, position, estimator):
        return jnp.stack([position, position])

    def step(self, key, state, h, estimator):
        a, b, c = jax.random.split(key, 3)
        gradient = jax.vmap(lambda x: estimator.estimate(a, (), x)[0].gradient)
        heat = jnp.asarray([1.0, 3.0], state.dtype).reshape(2, *[1] * (state.ndim - 1))
        x = state - h * gradient(state) + jnp.sqrt(2 * h * heat) * jax.random.normal(b, state.shape, state.dtype)
        gain = (1 - 1 / 3) * (energy(estimator, x[0]) - energy(estimator, x[1]))
        return jnp.where(jnp.log(jax.random.uniform(c, dtype=x.dtype)) < gain, x[::-1], x)

    def position(self, state):
        return state[0]


langevin_pair = LangevinPair()

"""Samplers on finite spaces: sweeps, a site in turn, flips and swaps, one-hot and coded states, inversion on the host,
balanced weights. All are exact; the values of a site are those of the states of the target."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

FINITE = Claims(Source("", "own"), ExactLaw(), spaces=("finite",))


def values(target):
    """The values that a site takes."""
    return np.unique(target.finite.states)


def energy(estimator, key, x):
    """U."""
    return estimator.estimate(key, (), x)[0].potential


def renewed(key, x, i, of, estimator):
    """A new value of site i given all others."""
    a, b = jax.random.split(key)
    all_values = jax.vmap(lambda v: x.at[i].set(v))(jnp.asarray(of, x.dtype))
    return all_values[jax.random.categorical(a, -jax.vmap(lambda y: energy(estimator, b, y))(all_values))]


def sweep(target):
    """Gibbs, one site after the other in one step."""
    of = values(target)

    def step(key, x, h, estimator):
        one = lambda i, x: renewed(jax.random.fold_in(key, i), x, i, of, estimator)
        return jax.lax.fori_loop(0, x.size, one, x)

    return simple_sampler(step, claims=FINITE)


class InTurn(NamedTuple):
    position: Any
    site: Any


def site_in_turn(target):
    """Gibbs of one site a step, the number of the next one in the state."""
    of = values(target)
    return simple_sampler(
        lambda key, s, h, estimator: InTurn(
            renewed(key, s.position, s.site, of, estimator), (s.site + 1) % s.position.size
        ),
        init=lambda key, x, estimator: InTurn(x, jnp.zeros((), jnp.int32)),
        claims=FINITE,
    )


def flip_then_swap(target):
    """A new value for a site at random, then the values of two sites at random exchanged; a test for each."""
    of = values(target)

    def step(key, x, h, estimator):
        a, b, c, d, e, f = jax.random.split(key, 6)
        u = lambda x: energy(estimator, f, x)
        y = x.at[jax.random.randint(a, (), 0, x.size)].set(jax.random.choice(b, jnp.asarray(of, x.dtype)))
        x = jnp.where(jax.random.uniform(c) < jnp.exp(u(x) - u(y)), y, x)
        i, j = jax.random.randint(d, (2,), 0, x.size)
        y = x.at[i].set(x[j]).at[j].set(x[i])
        return jnp.where(jax.random.uniform(e) < jnp.exp(u(x) - u(y)), y, x)

    return simple_sampler(step, claims=FINITE)


class OneHot:
    """The state is a matrix of zeros and ones, a row a site; a row at random is replaced by Barker's rule."""

    claims = FINITE

    def __init__(self, target):
        self.values = values(target)

    def init(self, key, position, estimator):
        return (position[:, None] == jnp.asarray(self.values)).astype(jnp.int8)

    def position(self, state):
        return jnp.asarray(self.values)[jnp.argmax(state, axis=1)]

    def step(self, key, state, step_size, estimator):
        a, b, c, d = jax.random.split(key, 4)
        i = jax.random.randint(a, (), 0, len(state))
        k = jax.random.randint(b, (), 0, len(self.values))
        new = state.at[i].set((jnp.arange(len(self.values)) == k).astype(state.dtype))
        u = lambda s: energy(estimator, d, self.position(s))
        return jnp.where(jax.random.bernoulli(c, jax.nn.sigmoid(u(state) - u(new))), new, state)


def one_hot(target):
    """One-hot rows."""
    return OneHot(target)


class Coded:
    """The state is one whole number, the digits of which are the sites; a digit is proposed anew and tested."""

    claims = FINITE

    def __init__(self, target):
        self.values, self.sites = values(target), target.finite.states.shape[1]
        self.places = len(self.values) ** np.arange(self.sites)

    def init(self, key, position, estimator):
        return jnp.sum(jnp.searchsorted(jnp.asarray(self.values), position) * self.places)

    def position(self, state):
        return jnp.asarray(self.values)[state // jnp.asarray(self.places) % len(self.values)]

    def step(self, key, state, step_size, estimator):
        a, b, c, d = jax.random.split(key, 4)
        place = jnp.asarray(self.places)[jax.random.randint(a, (), 0, self.sites)]
        digit = jax.random.randint(b, (), 0, len(self.values))
        new = state + (digit - state // place % len(self.values)) * place
        u = lambda s: energy(estimator, d, self.position(s))
        return jnp.where(jax.random.uniform(c) < jnp.exp(u(state) - u(new)), new, state)


def coded(target):
    """Mixed digits."""
    return Coded(target)


def host_heat_bath(target):
    """Gibbs on the host: a site by rng.integers, its value by rng.random and a search in the sums of probabilities."""
    of = values(target)

    def step(rng, x, h, estimator):
        x = np.array(x)
        i, weights = int(rng.integers(x.size)), []
        for v in of:
            y = x.copy()
            y[i] = v
            weights.append(np.exp(-float(energy(estimator, rng, y))))
        x[i] = of[np.searchsorted(np.cumsum(weights) / np.sum(weights), rng.random(), side="right")]
        return x

    return simple_sampler(step, backend="host", claims=FINITE)


def balanced(target):
    """Zanella's informed proposal: a neighbour y by sqrt(pi(y) / pi(x)), accepted by the ratio of the sums."""
    of = values(target)

    def step(key, x, h, estimator):
        a, b, c = jax.random.split(key, 3)
        u = lambda x: energy(estimator, c, x)

        def neighbours(x):
            put = lambda i, v: x.at[i].set(v)
            ys = jax.vmap(lambda i: jax.vmap(lambda v: put(i, v))(jnp.asarray(of, x.dtype)))(jnp.arange(x.size))
            log_w = (u(x) - jax.vmap(jax.vmap(u))(ys)) / 2
            return ys.reshape(-1, x.size), jnp.where(x[:, None] == jnp.asarray(of), -jnp.inf, log_w).ravel()

        ys, log_w = neighbours(x)
        y = ys[jax.random.categorical(a, log_w)]
        log_rate = jax.nn.logsumexp(log_w) - jax.nn.logsumexp(neighbours(y)[1])
        return jnp.where(jnp.log(jax.random.uniform(b)) < log_rate, y, x)

    return simple_sampler(step, claims=FINITE)

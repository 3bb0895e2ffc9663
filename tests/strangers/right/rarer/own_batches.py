"""Samplers that go through the data in ways of their own: epochs with a short last batch, a cyclic window, SVRG with a
periodic anchor, SAGA, strata, batches of random size. Averaged over what the state remembers the gradient is
unbiased, so that the law is exp(-U) + O(h). A target that is no sum over data is sampled with the estimator's."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler


def weighted_gradient(terms, index, weights, x):
    """Gradient of prior + sum_j weights_j datum(x, data[index_j])."""
    batch = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
    return jax.grad(lambda x: terms.prior(x) + jnp.sum(weights * jax.vmap(terms.datum, (None, 0))(x, batch)))(x)


def datum_gradient(terms, index, x):
    """Gradients of single data, one row for each."""
    batch = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
    return jax.vmap(jax.grad(terms.datum), (None, 0))(x, batch)


def normal(key, x):
    """Normal of the shape of x."""
    return jax.random.normal(key, x.shape, x.dtype)


def plain(key, x, h, gradient):
    """A step of SGLD."""
    return x - h * gradient + jnp.sqrt(2 * h) * normal(key, x)


class Epoch(NamedTuple):
    position: Any
    order: Any
    pointer: Any


class Epochs:
    """Batches of three in a random order, drawn afresh after each epoch; the last batch is short."""

    def __init__(self, target):
        self.terms = target.terms

    def init(self, key, position, estimator):
        size = self.terms.size if self.terms else 1
        return Epoch(position, jax.random.permutation(key, size), jnp.zeros((), jnp.int32))

    def step(self, key, state, h, estimator):
        a, b, c = jax.random.split(key, 3)
        x, order, pointer = state
        if self.terms is None:
            return Epoch(plain(a, x, h, estimator.estimate(b, (), x)[0].gradient), order, pointer)
        size = self.terms.size
        place = pointer + jnp.arange(3)
        inside = place < size
        number = jnp.sum(inside)
        g = weighted_gradient(self.terms, order[jnp.minimum(place, size - 1)], inside * (size / number), x)
        pointer = pointer + 3
        end = pointer >= size
        order = jnp.where(end, jax.random.permutation(c, size), order)
        return Epoch(plain(a, x, h, g), order, jnp.where(end, 0, pointer).astype(jnp.int32))

    def position(self, state):
        return state.position


def epochs(target):
    """Random reshuffling."""
    return Epochs(target)


class Cyclic(NamedTuple):
    position: Any
    i: Any


class Window:
    """Pairs of data in the order of the file, over and over."""

    def __init__(self, target):
        self.terms = target.terms

    def init(self, key, position, estimator):
        return Cyclic(position, jnp.zeros((), jnp.int32))

    def step(self, key, state, h, estimator):
        a, b = jax.random.split(key)
        x, i = state
        if self.terms is None:
            return Cyclic(plain(a, x, h, estimator.estimate(b, (), x)[0].gradient), i)
        size = self.terms.size
        g = weighted_gradient(self.terms, (2 * i + jnp.arange(2)) % size, jnp.full(2, size / 2), x)
        return Cyclic(plain(a, x, h, g), (i + 1) % size)

    def position(self, state):
        return state.position


def cyclic(target):
    """Cyclic batches."""
    return Window(target)


class Anchor(NamedTuple):
    position: Any
    anchor: Any
    full: Any
    count: Any


class PeriodicSVRG:
    """SVRG-LD: the anchor is the position every fourth step."""

    def __init__(self, target):
        self.terms = target.terms

    def _full(self, key, x, estimator):
        if self.terms is None:
            return estimator.estimate(key, (), x)[0].gradient
        return weighted_gradient(self.terms, jnp.arange(self.terms.size), jnp.ones(self.terms.size), x)

    def init(self, key, position, estimator):
        return Anchor(position, position, self._full(key, position, estimator), jnp.zeros((), jnp.int32))

    def step(self, key, state, h, estimator):
        a, b = jax.random.split(key)
        x, anchor, full, count = state
        if self.terms is None:
            return Anchor(plain(a, x, h, self._full(b, x, estimator)), anchor, full, count)
        now = count % 4 == 0
        anchor = jnp.where(now, x, anchor)
        full = jax.lax.cond(now, lambda: self._full(b, x, estimator), lambda: full)
        index = jax.random.choice(b, self.terms.size, (2,))
        weights = jnp.full(2, self.terms.size / 2)
        prior = jax.grad(self.terms.prior)
        of = lambda x: weighted_gradient(self.terms, index, weights, x) - prior(x)
        g = prior(x) - prior(anchor) + of(x) - of(anchor) + full
        return Anchor(plain(a, x, h, g), anchor, full, (count + 1) % 4)

    def position(self, state):
        return state.position


def svrg(target):
    """SVRG Langevin."""
    return PeriodicSVRG(target)


class Table(NamedTuple):
    position: Any
    table: Any


class Saga:
    """SAGA-LD: a table with the last gradient of each datum."""

    def __init__(self, target):
        self.terms = target.terms

    def init(self, key, position, estimator):
        if self.terms is None:
            return Table(position, ())
        return Table(position, datum_gradient(self.terms, jnp.arange(self.terms.size), position))

    def step(self, key, state, h, estimator):
        a, b = jax.random.split(key)
        x, table = state
        if self.terms is None:
            return Table(plain(a, x, h, estimator.estimate(b, (), x)[0].gradient), table)
        index = jax.random.choice(b, self.terms.size, (2,), replace=False)
        fresh = datum_gradient(self.terms, index, x)
        g = jax.grad(self.terms.prior)(x) + jnp.sum(table, 0) + self.terms.size * jnp.mean(fresh - table[index], 0)
        return Table(plain(a, x, h, g), table.at[index].set(fresh))

    def position(self, state):
        return state.position


def saga(target):
    """SAGA Langevin."""
    return Saga(target)


def _factory(draw):
    def build(target):
        def step(key, x, h, estimator):
            a, b = jax.random.split(key)
            if target.terms is None:
                return plain(a, x, h, estimator.estimate(b, (), x)[0].gradient)
            return plain(a, x, h, weighted_gradient(target.terms, *draw(b, target.terms.size), x))

        return simple_sampler(step)

    return build


def _strata(key, size):
    half = size // 2
    a, b = jax.random.split(key)
    low, high = jax.random.randint(a, (), 0, half), jax.random.randint(b, (), half, size)
    return jnp.stack([low, high]), jnp.asarray([half, size - half])


# One datum of each half, weighted by the size of its half.
strata = _factory(_strata)


def _random_size(key, size):
    a, b = jax.random.split(key)
    n = jax.random.randint(a, (), 1, size + 1)
    order = jax.random.permutation(b, size)
    return order, jnp.where(jnp.arange(size) < n, size / n, 0.0)


# A batch of 1 ... N data without replacement.
random_size = _factory(_random_size)


def _poisson_counts(key, size):
    return jnp.arange(size), jax.random.poisson(key, 0.5, (size,)) / 0.5


# Poisson bootstrap: each datum counts Poisson(1/2) times.
poisson_counts = _factory(_poisson_counts)


def _exponential_weights(key, size):
    return jnp.arange(size), jax.random.exponential(key, (size,))


# Random weights of mean 1.
exponential_weights = _factory(_exponential_weights)


def host_epochs(target):
    """SGLD on the host, own epochs by rng.permutation, short last batch."""

    class HostEpochs:
        backend = "host"

        def init(self, rng, position, estimator):
            size = target.terms.size if target.terms else 1
            return {"order": rng.permutation(size), "start": 0, "x": np.asarray(position)}

        def step(self, rng, state, h, estimator):
            x, order, start = state["x"], state["order"], state["start"]
            if target.terms is None:
                g = estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient
            else:
                batch = order[start : start + 3]
                g = weighted_gradient(target.terms, batch, np.full(len(batch), target.terms.size / len(batch)), x)
                start += 3
                if start >= target.terms.size:
                    order, start = rng.permutation(target.terms.size), 0
            x = (x - h * np.asarray(g) + np.sqrt(2 * h) * rng.standard_normal(x.shape)).astype(x.dtype)
            return {"order": order, "start": start, "x": x}

        def position(self, state):
            return state["x"]

    return HostEpochs()

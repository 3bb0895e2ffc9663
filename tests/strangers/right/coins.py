"""Steps that toss coins: noise by signs, moves on lattices, Barker's rule, acceptances in every spelling, keys in the
state. With s^2 = 2 h the moves of the unadjusted ones have E dx = -h grad U + O(h^2) and E dx dx' = 2 h I + O(h^2), so
that the law is exp(-U) + O(h); a kernel with a Metropolis test is exact."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def energy(estimator, x):
    return estimator.estimate(jax.random.key(0), (), x)[0].potential


@simple_sampler
def barker(key, x, h, estimator):
    a, b, c = jax.random.split(key, 3)
    g = grad(estimator, a, x)
    z = jnp.sqrt(2 * h) * jax.random.normal(b, x.shape, x.dtype)
    keep = jax.random.uniform(c, x.shape, x.dtype) < 1 / (1 + jnp.exp(z * g))
    return jnp.where(keep, x + z, x - z)


def _barker_leaf(key, x, g, h):
    a, b = jax.random.split(key)
    z = jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
    return x + z * (2.0 * jax.random.bernoulli(b, jax.nn.sigmoid(-z * g), x.shape) - 1).astype(x.dtype)


@simple_sampler
def barker_tree(key, params, h, estimator):
    a, b = jax.random.split(key)
    grads = grad(estimator, a, params)
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(b, len(leaves))
    moved = [_barker_leaf(k, x, g, h) for k, x, g in zip(keys, leaves, jax.tree.leaves(grads))]
    return jax.tree.unflatten(structure, moved)


class Named(NamedTuple):
    x: Any
    kept: Any


class BarkerCached:
    """Barker's rule with the gradient of the end of a step kept for the next one."""

    def init(self, key, position, estimator):
        return Named(position, grad(estimator, key, position))

    def step(self, key, state, h, estimator):
        a, b = jax.random.split(key)
        x = _barker_leaf(a, state.x, state.kept, h)
        return Named(x, grad(estimator, b, x))

    def position(self, state):
        return state.x

    def unpack(self, state):
        return state.x

    def pack(self, key, z, estimator):
        return self.init(key, z, estimator)


barker_cached = BarkerCached()


@simple_sampler
def rademacher(key, x, h, estimator):
    a, b = jax.random.split(key)
    return x - h * grad(estimator, a, x) + jnp.sqrt(2 * h) * jax.random.rademacher(b, x.shape, x.dtype)


@simple_sampler
def signs_by_where(key, x, h, estimator):
    a, b = jax.random.split(key)
    s = jnp.sqrt(2 * h)
    return x - h * grad(estimator, a, x) + jnp.where(jax.random.uniform(b, x.shape, x.dtype) < 0.5, s, -s)


@simple_sampler
def signs_by_choice(key, x, h, estimator):
    a, b = jax.random.split(key)
    signs = jax.random.choice(b, jnp.array([-1.0, 1.0], x.dtype), x.shape)
    return x - h * grad(estimator, a, x) + jnp.sqrt(2 * h) * signs


@simple_sampler
def lattice_walk(key, x, h, estimator):
    a, b = jax.random.split(key)
    s = jnp.sqrt(2 * h)
    up = jax.random.bernoulli(b, jax.nn.sigmoid(-s * grad(estimator, a, x)), x.shape)
    return jnp.where(up, x + s, x - s)


@simple_sampler
def lattice_walk_tanh(key, x, h, estimator):
    a, b = jax.random.split(key)
    s = jnp.sqrt(2 * h)
    lean = jnp.tanh(s * grad(estimator, a, x) / 2)
    return x + s * jnp.sign(jax.random.uniform(b, x.shape, x.dtype, -1.0, 1.0) - lean)


@simple_sampler
def lazy_lattice(key, x, h, estimator):
    """Half of the coordinates rest, the others move as in a step of 2 h."""
    a, b, c = jax.random.split(key, 3)
    s = jnp.sqrt(4 * h)
    up = jax.random.bernoulli(b, jax.nn.sigmoid(-s * grad(estimator, a, x)), x.shape)
    move = jnp.where(up, s, -s)
    return x + jax.random.bernoulli(c, 0.5, x.shape) * move


@simple_sampler
def lazy_langevin(key, x, h, estimator):
    """One coin for all: rest, or a Langevin step of 2 h. It rejects, and is no Metropolis test."""
    a, b, c = jax.random.split(key, 3)
    y = x - 2 * h * grad(estimator, a, x) + jnp.sqrt(4 * h) * jax.random.normal(b, x.shape, x.dtype)
    return jnp.where(jax.random.bernoulli(c, 0.5), y, x)


class SignedSGHMC:
    """Momentum with fair signs for noise, in a dictionary whose position comes last."""

    def init(self, key, position, estimator):
        return {"momentum": jnp.zeros_like(position), "position": position}

    def step(self, key, state, h, estimator):
        a, b = jax.random.split(key)
        x, p = state["position"], state["momentum"]
        p = (1 - h) * p - h * grad(estimator, a, x) + jnp.sqrt(2 * h) * jax.random.rademacher(b, x.shape, x.dtype)
        return {"position": x + h * p, "momentum": p}


signed_sghmc = SignedSGHMC()


class KeyInState:
    """Langevin steps from a key that the state keeps, made by `init`; the key of a step is not read."""

    def init(self, key, position, estimator):
        return Named(position, key)

    def step(self, key, state, h, estimator):
        kept, a, b = jax.random.split(state.kept, 3)
        x = state.x
        noise = jax.random.normal(b, x.shape, x.dtype)
        return Named(x - h * grad(estimator, a, x) + jnp.sqrt(2 * h) * noise, kept)

    def position(self, state):
        return state.x

    def unpack(self, state):
        return state.x

    def pack(self, key, z, estimator):
        return self.init(key, z, estimator)


key_in_state = KeyInState()


class KeyFolded(KeyInState):
    """The kept key is folded with the one of the step, and the noise is a sign."""

    def step(self, key, state, h, estimator):
        kept, a, b = jax.random.split(state.kept, 3)
        b = jax.random.fold_in(b, jax.random.bits(key))
        x = state.x
        sign = jax.random.rademacher(b, x.shape, x.dtype)
        return Named(x - h * grad(estimator, a, x) + jnp.sqrt(2 * h) * sign, kept)


key_folded = KeyFolded()


def metropolis(accept, exact=False):
    """Random walk Metropolis, `accept(key, x, y, drop)` with drop = U(x) - U(y)."""

    def step(key, x, h, estimator):
        a, b = jax.random.split(key)
        y = x + jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
        return accept(b, x, y, energy(estimator, x) - energy(estimator, y))

    claims = {"claims": Claims(Source("", "random walk Metropolis"), ExactLaw())} if exact else {}
    return simple_sampler(step, needs=("potential",), **claims)


walk_where = metropolis(lambda k, x, y, d: jnp.where(jax.random.uniform(k) < jnp.minimum(1.0, jnp.exp(d)), y, x))
walk_where_claimed = metropolis(lambda k, x, y, d: jnp.where(jax.random.uniform(k) < jnp.exp(d), y, x), exact=True)
walk_cond = metropolis(
    lambda k, x, y, d: jax.lax.cond(jnp.log(jax.random.uniform(k)) < d, lambda p: p[1], lambda p: p[0], (x, y))
)
walk_select = metropolis(lambda k, x, y, d: jax.lax.select(-jax.random.exponential(k) < d, y, x), exact=True)
walk_bernoulli = metropolis(lambda k, x, y, d: jax.tree.map(
    lambda p, q: jnp.where(jax.random.bernoulli(k, jnp.exp(jnp.minimum(d, 0.0))), q, p), x, y))
walk_above = metropolis(lambda k, x, y, d: jnp.where(jax.random.uniform(k) > 1 - jnp.exp(jnp.minimum(d, 0.0)), y, x))
walk_barker = metropolis(lambda k, x, y, d: jnp.where(jax.random.uniform(k) < jax.nn.sigmoid(d), y, x), exact=True)
walk_index = metropolis(
    lambda k, x, y, d: jnp.stack([x, y])[(jax.random.uniform(k) <= jnp.clip(jnp.exp(d), 0, 1)).astype(int)]
)


def _one_coordinate(key, x, h, estimator):
    a, b, c = jax.random.split(key, 3)
    i = jax.random.randint(a, (), 0, x.size)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(b, (), x.dtype) * (jnp.arange(x.size) == i)
    drop = energy(estimator, x) - energy(estimator, y)
    return jnp.where(jnp.log(jax.random.uniform(c)) < drop, y, x)


random_scan = simple_sampler(_one_coordinate, needs=("potential",))


def _lattice_metropolis(key, x, h, estimator):
    """A step to a neighbour, a coin for each coordinate; the offset of the lattice is drawn anew by the normal."""
    a, b, c = jax.random.split(key, 3)
    size = jnp.sqrt(2 * h) * jnp.abs(jax.random.normal(a, (), x.dtype))
    y = x + size * jax.random.rademacher(b, x.shape, x.dtype)
    drop = energy(estimator, x) - energy(estimator, y)
    return jnp.where(jax.random.uniform(c) < jnp.exp(jnp.minimum(drop, 0.0)), y, x)


lattice_metropolis = simple_sampler(_lattice_metropolis, needs=("potential",))


class CachedMALA:
    """MALA that keeps potential and gradient of where it is, in a dictionary in no order."""

    claims = Claims(Source("", "MALA"), ExactLaw())
    needs = frozenset({"gradient", "potential"})

    def init(self, key, position, estimator):
        found = estimator.estimate(key, (), position)[0]
        return {"u": found.potential, "x": position, "g": found.gradient}

    def step(self, key, state, h, estimator):
        a, b, c = jax.random.split(key, 3)
        x, g, u = state["x"], state["g"], state["u"]
        y = x - h * g + jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
        new = self.init(b, y, estimator)
        forth, back = jnp.sum((y - x + h * g) ** 2), jnp.sum((x - y + h * new["g"]) ** 2)
        accept = -jax.random.exponential(c) < u - new["u"] + (forth - back) / (4 * h)
        return jax.tree.map(lambda p, q: jnp.where(accept, p, q), new, state)

    def position(self, state):
        return state["x"]

    def unpack(self, state):
        return state["x"]

    def pack(self, key, z, estimator):
        return self.init(key, z, estimator)


cached_mala = CachedMALA()


@simple_sampler
def late_noise(key, x, h, estimator):
    """Half of the noise before the gradient, half after: signs and normals."""
    a, b, c = jax.random.split(key, 3)
    y = x + jnp.sqrt(h) * jax.random.rademacher(b, x.shape, x.dtype)
    return y - h * grad(estimator, a, y) + jnp.sqrt(h) * jax.random.normal(c, x.shape, x.dtype)


@simple_sampler
def four_coins(key, x, h, estimator):
    """The sum of four fair signs over two: variance 1."""
    a, b = jax.random.split(key)
    noise = jax.random.rademacher(b, (4, *x.shape), x.dtype).sum(axis=0) / 2
    return x - h * grad(estimator, a, x) + jnp.sqrt(2 * h) * noise

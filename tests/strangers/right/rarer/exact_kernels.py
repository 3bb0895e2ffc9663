"""Exact kernels with auxiliary variables, inner loops, ensembles and more than one decision. Each leaves exp(-U), times
the law of what else is carried, invariant at every step size; the reason is said at each."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("metropolis1953equation", "the algorithm"), ExactLaw())
NEEDS = ("gradient", "potential")


def normal(key, x):
    """Normal of the shape of x."""
    return jax.random.normal(key, x.shape, x.dtype)


def energy(estimator, x):
    """U at x; the exact potential takes no randomness."""
    return estimator.estimate(jax.random.key(0), (), x)[0].potential


def slope(estimator, x):
    """Grad U at x."""
    return estimator.estimate(jax.random.key(0), (), x)[0].gradient


def coin(key, log_rate):
    """True with probability min(1, exp(log_rate))."""
    return jnp.log(jax.random.uniform(key, dtype=log_rate.dtype)) < log_rate


def walk(key, x, h, estimator):
    """Random walk Metropolis."""
    a, b = jax.random.split(key)
    y = x + jnp.sqrt(2 * h) * normal(a, x)
    return jnp.where(coin(b, energy(estimator, x) - energy(estimator, y)), y, x)


def _delayed_acceptance(key, x, h, estimator):
    # Christen and Fox: first a surrogate V, then the ratio of U and V; the product of both satisfies detailed balance.
    a, b, c = jax.random.split(key, 3)
    y = x + jnp.sqrt(2 * h) * normal(a, x)
    surrogate = 0.4 * (jnp.sum(x**2) - jnp.sum(y**2))
    log_ratio = energy(estimator, x) - energy(estimator, y)
    return jnp.where(coin(b, surrogate) & coin(c, log_ratio - surrogate), y, x)


delayed_acceptance = simple_sampler(_delayed_acceptance, needs=NEEDS, claims=EXACT)


class Weighted(NamedTuple):
    position: Any
    log_weight: Any


class PseudoMarginal:
    """Andrieu and Roberts: the weight W = exp(z - 1/2), z normal, has mean 1; (x, W) has law pi(x) w g(w)."""

    needs = ("potential",)

    def init(self, key, position, estimator):
        return Weighted(position, jnp.zeros((), position.dtype))

    def step(self, key, state, h, estimator):
        a, b, c = jax.random.split(key, 3)
        x, log_w = state
        y = x + jnp.sqrt(2 * h) * normal(a, x)
        log_v = jax.random.normal(b, dtype=x.dtype) - 0.5
        ok = coin(c, energy(estimator, x) - energy(estimator, y) + log_v - log_w)
        return Weighted(jnp.where(ok, y, x), jnp.where(ok, log_v, log_w))

    def position(self, state):
        return state.position


pseudo_marginal = PseudoMarginal()


class Stretch:
    """Goodman and Weare: the walkers of each half move along lines through walkers of the other one."""

    needs = ("potential",)

    def init(self, key, position, estimator):
        n = 2 * position.size + 4
        return position + 0.5 * jax.random.normal(key, (n, *position.shape), position.dtype)

    def step(self, key, state, h, estimator):
        a, b = jax.random.split(key)
        half = len(state) // 2
        first = self._move(a, state[:half], state[half:], estimator)
        return jnp.concatenate([first, self._move(b, state[half:], first, estimator)])

    def _move(self, key, moved, others, estimator):
        a, b, c = jax.random.split(key, 3)
        n, dim = len(moved), moved[0].size
        z = (1 + jax.random.uniform(a, (n,), moved.dtype)) ** 2 / 2  # density ~ 1 / sqrt(z) on [1/2, 2]
        other = others[jax.random.randint(b, (n,), 0, len(others))]
        proposed = other + z[:, None] * (moved - other)
        U = jax.vmap(lambda x: energy(estimator, x))
        log_rate = (dim - 1) * jnp.log(z) + U(moved) - U(proposed)
        accept = jnp.log(jax.random.uniform(c, (n,), moved.dtype)) < log_rate
        return jnp.where(accept[:, None], proposed, moved)

    def position(self, state):
        return state[0]


stretch = Stretch()


def leapfrog(x, p, h, estimator):
    """One leapfrog step."""
    p = p - h / 2 * slope(estimator, x)
    x = x + h * p
    return x, p - h / 2 * slope(estimator, x)


def _gist(key, x, h, estimator, most=12):
    # Bou-Rabee, Carpenter and Marsden: L ~ U{1 ... N(x, p)}, N the steps to a U-turn; p(L | end, flipped) in the ratio.
    h = jnp.sqrt(h)
    a, b, c = jax.random.split(key, 3)

    def turns(x0, p0):
        def ahead(carry):
            x, p, n = carry
            return (n == 0) | ((jnp.sum((x - x0) * p) > 0) & (n < most))

        move = lambda carry: (*leapfrog(carry[0], carry[1], h, estimator), carry[2] + 1)
        return jax.lax.while_loop(ahead, move, (x0, p0, 0))[2]

    p = normal(a, x)
    n = turns(x, p)
    steps = 1 + jnp.floor(jax.random.uniform(b, dtype=x.dtype) * n).astype(n.dtype)
    y, q = jax.lax.fori_loop(0, steps, lambda _, xp: leapfrog(*xp, h, estimator), (x, p))
    m = turns(y, -q)
    H = lambda x, p: energy(estimator, x) + jnp.sum(p**2) / 2
    log_rate = H(x, p) - H(y, q) + jnp.log(n.astype(x.dtype)) - jnp.log(m.astype(x.dtype))
    return jnp.where((steps <= m) & coin(c, log_rate), y, x)


gist = simple_sampler(_gist, needs=NEEDS, claims=EXACT)


class Latent(NamedTuple):
    x: Any
    s: Any


class LatentSlice:
    """Li and Walker: interval of latent length s, p(s) = l^2 s exp(-l s), then shrinkage; coordinates together."""

    needs = ("potential",)

    def init(self, key, position, estimator):
        return Latent(position, jnp.ones_like(position))

    def step(self, key, state, h, estimator):
        x, s = state
        a, b, c, d = jax.random.split(key, 4)
        rate = 1 / jnp.sqrt(4 * h)
        level = energy(estimator, x) + jax.random.exponential(a, dtype=x.dtype)
        centre = x + s * (jax.random.uniform(b, x.shape, x.dtype) - 0.5)
        s = 2 * jnp.abs(centre - x) + jax.random.exponential(c, x.shape, x.dtype) / rate

        def shrink(carry):
            key, low, high, y = carry
            key, use = jax.random.split(key)
            low, high = jnp.where(y < x, y, low), jnp.where(y < x, high, y)
            return key, low, high, low + (high - low) * jax.random.uniform(use, x.shape, x.dtype)

        key, use = jax.random.split(d)
        low, high = centre - s / 2, centre + s / 2
        start = (key, low, high, low + (high - low) * jax.random.uniform(use, x.shape, x.dtype))
        y = jax.lax.while_loop(lambda carry: energy(estimator, carry[3]) >= level, shrink, start)[3]
        return Latent(y, s)

    def position(self, state):
        return state.x


latent_slice = LatentSlice()


def _logistic_momentum(key, x, h, estimator):
    # K(p) = p + 2 log(1 + exp(-p)) belongs to the logistic law; dK/dp = tanh(p / 2), the flow is a shear.
    h = jnp.sqrt(h)
    a, b = jax.random.split(key)
    p = jax.random.logistic(a, x.shape, x.dtype)
    kinetic = lambda p: jnp.sum(p + 2 * jax.nn.softplus(-p))
    y, q = x, p
    for _ in range(3):
        q = q - h / 2 * slope(estimator, y)
        y = y + h * jnp.tanh(q / 2)
        q = q - h / 2 * slope(estimator, y)
    return jnp.where(coin(b, energy(estimator, x) - energy(estimator, y) + kinetic(p) - kinetic(q)), y, x)


logistic_momentum = simple_sampler(_logistic_momentum, needs=NEEDS, claims=EXACT)


def _laplace_momentum(key, x, h, estimator):
    # K(p) = |p|, dK/dp = sign p; the step is drawn afresh, or positions would stay on a lattice.
    a, b, c = jax.random.split(key, 3)
    h = jnp.sqrt(h) * jax.random.uniform(c, dtype=x.dtype, minval=0.5, maxval=1.5)
    p = jax.random.laplace(a, x.shape, x.dtype)
    y = x + h / 2 * jnp.sign(p)
    q = p - h * slope(estimator, y)
    y = y + h / 2 * jnp.sign(q)
    log_rate = energy(estimator, x) - energy(estimator, y) + jnp.sum(jnp.abs(p)) - jnp.sum(jnp.abs(q))
    return jnp.where(jax.random.exponential(b, dtype=x.dtype) > -log_rate, y, x)


laplace_momentum = simple_sampler(_laplace_momentum, needs=NEEDS)


class Ladder:
    """Three temperatures, walks at each, and an exchange of a neighbouring pair chosen at random."""

    needs = ("potential",)

    def init(self, key, position, estimator):
        return {"chains": jnp.stack([position] * 3)}

    def step(self, key, state, h, estimator):
        a, b, c, d = jax.random.split(key, 4)
        x = state["chains"]
        beta = jnp.asarray([1.0, 0.5, 0.25], x.dtype)
        U = jax.vmap(lambda x: energy(estimator, x))
        y = x + jnp.sqrt(2 * h) * normal(a, x)
        accept = jax.random.uniform(b, (3,), x.dtype) < jnp.exp(jnp.minimum(0.0, beta * (U(x) - U(y))))
        x = jnp.where(accept.reshape(3, *[1] * (x.ndim - 1)), y, x)
        i = jax.random.randint(c, (), 0, 2)
        u = U(x)
        swap = coin(d, (beta[i] - beta[i + 1]) * (u[i] - u[i + 1]))
        other = x.at[i].set(x[i + 1]).at[i + 1].set(x[i])
        return {"chains": jnp.where(swap, other, x)}

    def position(self, state):
        return state["chains"][0]


ladder = Ladder()


class Guided(NamedTuple):
    direction: Any
    position: Any


class GuidedWalk:
    """Gustafson: a direction is kept until a rejection turns it round; signs are drawn afresh now and then."""

    needs = ("potential",)

    def init(self, key, position, estimator):
        return Guided(jax.random.rademacher(key, position.shape, position.dtype), position)

    def step(self, key, state, h, estimator):
        a, b, c, d = jax.random.split(key, 4)
        v, x = state
        y = x + v * jnp.abs(normal(a, x)) * jnp.sqrt(2 * h)
        ok = coin(b, energy(estimator, x) - energy(estimator, y))
        v, x = jnp.where(ok, v, -v), jnp.where(ok, y, x)
        fresh = jax.random.bernoulli(c, 0.3, v.shape)
        return Guided(jnp.where(fresh, jax.random.rademacher(d, v.shape, v.dtype), v), x)

    def position(self, state):
        return state.position


guided_walk = GuidedWalk()


def _substeps(key, x, h, estimator):
    # 1 + Poisson(2) walks: a mixture of powers of one exact kernel.
    a, b = jax.random.split(key)
    number = 1 + jax.random.poisson(a, 2.0, ())
    body = lambda i, x: walk(jax.random.fold_in(b, i), x, h, estimator)
    return jax.lax.fori_loop(0, number, body, x)


random_substeps = simple_sampler(_substeps, needs=NEEDS, claims=EXACT)


def _cycle(key, x, h, estimator):
    # Two exact kernels one after the other.
    a, b, c, d = jax.random.split(key, 4)
    x = walk(a, x, 2 * h, estimator)
    p = normal(b, x)
    y, q = leapfrog(x, p, jnp.sqrt(2 * h), estimator)
    log_rate = energy(estimator, x) - energy(estimator, y) + (jnp.sum(p**2) - jnp.sum(q**2)) / 2
    x = jnp.where(coin(c, log_rate), y, x)
    return walk(d, x, h / 2, estimator)


cycle = simple_sampler(_cycle, needs=NEEDS, claims=EXACT)


def _shared_centre(key, x, h, estimator):
    # Tjelmeland: x and the proposals are exchangeable given the centre, so that one is chosen by exp(-U).
    a, b, c = jax.random.split(key, 3)
    centre = x + jnp.sqrt(h) * normal(a, x)
    points = centre + jnp.sqrt(h) * jax.random.normal(b, (4, *x.shape), x.dtype)
    points = jnp.concatenate([x[None], points])
    logits = -jax.vmap(lambda y: energy(estimator, y))(points)
    return points[jax.random.categorical(c, logits)]


shared_centre = simple_sampler(_shared_centre, needs=NEEDS, claims=EXACT)


def _shared_centre_gumbel(key, x, h, estimator):
    # The same, the choice by argmax of Gumbel draws.
    a, b, c = jax.random.split(key, 3)
    centre = x + jnp.sqrt(h) * normal(a, x)
    points = jnp.concatenate([x[None], centre + jnp.sqrt(h) * jax.random.normal(b, (3, *x.shape), x.dtype)])
    logits = -jax.vmap(lambda y: energy(estimator, y))(points)
    return points[jnp.argmax(logits + jax.random.gumbel(c, logits.shape, logits.dtype))]


gumbel_choice = simple_sampler(_shared_centre_gumbel, needs=NEEDS)


def _truncated_walk(key, x, h, estimator):
    # The proposal density is a function of |y - x| alone.
    a, b = jax.random.split(key)
    y = x + jnp.sqrt(2 * h) * jax.random.truncated_normal(a, -2.0, 2.0, x.shape, x.dtype)
    return jax.lax.select(coin(b, energy(estimator, x) - energy(estimator, y)), y, x)


truncated_walk = simple_sampler(_truncated_walk, needs=("potential",))


def _skewed_walk(key, x, h, estimator):
    # Hastings: y = x + s (g - 3), g ~ Gamma(3); the way back has 6 - g.
    a, b = jax.random.split(key)
    g = jax.random.gamma(a, 3.0, x.shape, x.dtype)
    y = x + jnp.sqrt(h / 2) * (g - 3)
    back = 6 - g
    inside = jnp.all(back > 0)
    safe = jnp.where(back > 0, back, 1.0)
    log_q = jnp.sum(2 * jnp.log(safe) - safe) - jnp.sum(2 * jnp.log(g) - g)
    return jnp.where(inside & coin(b, energy(estimator, x) - energy(estimator, y) + log_q), y, x)


skewed_walk = simple_sampler(_skewed_walk, needs=("potential",), claims=EXACT)


def _cauchy_walk(key, x, h, estimator):
    a, b = jax.random.split(key)
    y = x + jnp.sqrt(h) * jax.random.cauchy(a, x.shape, x.dtype)
    ratio = jnp.exp(energy(estimator, x) - energy(estimator, y))
    return jnp.where(jax.random.uniform(b, dtype=x.dtype) * (1 + 1 / ratio) < 1.0, y, x)  # Barker's rule


cauchy_walk = simple_sampler(_cauchy_walk, needs=("potential",), claims=EXACT)


def _isir(key, x, h, estimator):
    # Iterated sampling importance resampling with N(0, 4 I), then a walk.
    a, b, c = jax.random.split(key, 3)
    points = jnp.concatenate([x[None], 2 * jax.random.normal(a, (7, *x.shape), x.dtype)])
    log_weight = jax.vmap(lambda y: jnp.sum(y**2) / 8 - energy(estimator, y))(points)
    x = points[jax.random.categorical(b, log_weight)]
    return walk(c, x, h, estimator)


isir = simple_sampler(_isir, needs=("potential",), claims=EXACT)


def _random_mala(key, x, h, estimator):
    # MALA is exact at every step size; this one draws its own.
    a, b, c = jax.random.split(key, 3)
    h = h * jax.random.gamma(a, 2.0, dtype=x.dtype) / 2
    y = x - h * slope(estimator, x) + jnp.sqrt(2 * h) * normal(b, x)
    log_q = lambda y, x: -jnp.sum((y - x + h * slope(estimator, x)) ** 2) / (4 * h)
    log_rate = energy(estimator, x) - energy(estimator, y) + log_q(x, y) - log_q(y, x)
    return jax.lax.cond(-jax.random.exponential(c, dtype=x.dtype) < log_rate, lambda: y, lambda: x)


random_step_mala = simple_sampler(_random_mala, needs=NEEDS, claims=EXACT)


class Blocks(NamedTuple):
    position: Any
    parity: Any


class AlternatingBlocks:
    """Even coordinates in even steps, odd ones in odd steps: each kernel keeps exp(-U)."""

    needs = ("potential",)

    def init(self, key, position, estimator):
        return Blocks(position, jnp.zeros((), jnp.int32))

    def step(self, key, state, h, estimator):
        a, b = jax.random.split(key)
        x, parity = state
        mask = (jnp.arange(x.size) % 2 == parity).astype(x.dtype).reshape(x.shape)
        y = x + jnp.sqrt(2 * h) * mask * normal(a, x)
        ok = coin(b, energy(estimator, x) - energy(estimator, y))
        return Blocks(jnp.where(ok, y, x), 1 - parity)

    def position(self, state):
        return state.position


alternating_blocks = AlternatingBlocks()

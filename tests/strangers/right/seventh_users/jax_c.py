"""Data, ensembles, a metric and an optimiser."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


# ---------------------------------------------------------------------------------------------------------------------
# 1. SAGA-LD [dubey2016variance]. A table of one gradient a datum, and its sum. A batch S is a stretch of n data on a ring from a random start:
#    each datum is in it with the chance n / N, none twice.
#        g = grad U_0(x) + sum + (N / n) sum_S (grad U_i(x) - table_i);  table_i <- grad U_i(x), sum <- sum + sum_S (new - old).
#    The sum stays that of the table, so E_S g = grad U(x) whatever the table holds: SGLD with an unbiased gradient of bounded variance, order 1.


class Tabled(NamedTuple):
    position: Any
    table: Any
    total: Any


def saga(target, batch=1):
    terms = target.terms
    count = 1 if terms is None else min(batch, terms.size)

    def slopes(x, rows):
        return jax.vmap(jax.grad(terms.datum), (None, 0))(x, rows)

    def init(key, position, estimator):
        if terms is None:
            return Tabled(position, (), ())
        table = slopes(position, jax.tree.map(jnp.asarray, terms.data))
        return Tabled(position, table, jax.tree.map(lambda a: jnp.sum(a, 0), table))

    def estimate(key, state, estimator):
        if terms is None:
            return estimator.estimate(key, (), state.position)[0].gradient, state.table, state.total
        index = (jax.random.randint(key, (), 0, terms.size) + jnp.arange(count)) % terms.size
        fresh = slopes(state.position, jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data))
        change = jax.tree.map(lambda new, old: jnp.sum(new - old[index], 0), fresh, state.table)
        weight = terms.size / count
        prior = jax.grad(terms.prior)(state.position)
        gradient = jax.tree.map(lambda p, t, c: p + t + weight * c, prior, state.total, change)
        table = jax.tree.map(lambda old, new: old.at[index].set(new), state.table, fresh)
        total = jax.tree.map(jnp.add, state.total, change)
        return gradient, table, total

    def step(key, state, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        gradient, table, total = estimate(batch_key, state, estimator)

        def move(x, g, z):
            h = jnp.asarray(step_size).astype(x.dtype)
            return x - h * g + jnp.sqrt(2 * h) * z

        x = jax.tree.map(move, state.position, gradient, normal_like(noise_key, state.position))
        return Tabled(x, table, total)

    return simple_sampler(step, init=init, claims=Claims(Source("", "own"), StationaryLaw(order=1)))


# ---------------------------------------------------------------------------------------------------------------------
# 2. Interacting Langevin with a diagonal preconditioner: N walkers, and for each coordinate k the variance of the cloud,
#    C_k = 1/N sum_j (x_jk - m_k)^2, as D. Gamma of walker i: d C_k / d x_ik = 2/N (x_ik - m_k):
#        dx_ik = -C_k U_k(x_i) dt + 2/N (x_ik - m_k) dt + sqrt(2 C_k) dW_ik.
#    The fluxes of rho = prod_j exp(-U(x_j)) vanish: -C_k U_k rho + Gamma rho - d(C_k rho) = 0. Each walker has the target's law. Euler: order 1.


class Cloud(NamedTuple):
    walkers: Any


@dataclass(frozen=True)
class DiagonalEnsemble:
    size: int = 6

    claims = Claims(Source("", "own"), StationaryLaw(order=1))

    def __post_init__(self):
        if self.size < 4:
            raise ValueError("at least four walkers")

    def init(self, key, position, estimator):
        many = jax.tree.map(lambda a: jnp.broadcast_to(a, (self.size, *a.shape)), position)
        spread = jax.tree.map(lambda a: a.at[0].set(0), normal_like(key, many))
        return Cloud(jax.tree.map(jnp.add, many, spread))

    def position(self, state):
        return jax.tree.map(lambda a: a[0], state.walkers)

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        slope = lambda k, q: estimator.estimate(k, (), q)[0].gradient
        gradients = jax.vmap(slope)(jax.random.split(gradient_key, self.size), state.walkers)

        def move(x, g, z):
            h = jnp.asarray(step_size).astype(x.dtype)
            centred = x - jnp.mean(x, 0)
            variance = jnp.mean(centred**2, 0)
            repulsion = 2 / self.size * centred
            return x + h * (repulsion - variance * g) + jnp.sqrt(2 * h * variance) * z

        noise = normal_like(noise_key, state.walkers)
        return Cloud(jax.tree.map(move, state.walkers, gradients, noise))


# ---------------------------------------------------------------------------------------------------------------------
# 3. A metric that stretches along the radius: D(x) = 1 + s x x' / (1 + |x|^2), bounded. With n the number of all coordinates
#        Gamma_i = sum_j d_j D_ij = s x_i / (1 + r^2) (n + 1 - 2 r^2 / (1 + r^2)),    r = |x|,
#    as sum_j d_j (x_i x_j) = (n + 1) x_i and x . grad (1 / (1 + r^2)) = -2 r^2 / (1 + r^2)^2. Noise of covariance 2 h D: xi + sqrt(s / (1 + r^2)) x eta
#    with one more number eta. Euler of dx = (-D grad U + Gamma) dt + sqrt(2 D) dW: order 1.


class RadialMetric(NamedTuple):
    stretch: float
    size: int

    def share(self, x):
        return self.stretch / (1 + jnp.sum(x * x))

    def times(self, x, vector):
        return vector + self.share(x) * x * jnp.dot(x, vector)

    def divergence(self, x):
        square = jnp.sum(x * x)
        return self.share(x) * x * (self.size + 1 - 2 * square / (1 + square))

    def noise(self, key, x):
        along_key, across_key = jax.random.split(key)
        along = jax.random.normal(along_key, (), x.dtype)
        return jax.random.normal(across_key, x.shape, x.dtype) + jnp.sqrt(self.share(x)) * x * along


def radial_langevin(stretch=4.0):
    def step(key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        slope, _ = ravel_pytree(estimator.estimate(gradient_key, (), position)[0].gradient)
        h = jnp.asarray(step_size).astype(x.dtype)
        metric = RadialMetric(stretch, x.size)
        drift = metric.divergence(x) - metric.times(x, slope)
        return unravel(x + h * drift + jnp.sqrt(2 * h) * metric.noise(noise_key, x))

    return simple_sampler(step, claims=Claims(Source("", "own"), StationaryLaw(order=1)))


# ---------------------------------------------------------------------------------------------------------------------
# 4. An optimiser for a mean loss over num_data: noise of deviation s in the gradient, a Nesterov trace, times -lr. Whatever enters the trace
#    moves the weights by 1 / (1 - m) times itself in all: g (1 + m) + m^2 g + ... = g / (1 - m). So the drift is lr / (1 - m) times the mean
#    gradient, the noise has the variance (lr s / (1 - m))^2 a step, and the temperature of the summed loss is
#        N lr s^2 / (2 (1 - m)) = T   for   s^2 = 2 T (1 - m) / (lr N).
#    Weight decay enters before: a prior of precision weight_decay N.


class NoiseState(NamedTuple):
    key: jax.Array


def gradient_noise(deviation, seed):
    def init(params):
        return NoiseState(jax.random.PRNGKey(seed))

    def update(updates, state, params=None):
        key, draw_key = jax.random.split(state.key)
        noise = normal_like(draw_key, updates)
        updates = jax.tree.map(lambda g, z: g + jnp.asarray(deviation).astype(g.dtype) * z, updates, noise)
        return updates, NoiseState(key)

    return optax.GradientTransformation(init, update)


def nesterov_sgld(learning_rate, momentum=0.9, num_data=100, weight_decay=0.1, temperature=1.0, seed=0):
    if not 0 <= momentum < 1:
        raise ValueError("momentum is in [0, 1)")
    variance = 2 * temperature * (1 - momentum) / (learning_rate * num_data)
    return optax.chain(
        optax.add_decayed_weights(weight_decay),
        gradient_noise(jnp.sqrt(variance), seed),
        optax.trace(decay=momentum, nesterov=True),
        optax.scale(-learning_rate),
    )

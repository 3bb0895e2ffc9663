"""Langevin integrators that we use for small posteriors: trees of arrays in, trees of arrays out."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


def axpy(a, x, y):
    """a x + y, leaf by leaf, in the dtype of y."""
    return jax.tree.map(lambda u, v: jnp.asarray(a).astype(v.dtype) * u + v, x, y)


def scaled(a, x):
    return jax.tree.map(lambda u: jnp.asarray(a).astype(u.dtype) * u, x)


# ---------------------------------------------------------------------------------------------------------------------
# 1. Randomized midpoint, overdamped. With a ~ U(0, 1) and one Brownian path W,
#        m  = x - a h grad U(x) + sqrt 2 W(a h),        x' = x - h grad U(m) + sqrt 2 W(h).
#    Wrong: the second increment is (1 - a) sqrt(h) times a normal where sqrt((1 - a) h) is due. Given a the noise of x' has the variance
#    2 h (a + (1 - a)^2), in the mean 2 h (1/2 + 1/3) = 5/3 h, beside a drift of -h grad U: temperature 5/6, every variance 17 % too small.


class Path(NamedTuple):
    early: Any  # W(a h)
    whole: Any  # W(h)


def brownian_path(key, tree, duration, fraction):
    early_key, late_key = jax.random.split(key)
    early = scaled(jnp.sqrt(duration * fraction), normal_like(early_key, tree))
    late = scaled(jnp.sqrt(duration) * (1 - fraction), normal_like(late_key, tree))
    return Path(early, jax.tree.map(jnp.add, early, late))


def _midpoint_step(key, x, step_size, estimator):
    fraction_key, path_key, first_key, second_key = jax.random.split(key, 4)
    dtype = jax.tree.leaves(x)[0].dtype
    h = jnp.asarray(step_size).astype(dtype)
    fraction = jax.random.uniform(fraction_key, (), dtype)
    path = brownian_path(path_key, x, 2 * h, fraction)
    slope = estimator.estimate(first_key, (), x)[0].gradient
    middle = jax.tree.map(jnp.add, axpy(-h * fraction, slope, x), path.early)
    slope = estimator.estimate(second_key, (), middle)[0].gradient
    return jax.tree.map(jnp.add, axpy(-h, slope, x), path.whole)


randomized_midpoint = simple_sampler(
    _midpoint_step, claims=Claims(Source("", "own"), StationaryLaw(order=1))
)


# ---------------------------------------------------------------------------------------------------------------------
# 2. Groenbech-Jensen and Farago's integrator. beta ~ N(0, 2 c h), by the papers the same in both lines; b = 1 / (1 + c h / 2m), a = b (1 - c h / 2m):
#        x' = x + b h v + b h^2 / 2m f + b h / 2m beta,    v' = a v + h / 2m (a f + f') + b / m beta.
#    Wrong: each line draws its own. Then the covariance c h^2 / m^2 that x and v get in a step is missing, at the order h of a rate:
#    on U = k x^2 / 2 (m = 1) 0 = d<xv> = <v^2> - k <x^2> - c <xv> - c h, <xv> = 0, so that <x^2> = (1 - c h) / k + O(h^2): order 1, claimed is 2.


class Verlet(NamedTuple):
    position: Any
    velocity: Any
    gradient: Any


@dataclass(frozen=True)
class GronbechJensenFarago:
    friction: float = 1.0
    mass: float = 1.0

    claims = Claims(Source("", "own"), StationaryLaw(order=2))

    def init(self, key, position, estimator):
        velocity_key, gradient_key = jax.random.split(key)
        velocity = scaled(self.mass**-0.5, normal_like(velocity_key, position))
        return Verlet(position, velocity, estimator.estimate(gradient_key, (), position)[0].gradient)

    def step(self, key, state, step_size, estimator):
        drift_key, kick_key, gradient_key = jax.random.split(key, 3)
        h, m = step_size, self.mass
        half = self.friction * h / (2 * m)
        b = 1 / (1 + half)
        a = (1 - half) / (1 + half)
        amplitude = (2 * self.friction * h) ** 0.5

        x = axpy(b * h, state.velocity, state.position)
        x = axpy(-b * h * h / (2 * m), state.gradient, x)
        x = axpy(b * h / (2 * m) * amplitude, normal_like(drift_key, x), x)
        gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        v = scaled(a, state.velocity)
        v = axpy(-a * h / (2 * m), state.gradient, v)
        v = axpy(-h / (2 * m), gradient, v)
        v = axpy(b / m * amplitude, normal_like(kick_key, v), v)
        return Verlet(x, v, gradient)


# ---------------------------------------------------------------------------------------------------------------------
# 3. Adaptive Langevin (Nose-Hoover with noise), for trees: one friction xi for all n numbers of the tree.
#        dx = p dt,  dp = -grad U dt - xi p dt + sqrt(2 A) dW,  dxi = (|p|^2 - n) / (mu n) dt
#    keeps exp(-U - |p|^2 / 2 - mu n (xi - A)^2 / 2); the step is the palindrome B A D F N F D A B of exact flows.
#    Wrong: the count is that of the first leaf, n_1. With T = n_1 / n the dynamics dxi = (|p|^2 - n T) / (mu n_1) keep
#    exp(-(U + |p|^2 / 2) / T - mu n_1 (xi - A / T)^2 / (2 T)): temperature n_1 / n for trees of several leaves, right for one array.


class Thermostatted(NamedTuple):
    position: Any
    momentum: Any
    xi: jax.Array


class AdaptiveLangevin:
    claims = Claims(Source("", "own"), StationaryLaw(order=2))

    def __init__(self, noise=1.0, inertia=1.0):
        if noise <= 0 or inertia <= 0:
            raise ValueError("noise and inertia are positive")
        self.noise, self.inertia = noise, inertia

    def init(self, key, position, estimator):
        dtype = jax.tree.leaves(position)[0].dtype
        return Thermostatted(position, normal_like(key, position), jnp.asarray(self.noise, dtype))

    def _heat(self, xi, momentum, duration):
        leaves = jax.tree.leaves(momentum)
        count = leaves[0].size
        excess = sum(jnp.sum(a * a).astype(xi.dtype) for a in leaves) / count - 1
        return xi + duration * excess / self.inertia

    def step(self, key, state, step_size, estimator):
        before_key, noise_key, after_key = jax.random.split(key, 3)
        x, p, xi = state
        h = jnp.asarray(step_size).astype(xi.dtype)
        p = axpy(-h / 2, estimator.estimate(before_key, (), x)[0].gradient, p)
        x = axpy(h / 2, p, x)
        xi = self._heat(xi, p, h / 2)
        p = scaled(jnp.exp(-xi * h / 2), p)
        p = axpy(jnp.sqrt(2 * self.noise * h), normal_like(noise_key, p), p)
        p = scaled(jnp.exp(-xi * h / 2), p)
        xi = self._heat(xi, p, h / 2)
        x = axpy(h / 2, p, x)
        p = axpy(-h / 2, estimator.estimate(after_key, (), x)[0].gradient, p)
        return Thermostatted(x, p, xi)


# ---------------------------------------------------------------------------------------------------------------------
# 4. Irreversible Langevin. Coordinates in pairs (u, v), each with the skew matrix [[0, j], [-j, 0]], j = s tanh u; a last one without partner
#    has none. Q depends on the state: Gamma_v = d_u Q_vu = -j'(u) = -s / cosh(u)^2, Gamma_u = d_v j = 0.
#        du = (-U_u - j U_v) dt + noise,   dv = (-U_v + j U_u - j') dt + noise,   noise of variance 2 dt.
#    Wrong: Gamma is left out ("Q is skew, so it does not change the law"). What is there too much, + j'(u) > 0 in the drift of v, pulls each second
#    coordinate up: 0 = E dv = -E U_v + E[j U_u + ...]; on a standard normal E v = E[u tanh u], 0.52 (simulated), where 0 is due. Right for d = 1.


def irreversible(strength=1.0):
    def step(key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        flat, unravel = ravel_pytree(position)
        slope, _ = ravel_pytree(estimator.estimate(gradient_key, (), position)[0].gradient)
        h = jnp.asarray(step_size).astype(flat.dtype)
        paired = 2 * (flat.size // 2)
        spin = strength * jnp.tanh(flat[0:paired:2])
        drift = -slope
        drift = drift.at[0:paired:2].add(-spin * slope[1:paired:2])
        drift = drift.at[1:paired:2].add(spin * slope[0:paired:2])
        noise = jax.random.normal(noise_key, flat.shape, flat.dtype)
        return unravel(flat + h * drift + jnp.sqrt(2 * h) * noise)

    return simple_sampler(step, claims=Claims(Source("", "own"), StationaryLaw(order=1)))

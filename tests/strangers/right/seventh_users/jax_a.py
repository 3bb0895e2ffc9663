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
#    W(h) = W(a h) + (W(h) - W(a h)), independent, of variances a h and (1 - a) h. So, given a, the noise of x' is N(0, 2 h);
#    grad U(m) = grad U(x) + O(sqrt h) with mean grad U(x) + O(h): E dx = -h grad U + O(h^2), Cov dx = 2 h + O(h^2): Langevin at
#    temperature 1, order 1.


class Path(NamedTuple):
    early: Any  # W(a h)
    whole: Any  # W(h)


def brownian_path(key, tree, duration, fraction):
    early_key, late_key = jax.random.split(key)
    early = scaled(jnp.sqrt(duration * fraction), normal_like(early_key, tree))
    late = scaled(jnp.sqrt(duration * (1 - fraction)), normal_like(late_key, tree))
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
# 2. Groenbech-Jensen and Farago's integrator. beta ~ N(0, 2 c h), the same in both lines; b = 1 / (1 + c h / 2m), a = b (1 - c h / 2m):
#        x' = x + b h v + b h^2 / 2m f + b h / 2m beta,    v' = a v + h / 2m (a f + f') + b / m beta.
#    Without v: x'' - x' = a (x' - x) + b h^2 / m f' + b h / 2m (beta + beta'), as 2 b - a = 1. This is the recursion of the positions of
#    BAOAB with the decay a = exp(-c~ h / m), c~ = c (1 + O(h^2)) : (1 + a) / 2 = b and 1 - a^2 = 2 c h b^2 / m. So the positions have the law
#    of BAOAB: order 2 (on Gaussians exact at each h).


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
        kick_key, gradient_key = jax.random.split(key)
        h, m = step_size, self.mass
        half = self.friction * h / (2 * m)
        b = 1 / (1 + half)
        a = (1 - half) / (1 + half)
        kick = scaled((2 * self.friction * h) ** 0.5, normal_like(kick_key, state.position))

        x = axpy(b * h, state.velocity, state.position)
        x = axpy(-b * h * h / (2 * m), state.gradient, x)
        x = axpy(b * h / (2 * m), kick, x)
        gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        v = scaled(a, state.velocity)
        v = axpy(-a * h / (2 * m), state.gradient, v)
        v = axpy(-h / (2 * m), gradient, v)
        v = axpy(b / m, kick, v)
        return Verlet(x, v, gradient)


# ---------------------------------------------------------------------------------------------------------------------
# 3. Adaptive Langevin (Nose-Hoover with noise), for trees: one friction xi for all n numbers of the tree.
#        dx = p dt,  dp = -grad U dt - xi p dt + sqrt(2 A) dW,  dxi = (|p|^2 - n) / (mu n) dt
#    keeps exp(-U - |p|^2 / 2 - mu n (xi - A)^2 / 2): the friction's term xi (|p|^2 - n) is cancelled by that of xi. The step is the palindrome
#    B A D F N F D A B of exact flows (F: p exp(-xi h / 2), N: p + N(0, 2 A h)), so its generator is L to second order: order 2.


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
        count = sum(a.size for a in leaves)
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
#    div(pi (-j U_v, j U_u - j')) / pi = (j U_u U_v - j' U_v - j U_uv) + (-j U_u U_v + j' U_v + j U_uv) = 0, as grad pi = -pi grad U. Euler: order 1.


def irreversible(strength=1.0):
    def step(key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        flat, unravel = ravel_pytree(position)
        slope, _ = ravel_pytree(estimator.estimate(gradient_key, (), position)[0].gradient)
        h = jnp.asarray(step_size).astype(flat.dtype)
        paired = 2 * (flat.size // 2)
        swing = jnp.tanh(flat[0:paired:2])
        spin = strength * swing
        drift = -slope
        drift = drift.at[0:paired:2].add(-spin * slope[1:paired:2])
        drift = drift.at[1:paired:2].add(spin * slope[0:paired:2] - strength * (1 - swing**2))
        noise = jax.random.normal(noise_key, flat.shape, flat.dtype)
        return unravel(flat + h * drift + jnp.sqrt(2 * h) * noise)

    return simple_sampler(step, claims=Claims(Source("", "own"), StationaryLaw(order=1)))

"""Five integrators for dX = -grad U dt + sqrt(2) dW (or a relative of it), on any pytree."""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def normals_like(key, tree):
    """One independent standard normal for every number of a tree."""
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return treedef.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves, strict=True)])


def second_order():
    return Claims(Source("", "own notes"), StationaryLaw(order=2), conditions=("exact gradient",))


# --- 1. Heun: for additive noise, trapezoidal drift with one common kick has weak order two (Platen) ---------------


def heun_step(key, position, step_size, estimator):
    k_before, k_after, k_noise = jax.random.split(key, 3)
    flat, rebuild = ravel_pytree(position)

    def slope(k, v):
        return ravel_pytree(estimator.estimate(k, (), rebuild(v))[0].gradient)[0]

    kick = (2 * step_size) ** 0.5 * jax.random.normal(k_noise, flat.shape, flat.dtype)
    g_before = slope(k_before, flat)
    g_after = slope(k_after, flat - step_size * g_before + kick)
    return rebuild(flat - 0.5 * step_size * (g_before + g_after) + kick)


heun = simple_sampler(heun_step, claims=second_order())


# --- 2. randomised midpoint: the force is taken at a uniform time of the same Brownian path ------------------------


@dataclass(frozen=True)
class RandomisedMidpoint:
    temperature: float = 1.0

    def step(self, key, position, step_size, estimator):
        k_when, k_early, k_late, k_here, k_there = jax.random.split(key, 5)
        dtype = jnp.result_type(*jax.tree.leaves(position))
        when = jax.random.uniform(k_when, (), dtype)
        amplitude = (2 * self.temperature * step_size) ** 0.5
        # Brownian motion at the random time, and what it gains from there to the end of the step
        early = jax.tree.map(lambda n: amplitude * when**0.5 * n, normals_like(k_early, position))
        late = jax.tree.map(lambda n: amplitude * (1 - when) ** 0.5 * n, normals_like(k_late, position))
        here = estimator.estimate(k_here, (), position)[0].gradient
        inner = jax.tree.map(lambda x, g, w: x - when * step_size * g + w, position, here, early)
        there = estimator.estimate(k_there, (), inner)[0].gradient
        return jax.tree.map(lambda x, g, v, w: x - step_size * g + v + w, position, there, early, late)


# --- 3. Strang: half of the noise, the deterministic gradient flow by Runge-Kutta, half of the noise ---------------

NODES = (0.0, 0.5, 0.5, 1.0)
WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)


def strang_step(key, position, step_size, estimator):
    flat, rebuild = ravel_pytree(position)
    k_first, k_last, k_flow = jax.random.split(key, 3)
    half_noise = step_size**0.5  # variance 2 (h / 2)
    start = flat + half_noise * jax.random.normal(k_first, flat.shape, flat.dtype)

    def stage(carry, tableau_row):
        slope, total = carry
        k, node, weight = tableau_row
        point = rebuild(start + node * step_size * slope)
        slope = -ravel_pytree(estimator.estimate(k, (), point)[0].gradient)[0]
        return (slope, total + weight * slope), None

    table = (jax.random.split(k_flow, 4), jnp.asarray(NODES, flat.dtype), jnp.asarray(WEIGHTS, flat.dtype))
    (_, velocity), _ = jax.lax.scan(stage, (jnp.zeros_like(flat), jnp.zeros_like(flat)), table)
    end = start + step_size * velocity
    return rebuild(end + half_noise * jax.random.normal(k_last, flat.shape, flat.dtype))


strang = simple_sampler(strang_step, claims=second_order())


# --- 4. a constant preconditioner D = A A^T and a constant swirl J = -J^T, both without a matrix -------------------


def _swirl_step(key, position, step_size, estimator, *, coupling, swirl):
    k_gradient, k_noise = jax.random.split(key)
    flat, rebuild = ravel_pytree(position)
    g = ravel_pytree(estimator.estimate(k_gradient, (), position)[0].gradient)[0]
    xi = jax.random.normal(k_noise, flat.shape, flat.dtype)

    lower = lambda v: v + coupling * jnp.roll(v, 1)  # A
    upper = lambda v: v + coupling * jnp.roll(v, -1)  # A^T
    turn = lambda v: swirl * (jnp.roll(v, 1) - jnp.roll(v, -1))  # J, skew; nothing in one and two dimensions
    return rebuild(flat - step_size * (lower(upper(g)) + turn(g)) + (2 * step_size) ** 0.5 * lower(xi))


swirling = simple_sampler(functools.partial(_swirl_step, coupling=0.4, swirl=0.7))


# --- 5. a mobility that depends on the place, with its divergence made by the noise itself -------------------------


@dataclass(frozen=True)
class KineticNoise:
    """Huetter and Oettinger's scheme: dx = -m(x) U' dt + m'(x) dt + sqrt(2 m(x)) dW, m' appears nowhere in the code."""

    wave: float = 0.4

    def mobility(self, x):  # positive for every wave, and different from coordinate to coordinate
        return 1 + jnp.tanh(self.wave) * jnp.sin(x)

    def step(self, key, position, step_size, estimator):
        k_gradient, k_noise = jax.random.split(key)
        gradient = estimator.estimate(k_gradient, (), position)[0].gradient

        def move(x, g, n):
            here = self.mobility(x)
            kick = (2 * step_size * here) ** 0.5 * n
            there = self.mobility(x + kick)
            # E (there / here - 1) kick / 2 = m' E kick^2 / (2 m) = h m'
            return x - step_size * here * g + 0.5 * (1 + there / here) * kick

        return jax.tree.map(move, position, gradient, normals_like(k_noise, position))

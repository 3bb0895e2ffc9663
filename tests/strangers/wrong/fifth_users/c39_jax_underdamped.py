"""Samplers with a momentum in JAX: BAOAB, a Nose-Hoover thermostat, microcanonical Langevin."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class BAOABState(NamedTuple):
    position: jax.Array
    momentum: jax.Array
    force: jax.Array


@dataclass(frozen=True)
class BAOAB:
    """Leimkuhler & Matthews' splitting, one gradient a step."""

    gamma: float = 1.0
    claims = Claims(Source("", "BAOAB"), StationaryLaw(order=2))

    def init(self, key, position, estimator):
        k_p, k_g = jax.random.split(key)
        force = -estimator.estimate(k_g, (), position)[0].gradient
        return BAOABState(position, jax.random.normal(k_p, position.shape, position.dtype), force)

    def step(self, key, state, dt, estimator):
        k_g, k_o = jax.random.split(key)
        q, p, f = state
        p = p + 0.5 * dt * f
        q = q + 0.5 * dt * p
        c1 = jnp.exp(-self.gamma * dt).astype(p.dtype)
        p = c1 * p + jnp.sqrt(1 - c1**2) * jax.random.normal(k_o, p.shape, p.dtype)
        f = -estimator.estimate(k_g, (), q)[0].gradient
        q = q + 0.5 * dt * p
        p = p + 0.5 * dt * f
        return BAOABState(q, p, f)


class ThermostatState(NamedTuple):
    position: Any
    momentum: Any
    xi: jax.Array


def _normal_tree(key, tree):
    leaves, treedef = jax.tree_util.tree_flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return treedef.unflatten([jax.random.normal(k, l.shape, l.dtype) for k, l in zip(keys, leaves)])


class SGNHT:
    """Ding et al. (2014): the friction follows the kinetic energy."""

    def __init__(self, diffusion=1.0):
        self.diffusion = diffusion

    def init(self, key, position, estimator):
        dtype = jax.tree_util.tree_leaves(position)[0].dtype
        return ThermostatState(position, _normal_tree(key, position), jnp.asarray(self.diffusion, dtype))

    def step(self, key, state, h, estimator):
        k_g, k_n = jax.random.split(key)
        theta, p, xi = state
        g = estimator.estimate(k_g, (), theta)[0].gradient
        amplitude = jnp.sqrt(2 * self.diffusion * h)
        p = jax.tree_util.tree_map(
            lambda p_, g_, n_: p_ - h * g_ - h * xi * p_ + amplitude.astype(p_.dtype) * n_, p, g, _normal_tree(k_n, p)
        )
        theta = jax.tree_util.tree_map(lambda x, p_: x + h * p_, theta, p)
        leaves = jax.tree_util.tree_leaves(p)
        kinetic = sum(jnp.vdot(l, l) for l in leaves) / len(leaves)
        return ThermostatState(theta, p, xi + h * (kinetic - 1.0))


class MCLMCState(NamedTuple):
    position: Any
    direction: jax.Array


class MCLMC:
    """Microcanonical Langevin Monte Carlo, unadjusted: a unit velocity that is bent by the gradient."""

    def __init__(self, decoherence_length=2.0):
        if decoherence_length <= 0:
            raise ValueError("decoherence_length must be positive")
        self.L = decoherence_length

    def init(self, key, position, estimator):
        flat, _ = ravel_pytree(position)
        if flat.size < 2:
            raise ValueError("microcanonical dynamics needs at least two dimensions")
        u = jax.random.normal(key, flat.shape, flat.dtype)
        return MCLMCState(position, u / jnp.linalg.norm(u))

    @staticmethod
    def _bend(u, grad, eps):
        dims = u.shape[0]
        norm = jnp.linalg.norm(grad)
        e = -grad / norm
        delta = eps * norm / dims
        zeta = jnp.exp(-delta)
        ue = jnp.dot(u, e)
        new = e * (1 - zeta) * (1 + zeta + ue * (1 - zeta)) + 2 * zeta * u
        return new / jnp.linalg.norm(new)

    def step(self, key, state, step_size, estimator):
        k1, k2, k_noise = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        grad = lambda k, y: ravel_pytree(estimator.estimate(k, (), unravel(y))[0].gradient)[0]
        u = self._bend(state.direction, grad(k1, x), 0.5 * step_size)
        x = x + step_size * u
        u = self._bend(u, grad(k2, x), 0.5 * step_size)
        nu = jnp.sqrt(jnp.expm1(2 * step_size / self.L) / u.shape[0])
        u = u + nu * jax.random.normal(k_noise, u.shape, u.dtype)
        return MCLMCState(unravel(x), u / jnp.linalg.norm(u))

"""Discretisations of overdamped Langevin dynamics that are not Euler-Maruyama with Gaussian noise."""

import functools
import math
from typing import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Source, StationaryLaw


def flat_gradient(estimator, unravel, key, flat):
    return ravel_pytree(estimator.estimate(key, (), unravel(flat))[0].gradient)[0].astype(flat.dtype)


# ---------------------------------------------------------------- 1. implicit midpoint


def _midpoint(key, position, step_size, estimator, *, max_newton):
    """Implicit midpoint rule x' = x - h grad U((x + x') / 2) + sqrt(2 h) n, solved by Newton's method to round-off.

    With y = (x + x') / 2: y + h/2 grad U(y) = x + sqrt(h / 2) n, x' = 2 y - x. Additive noise, so the midpoint adds no drift: weak
    order 1 at least; on a Gaussian x' (1 + hk/2) = x (1 - hk/2) + sqrt(2h) n has the variance 1/k. One minibatch for the whole solve.
    """
    k_model, k_noise = jax.random.split(key)
    x, unravel = ravel_pytree(position)
    h = jnp.asarray(step_size, x.dtype)
    goal = x + jnp.sqrt(h / 2) * jax.random.normal(k_noise, x.shape, x.dtype)
    tolerance = 8 * jnp.finfo(x.dtype).eps

    def residual(y):
        return y + h / 2 * flat_gradient(estimator, unravel, k_model, y) - goal

    def unfinished(carry):
        count, y, change = carry
        return (count < max_newton) & (change > tolerance * (1 + jnp.max(jnp.abs(y))))

    def newton(carry):
        count, y, _ = carry
        move = jnp.linalg.solve(jax.jacfwd(residual)(y), residual(y))
        return count + 1, y - move, jnp.max(jnp.abs(move))

    start = (jnp.zeros((), jnp.int32), x, jnp.asarray(jnp.inf, x.dtype))
    _, y, _ = jax.lax.while_loop(unfinished, newton, start)
    return unravel(2 * y - x)


implicit_midpoint = simple_sampler(functools.partial(_midpoint, max_newton=25))


# ---------------------------------------------------------------- 2. Langevin with a clock for every coordinate


def random_half(key, h, size):
    """Half of the coordinates, by a random permutation, have the time h d / k; the others rest."""
    some = math.ceil(size / 2)
    rank = jax.random.permutation(key, size)
    return jnp.where(rank < some, h * (size / some), jnp.zeros_like(h))


def langevin(clock: Callable):
    """x_i' = x_i - t_i grad_i U + sqrt(2 t_i) n_i, the times t drawn by `clock` without looking at x, E t_i = h.

    Given t a step has the drift -t_i grad_i U and the variance 2 t_i; on average -h grad U and 2 h: the generator is that of
    Langevin, and E t_i t_j = O(h^2): bias O(h). (Without the factor d / k it would be the same law in another time;
    with the factor in the gradient alone it would be wrong.)
    """

    def step(key, position, step_size, estimator):
        k_model, k_clock, k_noise = jax.random.split(key, 3)
        x, unravel = ravel_pytree(position)
        times = clock(k_clock, jnp.asarray(step_size, x.dtype), x.size)
        noise = jax.random.normal(k_noise, x.shape, x.dtype)
        return unravel(x - times * flat_gradient(estimator, unravel, k_model, x) + jnp.sqrt(2 * times) * noise)

    return step


random_block = simple_sampler(langevin(random_half))


# ---------------------------------------------------------------- 3. weak second order with three-point noise


def three_points(key, shape, dtype):
    """+-sqrt(3) with probability 1/6 each, else 0: moments 0, 1, 0, 3, 0 as of N(0, 1)."""
    u = jax.random.uniform(key, shape, dtype)
    return math.sqrt(3) * ((u >= 5 / 6).astype(dtype) - (u < 1 / 6).astype(dtype))


class PlatenHeun:
    """Platen's explicit weak scheme of order 2 for additive noise (Kloeden and Platen, 15.1) with three-point noise.

    y = x - h g(x) + sqrt(2h) n, x' = x - h/2 (g(x) + g(y)) + sqrt(2h) n. Mean -h g + h^2/2 (g'g - g''), covariance 2h - 2 h^2 g' + h^2 gg,
    third moment -6 h^2 g, fourth 12 h^2: those of the SDE up to O(h^3). So the law errs by O(h^2) with exact gradients.
    """

    claims = Claims(Source("", "own"), StationaryLaw(order=2), conditions=("exact gradient",))

    def init(self, key, position, estimator):
        return {"position": position, "estate": estimator.init(key, position)}

    def position(self, state):
        return state["position"]

    def step(self, key, state, step_size, estimator):
        k_one, k_two, k_noise = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state["position"])
        h = jnp.asarray(step_size, x.dtype)
        kick = jnp.sqrt(2 * h) * three_points(k_noise, x.shape, x.dtype)
        one, estate = estimator.estimate(k_one, state["estate"], state["position"])
        slope = ravel_pytree(one.gradient)[0]
        two, estate = estimator.estimate(k_two, estate, unravel(x - h * slope + kick))
        x = x - h / 2 * (slope + ravel_pytree(two.gradient)[0]) + kick
        return {"position": unravel(x), "estate": estate}


three_point_heun = PlatenHeun()


# ---------------------------------------------------------------- 4. preconditioner that depends on the state


def mobility(position):
    """G(x) = 1/2 + 1 / (1 + mean x^2)."""
    flat, _ = ravel_pytree(position)
    return 0.5 + 1 / (1 + jnp.mean(flat**2))


def mobile_step(key, position, step_size, estimator):
    """Euler step (Ito) of dx = (-G grad U + grad G) dt + sqrt(2 G) dW, G(x) = 1/2 + 1 / (1 + mean x^2) times the identity.

    Complete recipe with D = G 1: Gamma_i = sum_j d_j (G delta_ij) = d_i G, here by autodiff. Bias O(h).
    """
    k_model, k_noise = jax.random.split(key)
    slope = estimator.estimate(k_model, (), position)[0].gradient
    g, gamma = jax.value_and_grad(mobility)(position)
    leaves, treedef = jax.tree.flatten(position)
    keys = treedef.unflatten(list(jax.random.split(k_noise, len(leaves))))

    def move(x, du, dg, k):
        h, local = jnp.asarray(step_size, x.dtype), g.astype(x.dtype)
        return x + h * (dg - local * du) + jnp.sqrt(2 * h * local) * jax.random.normal(k, x.shape, x.dtype)

    return jax.tree.map(move, position, slope, gamma, keys)


state_dependent_mobility = simple_sampler(mobile_step)


# ---------------------------------------------------------------- 5. two antithetic chains, shown in turn


def antithetic_init(key, position, estimator):
    return {"position": position, "twin": position}


def antithetic_step(key, state, step_size, estimator):
    """Two SGLD chains in one state with the noise n and -n; they change places every step, so that each is shown in turn.

    -n has the law of n: each chain by itself is SGLD, x - h grad U + N(0, 2 h), so what is shown has the law of SGLD (bias O(h)).
    The two are not independent of each other; nothing says that they are.
    """
    k_a, k_b, k_noise = jax.random.split(key, 3)
    a, unravel = ravel_pytree(state["position"])
    b, _ = ravel_pytree(state["twin"])
    h = jnp.asarray(step_size, a.dtype)
    noise = jnp.sqrt(2 * h) * jax.random.normal(k_noise, a.shape, a.dtype)
    a = a - h * flat_gradient(estimator, unravel, k_a, a) + noise
    b = b - h * flat_gradient(estimator, unravel, k_b, b) - noise
    return {"position": unravel(b), "twin": unravel(a)}


antithetic_pair = simple_sampler(antithetic_step, init=antithetic_init)

"""Kernels that keep exp(-U) at every step size: persistent, multinomial, bouncing, tempered, sliced."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own derivation"), ExactLaw(), conditions=("exact potential and gradient",))


def gaussian(key, tree):
    flat, back = ravel_pytree(tree)
    return back(jax.random.normal(key, flat.shape, flat.dtype))


def half_square(tree):
    return 0.5 * sum(jnp.vdot(a, a) for a in jax.tree.leaves(tree))


def log_uniform(key, like):
    return jnp.log(jax.random.uniform(key, (), like.dtype))


# ------------------------------------------------------------------------------------------------------------------
# Horowitz: the momentum is kept in part, and turned round where a trajectory is rejected. U and its slope are cached.


class Phase(NamedTuple):
    position: Any
    momentum: Any
    energy: jax.Array
    slope: Any


@dataclass(frozen=True)
class PersistentHMC:
    leaps: int = 2
    memory: float = 1.0

    claims = EXACT

    def init(self, key, position, estimator):
        k_gradient, k_momentum = jax.random.split(key)
        found, _ = estimator.estimate(k_gradient, (), position)
        return Phase(position, gaussian(k_momentum, position), found.potential, found.gradient)

    def step(self, key, state, step_size, estimator):
        k_mix, k_path, k_test = jax.random.split(key, 3)
        age = self.leaps * step_size / self.memory
        fresh = jnp.sqrt(-jnp.expm1(-2 * age))
        p = jax.tree.map(lambda m, n: jnp.exp(-age) * m + fresh * n, state.momentum, gaussian(k_mix, state.position))
        start = state._replace(momentum=p)
        keys = jax.random.split(k_path, self.leaps)

        def leap(i, at):
            p = jax.tree.map(lambda m, g: m - 0.5 * step_size * g, at.momentum, at.slope)
            x = jax.tree.map(lambda q, m: q + step_size * m, at.position, p)
            found, _ = estimator.estimate(keys[i], (), x)
            p = jax.tree.map(lambda m, g: m - 0.5 * step_size * g, p, found.gradient)
            return Phase(x, p, found.potential, found.gradient)

        end = jax.lax.fori_loop(0, self.leaps, leap, start)
        gain = start.energy + half_square(start.momentum) - end.energy - half_square(end.momentum)
        turned = start._replace(momentum=jax.tree.map(jnp.negative, start.momentum))
        taken = log_uniform(k_test, gain) < gain
        return jax.tree.map(lambda new, old: jnp.where(taken, new, old), end, turned)


# ------------------------------------------------------------------------------------------------------------------
# No test at all: of the points of an orbit of fixed length, in which ours has a uniform place, one is drawn ~ exp(-H).


@dataclass(frozen=True)
class OrbitSampler:
    length: int = 4

    claims = EXACT

    def step(self, key, position, step_size, estimator):
        k_momentum, k_here, k_ahead, k_behind, k_place, k_pick = jax.random.split(key, 6)
        x0, rebuild = ravel_pytree(position)
        p0 = jax.random.normal(k_momentum, x0.shape, x0.dtype)

        def look(k, x):
            found = estimator.estimate(k, (), rebuild(x))[0]
            return found.potential, ravel_pytree(found.gradient)[0]

        u0, g0 = look(k_here, x0)

        def walk(k, h):
            def leap(carry, k):
                x, p, g = carry
                p = p - h / 2 * g
                x = x + h * p
                u, g = look(k, x)
                p = p - h / 2 * g
                return (x, p, g), (x, u + jnp.sum(p * p) / 2)

            return jax.lax.scan(leap, (x0, p0, g0), jax.random.split(k, self.length))[1]

        ahead, behind = walk(k_ahead, step_size), walk(k_behind, -step_size)
        here = (x0[None], (u0 + jnp.sum(p0 * p0) / 2)[None])
        orbit, energy = (jnp.concatenate([b[::-1], c, a]) for b, c, a in zip(behind, here, ahead, strict=True))
        first = jax.random.randint(k_place, (), 0, self.length + 1)
        index = jnp.arange(2 * self.length + 1)
        allowed = (index >= first) & (index <= first + self.length) & jnp.isfinite(energy)
        return rebuild(orbit[jax.random.categorical(k_pick, jnp.where(allowed, -energy, -jnp.inf))])


# ------------------------------------------------------------------------------------------------------------------
# Delayed rejection with a bounce: straight on, else on from there with a velocity mirrored in the gradient, else back.


def bouncing_init(key, position, estimator):
    k_velocity, k_energy = jax.random.split(key)
    energy = estimator.estimate(k_energy, (), position)[0].potential
    return {"position": position, "velocity": gaussian(k_velocity, position), "energy": energy}


def bouncing_step(key, state, step_size, estimator):
    k_velocity, k_wall, k_end, k_one, k_two = jax.random.split(key, 5)
    x, rebuild = ravel_pytree(state["position"])
    kept = jnp.exp(-step_size)
    v = ravel_pytree(state["velocity"])[0]
    v = kept * v + jnp.sqrt(-jnp.expm1(-2 * step_size)) * jax.random.normal(k_velocity, v.shape, v.dtype)

    wall = x + step_size * v
    found = estimator.estimate(k_wall, (), rebuild(wall))[0]
    normal = ravel_pytree(found.gradient)[0]
    length = jnp.linalg.norm(normal)
    normal = jnp.where(length > 0, normal / jnp.where(length > 0, length, 1), 0)
    mirrored = v - 2 * jnp.dot(v, normal) * normal  # a reflection that depends on the wall alone
    end = wall + step_size * mirrored
    u_here, u_wall = state["energy"], found.potential
    u_end = estimator.estimate(k_end, (), rebuild(end))[0].potential

    def log_refused(u_from):  # log of 1 - min(1, exp(u_from - u_wall)): the wall is refused from both of its sides
        return jnp.log(-jnp.expm1(jnp.minimum(u_from - u_wall, 0)))

    straight = log_uniform(k_one, u_here) < u_here - u_wall
    bounce = log_uniform(k_two, u_here) < u_here - u_end + log_refused(u_end) - log_refused(u_here)
    choose = lambda a, b, c: jnp.where(straight, a, jnp.where(bounce, b, c))
    return {
        "position": rebuild(choose(wall, end, x)),
        "velocity": rebuild(choose(v, mirrored, -v)),
        "energy": choose(u_wall, u_end, u_here),
    }


bouncing = simple_sampler(bouncing_step, init=bouncing_init, claims=EXACT)


# ------------------------------------------------------------------------------------------------------------------
# Parallel tempering: random walks at several temperatures, stacked along a first axis, and one exchange of neighbours.

TEMPERATURES = (1.0, 1.5, 2.2)


class Ladder(NamedTuple):
    rungs: Any
    energies: jax.Array


def energies_of(key, rungs, estimator):
    keys = jax.random.split(key, len(TEMPERATURES))
    return jax.vmap(lambda k, x: estimator.estimate(k, (), x)[0].potential)(keys, rungs)


def ladder_init(key, position, estimator):
    rungs = jax.tree.map(lambda a: jnp.stack([a] * len(TEMPERATURES)), position)
    return Ladder(rungs, energies_of(key, rungs, estimator))


def ladder_step(key, state, step_size, estimator):
    k_walk, k_energy, k_walk_test, k_pair, k_swap_test = jax.random.split(key, 5)
    u = state.energies
    temperature = jnp.asarray(TEMPERATURES, u.dtype)

    def jiggle(a, n):
        width = (2 * step_size * temperature.astype(a.dtype)) ** 0.5
        return a + width.reshape(-1, *[1] * (a.ndim - 1)) * n

    tried = jax.tree.map(jiggle, state.rungs, gaussian(k_walk, state.rungs))
    u_tried = energies_of(k_energy, tried, estimator)
    taken = jnp.log(jax.random.uniform(k_walk_test, u.shape, u.dtype)) < (u - u_tried) / temperature
    keep = lambda new, old: jnp.where(taken.reshape(-1, *[1] * (new.ndim - 1)), new, old)
    rungs, u = jax.tree.map(keep, tried, state.rungs), keep(u_tried, u)

    low = jax.random.randint(k_pair, (), 0, len(TEMPERATURES) - 1)
    gain = (1 / temperature[low] - 1 / temperature[low + 1]) * (u[low] - u[low + 1])
    places = jnp.arange(len(TEMPERATURES))
    swapped = places.at[low].set(low + 1).at[low + 1].set(low)
    places = jnp.where(log_uniform(k_swap_test, gain) < gain, swapped, places)
    return Ladder(jax.tree.map(lambda a: a[places], rungs), u[places])


tempering = simple_sampler(
    ladder_step,
    init=ladder_init,
    position=lambda state: jax.tree.map(lambda a: a[0], state.rungs),
    claims=EXACT,
)


# ------------------------------------------------------------------------------------------------------------------
# Neal's slice sampler on a coordinate that is drawn: stepping out within a budget, shared at random by both ends.

BUDGET = 6


def slice_step(key, position, step_size, estimator):
    k_axis, k_level, k_bracket, k_share, k_energy, k_shrink = jax.random.split(key, 6)
    x, rebuild = ravel_pytree(position)
    axis = jax.random.randint(k_axis, (), 0, x.size)
    width = (8 * step_size) ** 0.5
    energy = lambda t: estimator.estimate(k_energy, (), rebuild(x.at[axis].add(t)))[0].potential
    level = energy(jnp.zeros_like(x, shape=())) + jax.random.exponential(k_level, (), x.dtype)
    inside = lambda t: energy(t) <= level

    left = -width * jax.random.uniform(k_bracket, (), x.dtype)
    share = jax.random.randint(k_share, (), 0, BUDGET)

    def step_out(end, stride, budget):
        going = lambda c: (c[1] > 0) & inside(c[0])
        return jax.lax.while_loop(going, lambda c: (c[0] + stride, c[1] - 1), (end, budget))[0]

    bracket = step_out(left, -width, share), step_out(left + width, width, BUDGET - 1 - share)

    def propose(k, low, high):
        k_now, k_later = jax.random.split(k)
        return low + (high - low) * jax.random.uniform(k_now, (), x.dtype), k_later

    def shrink(c):
        t, k, low, high = c
        low, high = jnp.where(t < 0, t, low), jnp.where(t < 0, high, t)
        return *propose(k, low, high), low, high

    found = jax.lax.while_loop(lambda c: ~inside(c[0]), shrink, (*propose(k_shrink, *bracket), *bracket))
    return rebuild(x.at[axis].add(found[0]))


coordinate_slice = simple_sampler(slice_step, claims=EXACT)

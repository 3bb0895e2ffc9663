"""Samplers as classes: a slice sampler, two that tune themselves, and a pair of replicas."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def exact():
    return Claims(Source("", "own"), ExactLaw(), conditions=("exact gradient",))


class CoordinateSlice:
    """Slice sampling of one coordinate after the other, width sqrt(2h), stepping out by at most `limit` widths.

    WRONG: with J uniform on 0 .. m - 1 steps to the left, m - 1 - J are left for the right (Neal 2003, figure 3); here
    it is m - J. The interval has m + 1 cells and x is never in the last one: a drift of half a width to the right.
    Invisible where the interval leaves the slice before its budget ends (large h).
    Size: N(0, 1): mean about 0.5 at h = 0.1, 1.7 at h = 0.01 (and E x^2 of 1.3, 3.8): it grows as h -> 0.
    """

    limit: ClassVar[int] = 4
    needs = ("potential",)
    claims = exact()

    def step(self, key, position, step_size, estimator):
        start, unravel = ravel_pytree(position)
        width = jnp.sqrt(2 * jnp.asarray(step_size, start.dtype))
        estimate_key, scan_key = random.split(key)

        def energy(x):
            return estimator.estimate(estimate_key, (), unravel(x))[0].potential

        def update(i, x):
            level_key, place_key, budget_key, shrink_key = random.split(random.fold_in(scan_key, i), 4)
            level = energy(x) + random.exponential(level_key, (), x.dtype)
            inside = lambda t: energy(x.at[i].set(t)) < level
            left = x[i] - width * random.uniform(place_key, (), x.dtype)
            right = left + width
            to_left = random.randint(budget_key, (), 0, self.limit)
            to_right = self.limit - to_left  # correct: self.limit - 1 - to_left
            left = self._step_out(inside, left, -width, to_left)
            right = self._step_out(inside, right, width, to_right)
            return x.at[i].set(self._shrink(shrink_key, inside, x[i], left, right))

        return unravel(lax.fori_loop(0, start.size, update, start))

    @staticmethod
    def _step_out(inside, edge, shift, budget):
        go_on = lambda c: (c[1] > 0) & inside(c[0])
        return lax.while_loop(go_on, lambda c: (c[0] + shift, c[1] - 1), (edge, budget))[0]

    @staticmethod
    def _shrink(key, inside, here, left, right):
        def draw(key, left, right):
            t = left + (right - left) * random.uniform(key, (), here.dtype)
            return t, inside(t)

        def body(carry):
            key, left, right, t, _, count = carry
            left, right = jnp.where(t < here, t, left), jnp.where(t < here, right, t)
            key, sub = random.split(key)
            t, found = draw(sub, left, right)
            return key, left, right, t, found, count + 1

        key, sub = random.split(key)
        t, found = draw(sub, left, right)
        carry = lax.while_loop(lambda c: ~c[4] & (c[5] < 100), body, (key, left, right, t, found, 0))
        return jnp.where(carry[4], carry[3], here)


coordinate_slice = CoordinateSlice()


class SelfTunedMala:
    """MALA whose step for coordinate i is e_i(x) = h / sqrt(1 + (dU/dx_i)^2): short where it is steep.

    WRONG: the proposal densities of both directions are taken with e(x). Correct: the way back is N(y - e(y) grad U(y),
    2 e(y)), with its normalisation. As it is, each x runs a MALA of its own step: the generator is sum e_i(x) L_i, with
    the law pi / prod e_i where U is a sum over coordinates.
    Size, as h -> 0: N(0, 1) and every coordinate of N(0, I): variance 1.42; the acceptance looks perfect.
    """

    needs = ("gradient", "potential")
    claims = exact()

    def step(self, key, position, step_size, estimator):
        noise_key, here_key, there_key, accept_key = random.split(key, 4)
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)

        def look(key, values):
            found = estimator.estimate(key, (), unravel(values))[0]
            return found.potential, ravel_pytree(found.gradient)[0]

        u, g = look(here_key, x)
        steps = h / jnp.sqrt(1 + g**2)
        y = x - steps * g + jnp.sqrt(2 * steps) * random.normal(noise_key, x.shape, x.dtype)
        v, f = look(there_key, y)
        log_q = lambda end, start, slope: -jnp.sum((end - start + steps * slope) ** 2 / (4 * steps))
        log_ratio = u - v + log_q(x, y, f) - log_q(y, x, g)
        accepted = random.uniform(accept_key, (), x.dtype) < jnp.exp(jnp.minimum(log_ratio, 0.0))
        return unravel(jnp.where(accepted, y, x))


self_tuned_mala = SelfTunedMala()


class RmsState(NamedTuple):
    position: Any
    potential: jax.Array
    gradient: jax.Array
    square: jax.Array


class MetropolisedRmsprop:
    """MALA with the preconditioner G = 1 / (1 + sqrt V) of RMSprop, V frozen within a step: "each kernel keeps pi".

    WRONG: V <- 0.9 V + 0.1 g^2 goes on for ever, so that (x, V) is one chain, in which G depends on x. Correct: let the
    gain of V go to zero, or stop after a warm-up. As h -> 0, V follows g(x)^2 within ten steps, and the law is
    pi / prod G_i = pi prod (1 + |g_i|) where U is a sum over coordinates.
    Size, h -> 0: N(0, 1) and every coordinate of N(0, I): variance 1.44. No single step with V held fixed shows it.
    """

    decay: ClassVar[float] = 0.9
    needs = ("gradient", "potential")
    claims = exact()

    def init(self, key, position, estimator):
        found = estimator.estimate(key, (), position)[0]
        gradient = ravel_pytree(found.gradient)[0]
        return RmsState(position, found.potential, gradient, gradient**2)

    def step(self, key, state, step_size, estimator):
        noise_key, estimate_key, accept_key = random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        steps = jnp.asarray(step_size, x.dtype) / (1 + jnp.sqrt(state.square))
        y = x - steps * state.gradient + jnp.sqrt(2 * steps) * random.normal(noise_key, x.shape, x.dtype)
        found = estimator.estimate(estimate_key, (), unravel(y))[0]
        slope = ravel_pytree(found.gradient)[0]
        forth = jnp.sum((y - x + steps * state.gradient) ** 2 / (4 * steps))
        back = jnp.sum((x - y + steps * slope) ** 2 / (4 * steps))
        log_ratio = state.potential - found.potential + forth - back
        accepted = random.uniform(accept_key, (), x.dtype) < jnp.exp(jnp.minimum(log_ratio, 0.0))
        gradient = jnp.where(accepted, slope, state.gradient)
        return RmsState(
            unravel(jnp.where(accepted, y, x)),
            jnp.where(accepted, found.potential, state.potential),
            gradient,
            self.decay * state.square + (1 - self.decay) * gradient**2,
        )


metropolised_rmsprop = MetropolisedRmsprop()


@dataclass(frozen=True)
class ReplicaPair:
    """Langevin at temperature 1 and at `hot`, both with noise N(0, 2h) and drift -grad U / T, and a swap every step.

    WRONG: the swap is accepted with min(1, exp(U_cold - U_hot)), as if the hot chain saw no potential at all.
    Correct: exp((1 - 1 / hot) (U_cold - U_hot)). In the limit of fast swaps, Delta = 1 - 1 / hot, the pair has the law
    exp(-(U + U') / hot) (e^-U + e^-U')^(Delta - 1) e^-U, whose first marginal is too cold.
    Size, h -> 0: N(0, 1): variance 0.80 at hot = 2, 0.90 at hot = 4.
    """

    hot: float = 2.0
    needs: ClassVar[tuple[str, ...]] = ("gradient", "potential")

    def init(self, key, position, estimator):
        return {"position": position, "hot": position}

    def _langevin(self, key, x, h, estimator, beta):
        gradient_key, noise_key = random.split(key)
        flat, unravel = ravel_pytree(x)
        g = ravel_pytree(estimator.estimate(gradient_key, (), x)[0].gradient)[0]
        h = jnp.asarray(h, flat.dtype)
        return unravel(flat - h * beta * g + jnp.sqrt(2 * h) * random.normal(noise_key, flat.shape, flat.dtype))

    def step(self, key, state, step_size, estimator):
        cold_key, hot_key, energy_key, swap_key = random.split(key, 4)
        cold = self._langevin(cold_key, state["position"], step_size, estimator, 1.0)
        hot = self._langevin(hot_key, state["hot"], step_size, estimator, 1.0 / self.hot)
        energy = lambda x: estimator.estimate(energy_key, (), x)[0].potential
        ratio = jnp.exp(jnp.minimum(energy(cold) - energy(hot), 0.0))
        swap = random.uniform(swap_key, (), ratio.dtype) < ratio
        return {
            "position": jax.tree.map(lambda a, b: jnp.where(swap, b, a), cold, hot),
            "hot": jax.tree.map(lambda a, b: jnp.where(swap, a, b), cold, hot),
        }


replica_pair = ReplicaPair()

"""Four strangers written as classes with options."""

import dataclasses
import typing

import jax
import jax.numpy as np
import jax.random as jr

from sgmcmc_verification.samplers import Claims, Composite, ExactLaw, Source, StationaryLaw


class Phase(typing.NamedTuple):
    position: jax.Array
    momentum: jax.Array


# Horowitz: p <- cos(a) p + sin(a) xi keeps N(0, 1); then leapfrog, tested by H, the momentum flipped on rejection
# (leapfrog and flip is an involution of volume 1, followed by a flip): both keep exp(-U - p^2/2).
@dataclasses.dataclass(frozen=True)
class PartialRefreshHMC:
    angle: float = 0.6
    num_leaps: int = 3
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        return Phase(position, jr.normal(key, position.shape, position.dtype))

    def step(self, key, state, step_size, estimator):
        k_batch, k_xi, k_u = jr.split(key, 3)
        x, p = state
        eps = np.sqrt(step_size).astype(x.dtype)
        at = lambda q: estimator.estimate(k_batch, (), q)[0]
        p = np.cos(self.angle) * p + np.sin(self.angle) * jr.normal(k_xi, x.shape, x.dtype)

        def leap(carry, _):
            q, r = carry
            r = r - 0.5 * eps * at(q).gradient
            q = q + eps * r
            r = r - 0.5 * eps * at(q).gradient
            return (q, r), None

        (q, r), _ = jax.lax.scan(leap, (x, p), None, length=self.num_leaps)
        gain = at(x).potential + 0.5 * np.sum(p**2) - at(q).potential - 0.5 * np.sum(r**2)
        ok = np.log(jr.uniform(k_u, (), x.dtype)) < gain
        return Phase(np.where(ok, q, x), np.where(ok, r, -p))


# Two chains, each with a preconditioner made of the other: D(x | y) = floor + 1/(1 + y^2) does not depend on x, so Gamma = 0
# and pi(x) pi(y) is kept by dx = -D grad U dt + sqrt(2D) dW in both halves at once: Euler, O(h).
class Pair(typing.NamedTuple):
    position: jax.Array
    partner: jax.Array


@dataclasses.dataclass
class CrossPreconditioned:
    floor: float = 0.5

    def init(self, key, position, estimator):
        return Pair(position, position)

    def step(self, key, state, step_size, estimator):
        def langevin(k, x, other):
            k_g, k_n = jr.split(k)
            d = self.floor + 1 / (1 + other * other)
            g = estimator.estimate(k_g, (), x)[0].gradient
            return x - step_size * d * g + np.sqrt(2 * step_size * d) * jr.normal(k_n, x.shape, x.dtype)

        k1, k2 = jr.split(key)
        x, y = state
        return Pair(langevin(k1, x, y), langevin(k2, y, x))


# Mirror Langevin with x = y + sin(y)/2 = grad phi*(y): dy = -grad U(x) dt + sqrt(2 phi''(x)) dW, phi'' = 1/(1 + cos(y)/2).
# As phi'' D = 1 for D = 1/phi'', Ito's term cancels Gamma: exp(-U) of x is kept, Euler in y errs by O(h). State: y alone.
class MirrorLangevin:
    def init(self, key, position, estimator):
        # y = x - sin(y)/2 contracts by one half
        return jax.lax.fori_loop(0, 60, lambda _, y: position - np.sin(y) / 2, position)

    def position(self, state):
        return state + np.sin(state) / 2

    def step(self, key, state, step_size, estimator):
        k_g, k_n = jr.split(key)
        g = estimator.estimate(k_g, (), self.position(state))[0].gradient
        sd = np.sqrt(2 * step_size / (1 + np.cos(state) / 2))
        return state - step_size * g + sd * jr.normal(k_n, state.shape, state.dtype)


# Unadjusted HMC: fresh p, L leapfrog steps of sqrt(h) (1 + spread w), w uniform on (-1, 1), no test. Odd powers of the step
# are odd in p, so E f(x') = f + h c (f'' - U' f') + O(h^2), c = L^2 (1 + spread^2/3) / 2: law to O(h).
@dataclasses.dataclass(frozen=True)
class JitteredUnadjustedHMC:
    num_leaps: int = 3
    spread: float = 0.4
    claims = Claims(Source("", "own"), StationaryLaw(order=1), Composite())

    def step(self, key, x, step_size, estimator):
        k_p, k_w, *k_leaps = jr.split(key, 2 + 2 * self.num_leaps)
        eps = np.sqrt(step_size) * (1 + self.spread * jr.uniform(k_w, (), x.dtype, -1, 1))
        p = jr.normal(k_p, x.shape, x.dtype)
        for first, second in zip(k_leaps[::2], k_leaps[1::2]):
            p = p - eps / 2 * estimator.estimate(first, (), x)[0].gradient
            x = x + eps * p
            p = p - eps / 2 * estimator.estimate(second, (), x)[0].gradient
        return x

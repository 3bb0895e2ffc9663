"""A small object-oriented MCMC library in numpy: ABOBA, MALA, HMC and NUTS."""

from __future__ import annotations

import logging
import types
from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw

logger = logging.getLogger(__name__)


class ABOBA:
    """Symmetric splitting with one force per step: drift, kick, OU, kick, drift."""

    backend = "host"
    claims = Claims(Source("", "Leimkuhler and Matthews (2013)"), StationaryLaw(order=2), conditions=("exact gradient",))

    def __init__(self, friction=1.0):
        if friction <= 0:
            raise ValueError(f"friction must be > 0, not {friction!r}")
        self._friction = friction

    @property
    def friction(self):
        return self._friction

    def init(self, rng, position, estimator):
        q = np.array(position)
        return types.SimpleNamespace(position=q, velocity=rng.standard_normal(q.shape).astype(q.dtype), nsteps=0)

    def step(self, rng, state, dt, estimator):
        q, v = state.position, state.velocity
        q += 0.5 * dt * v
        kick = 0.5 * dt * estimator.estimate(rng, (), q)[0].gradient
        v -= kick
        v *= np.exp(-self.friction * dt)
        v += np.sqrt(-np.expm1(-2 * self.friction * dt)) * rng.standard_normal(size=v.shape)
        v -= kick
        q += 0.5 * dt * v
        state.nsteps += 1
        return state


class MALA:
    """Metropolis-adjusted Langevin. Remembers energy and gradient of the last point, if it is asked about it again."""

    backend = "host"
    claims = Claims(Source("", "Roberts and Tweedie (1996)"), ExactLaw())

    def __init__(self):
        self._memo = None
        self.n_proposed = 0
        self.n_accepted = 0

    def __repr__(self):
        return f"MALA(accepted {self.n_accepted} of {self.n_proposed})"

    def _evaluate(self, rng, estimator, x):
        if self._memo is not None:
            owner, point, value = self._memo
            if owner is estimator and point.dtype == x.dtype and np.array_equal(point, x):
                return value
        estimate, _ = estimator.estimate(rng, (), x)
        value = (float(estimate.potential), np.asarray(estimate.gradient))
        return value

    def step(self, rng, x, h, estimator):
        u, g = self._evaluate(rng, estimator, x)
        y = x - h * g + np.sqrt(2.0 * h) * rng.normal(0.0, 1.0, x.shape)
        v, k = self._evaluate(rng, estimator, y)
        forth = np.square(y - x + h * g).sum() / (4 * h)
        back = np.square(x - y + h * k).sum() / (4 * h)
        self.n_proposed += 1
        if np.log(rng.random()) < u - v + forth - back:
            self.n_accepted += 1
            self._memo = (estimator, y.copy(), (v, k))
            return y
        self._memo = (estimator, x.copy(), (u, g))
        return x


@dataclass
class HMC:
    """HMC with a random number of leapfrog steps, 1 to max_leapfrog."""

    max_leapfrog: int = 5

    backend = "host"
    claims = Claims(Source("", "Neal (2011)"), ExactLaw())

    def __post_init__(self):
        if self.max_leapfrog < 1:
            raise ValueError("max_leapfrog must be at least 1")

    def init(self, rng, position, estimator):
        estimate = estimator.estimate(rng, (), position)[0]
        return {"position": position.copy(), "U": float(estimate.potential), "dU": np.array(estimate.gradient)}

    def step(self, rng, state, eps, estimator):
        n = int(rng.integers(1, self.max_leapfrog, endpoint=True))
        q, dU = state["position"].copy(), state["dU"].copy()
        p = rng.standard_normal(q.shape)
        H0 = state["U"] + 0.5 * float(np.vdot(p, p))
        try:
            with np.errstate(over="raise", invalid="raise"):
                p -= 0.5 * eps * dU
                for i in range(n):
                    q += eps * p
                    estimate = estimator.estimate(rng, (), q)[0]
                    dU = np.array(estimate.gradient)
                    p -= (eps if i < n - 1 else 0.5 * eps) * dU
                U = float(estimate.potential)
                H1 = U + 0.5 * float(np.vdot(p, p))
        except FloatingPointError as error:
            logger.debug("divergence: %s", error)
            H1 = np.inf
        if np.log1p(-rng.uniform()) < H0 - H1:  # False for NaN
            return {"position": q, "U": U, "dU": dU}
        return state


class NUTS:
    """The No-U-Turn Sampler, algorithm 3 of Hoffman & Gelman (2014), with a bound on the depth of the tree."""

    backend = "host"
    claims = Claims(Source("", "Hoffman and Gelman (2014), algorithm 3"), ExactLaw())
    max_depth = 5
    delta_max = 1000.0

    def step(self, rng, x, eps, estimator):
        def node(q, p, e):
            """Position, momentum, gradient of U, joint log density."""
            return q, p, np.asarray(e.gradient), -float(e.potential) - 0.5 * float(np.sum(p * p))

        def leapfrog(n, v):
            q, p, g, _ = n
            p = p - 0.5 * v * eps * g
            q = q + v * eps * p
            e = estimator.estimate(rng, (), q)[0]
            return node(q, p - 0.5 * v * eps * np.asarray(e.gradient), e)

        def no_u_turn(minus, plus):
            span = plus[0] - minus[0]
            return float(np.sum(span * minus[1])) >= 0 and float(np.sum(span * plus[1])) >= 0

        def build_tree(n, v, j):
            if j == 0:
                new = leapfrog(n, v)
                return new, new, new[0], int(log_u <= new[3]), new[3] > log_u - self.delta_max
            minus, plus, q, n1, ok = build_tree(n, v, j - 1)
            if ok:
                if v == -1:
                    minus, _, q2, n2, ok2 = build_tree(minus, v, j - 1)
                else:
                    _, plus, q2, n2, ok2 = build_tree(plus, v, j - 1)
                if n2 > 0 and rng.random() < n2 / (n1 + n2):
                    q = q2
                ok = ok2 and no_u_turn(minus, plus)
                n1 += n2
            return minus, plus, q, n1, ok

        start = node(x, rng.standard_normal(x.shape), estimator.estimate(rng, (), x)[0])
        log_u = start[3] - rng.exponential()
        minus = plus = start
        sample, n, ok, depth = x, 1, True, 0
        while ok and depth < self.max_depth:
            v = int(rng.choice([-1, 1]))
            if v == -1:
                minus, _, q, n1, ok1 = build_tree(minus, v, depth)
            else:
                _, plus, q, n1, ok1 = build_tree(plus, v, depth)
            if ok1 and rng.random() < min(1.0, n1 / n):
                sample = q
            n += n1
            ok = ok1 and no_u_turn(minus, plus)
            depth += 1
        return sample

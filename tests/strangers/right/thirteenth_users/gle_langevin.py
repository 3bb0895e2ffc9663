"""Generalised Langevin dynamics with an exponential memory, by a symmetric splitting.

The friction acts with a delay, through the kernel K(t) = (friction / memory) exp(-t / memory), and the noise has that colour:

    dq = p dt
    dp = -grad U(q) dt + c s dt                              c = sqrt(friction / memory)
    ds = -c p dt - s / memory dt + sqrt(2 T / memory) dW

with the stationary law exp(-U / T) N(p; 0, T) N(s; 0, T). p and s turn into each other by a rotation, which is solved exactly, as is
the Ornstein-Uhlenbeck process of s alone. In the order

    kick, drift, rotation, OU, rotation, drift, kick     (all but OU with half of the step)

the scheme is palindromic, and the error of the law of q is of second order. As memory -> 0 the dynamics are those of Langevin with this
friction.
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class _Particle:
    """Position, momentum, coloured force, and the gradient at the position."""

    def __init__(self, q, p, s, gradient):
        self.q = q
        self.p = p
        self.s = s
        self._gradient = gradient

    def kick(self, t):
        self.p = self.p - t * self._gradient

    def drift(self, t):
        self.q = self.q + t * self.p

    def turn(self, angle):
        cos, sin = np.cos(angle), np.sin(angle)
        self.p, self.s = cos * self.p + sin * self.s, cos * self.s - sin * self.p

    def cast(self, dtype):
        return _Particle(*(a.astype(dtype) for a in (self.q, self.p, self.s, self._gradient)))


class MemoryLangevin:
    """A sampler; a state is a particle, and steps return a new one."""

    backend = "host"

    def __init__(self, friction=2.0, memory=0.5, temperature=1.0):
        if min(friction, memory, temperature) <= 0:
            raise ValueError("friction, memory and temperature have to be positive")
        self.friction = friction
        self.memory = memory
        self.temperature = temperature
        self._rate = 1 / memory
        self._coupling = (friction / memory) ** 0.5

    @property
    def claims(self):
        return Claims(Source("", "own"), StationaryLaw(order=2, temperature=self.temperature))

    def position(self, state):
        return state.q

    def init(self, rng, position, estimator):
        q = np.array(position)
        p, s = (self._thermal(rng, q) for _ in range(2))
        return _Particle(q, p, s, self._slope(rng, q, estimator))

    def step(self, rng, state, step_size, estimator):
        half = step_size / 2
        particle = _Particle(state.q, state.p, state.s, state._gradient)
        particle.kick(half)
        particle.drift(half)
        particle.turn(self._coupling * half)
        kept = np.exp(-self._rate * step_size)
        fresh = np.sqrt(-np.expm1(-2 * self._rate * step_size))
        particle.s = kept * particle.s + fresh * self._thermal(rng, particle.q)
        particle.turn(self._coupling * half)
        particle.drift(half)
        particle._gradient = self._slope(rng, particle.q, estimator)
        particle.kick(half)
        return particle.cast(state.q.dtype)

    def _thermal(self, rng, like):
        return (self.temperature**0.5 * rng.standard_normal(like.shape)).astype(like.dtype)

    @staticmethod
    def _slope(rng, q, estimator):
        return np.asarray(estimator.estimate(rng, (), q)[0].gradient)

"""Velocity Verlet with Andersen's thermostat (Andersen 1980; analysed by E and Li 2008, Bou-Rabee and Sanz-Serna 2017)."""

import numpy as np

from sgmcmc_verification.samplers import simple_sampler


def andersen(collision_rate=1.5):
    def start(rng, position, estimator):
        q = np.array(position)
        return q, rng.standard_normal(q.shape)

    def step(rng, state, dt, estimator):
        q, p = state

        def force(at):
            return -estimator.estimate(rng, (), at)[0].gradient

        p = p + dt / 2 * force(q)
        q = q + dt * p
        p = p + dt / 2 * force(q)
        # each degree of freedom meets the bath at the times of its own Poisson clock
        collides = rng.random(q.shape) < -np.expm1(-collision_rate * dt)
        p = np.where(collides, rng.standard_normal(q.shape), p)
        return q, p

    return simple_sampler(step, init=start, position=lambda state: state[0], backend="host")


thermostat = andersen()

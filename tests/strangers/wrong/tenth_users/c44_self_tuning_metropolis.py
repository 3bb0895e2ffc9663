"""Random-walk Metropolis that tunes its own scale (Andrieu and Thoms, 2008, algorithm 4).

log scale follows the acceptance probability of each proposal by a step of Robbins and Monro, so that no step size has to be
chosen by hand: it only sets where the scale starts.
"""

import math
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

LARGEST_LOG_SCALE = 12.0


class Tuned(NamedTuple):
    position: np.ndarray
    log_scale: np.ndarray


def acceptance(before, after):
    return math.exp(min(0.0, before - after)) if math.isfinite(after) else 0.0


def tuned(log_scale, accepted_with, target_rate, gain):
    """One step towards the scale at which proposals are accepted at the target rate."""
    return np.clip(log_scale + gain * (accepted_with - target_rate), -LARGEST_LOG_SCALE, LARGEST_LOG_SCALE)


def self_tuning_metropolis(target_rate=0.35, gain=0.1):
    if not 0 < target_rate < 1:
        raise ValueError("target_rate must lie between 0 and 1")
    if not 0 < gain < 1:
        raise ValueError("gain must lie between 0 and 1")

    def init(rng, position, estimator):
        return Tuned(np.array(position), np.zeros(()))

    def step(rng, state, step_size, estimator):
        def energy(x):
            return float(estimator.estimate(rng, (), x)[0].potential)

        x = state.position
        scale = math.sqrt(2 * step_size) * math.exp(float(state.log_scale))
        proposal = x + scale * rng.standard_normal(x.shape)
        probability = acceptance(energy(x), energy(proposal))
        if rng.random() < probability:
            x = proposal
        return Tuned(x, np.asarray(tuned(float(state.log_scale), probability, target_rate, gain)))

    claims = Claims(Source("", "Andrieu and Thoms (2008), algorithm 4"), ExactLaw())
    return simple_sampler(step, init=init, backend="host", claims=claims)

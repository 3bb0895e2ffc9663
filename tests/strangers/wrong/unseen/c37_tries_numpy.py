"""Metropolis kernels of our astrophysics fits (NumPy)."""

import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key

EXACT = Claims(Source("", "own"), ExactLaw())
TRIES = 4


class LogProb:
    """Log density as a function of the flat vector."""

    def __init__(self, rng, position, estimator):
        flat, self.unravel = ravel_pytree(position)
        self.x, self.rng, self.estimator = np.array(flat), rng, estimator

    def __call__(self, x):
        key = estimator_key(self.rng, self.estimator)
        return -float(self.estimator.estimate(key, (), self.unravel(x))[0].potential)


class StretchEnsemble:
    """Affine-invariant ensemble of 2 d + 2 walkers (stretch moves, a = 1 + sqrt(step_size)); shows the first walker."""

    backend = "host"
    claims = EXACT

    def init(self, rng, position, estimator):
        flat = np.array(ravel_pytree(position)[0])
        walkers = flat + rng.standard_normal((2 * flat.size + 2, flat.size)).astype(flat.dtype)
        walkers[0] = flat
        return {"position": position, "walkers": walkers}

    def step(self, rng, state, step_size, estimator):
        logp = LogProb(rng, state["position"], estimator)
        walkers = np.array(state["walkers"])
        count, ndim = walkers.shape
        half, a = count // 2, 1.0 + np.sqrt(float(step_size))
        for k in range(count):
            other = rng.integers(half) + (half if k < half else 0)
            z = ((a - 1.0) * rng.random() + 1.0) ** 2 / a
            proposal = walkers[other] + z * (walkers[k] - walkers[other])
            log_ratio = ndim * np.log(z) + logp(proposal) - logp(walkers[k])
            if np.log(rng.random()) < log_ratio:
                walkers[k] = proposal
        return {"position": logp.unravel(walkers[0]), "walkers": walkers}


def multiple_try_step(rng, position, step_size, estimator):
    """Multiple-try Metropolis with weights pi(y) and a reference set around the selected try."""
    logp = LogProb(rng, position, estimator)
    scale, shape = (2 * float(step_size)) ** 0.5, (TRIES, logp.x.size)
    tries = logp.x + scale * rng.standard_normal(shape).astype(logp.x.dtype)
    values = np.array([logp(y) for y in tries])
    weights = np.exp(values - values.max())
    y = tries[np.searchsorted(np.cumsum(weights), rng.random() * weights.sum())]
    reference = y + scale * rng.standard_normal(shape).astype(logp.x.dtype)
    reference[0] = y
    back = np.exp(np.array([logp(r) for r in reference]) - values.max())
    return logp.unravel(y) if rng.random() * back.sum() < weights.sum() else position


def delayed_rejection_step(rng, position, step_size, estimator):
    """Delayed rejection: a random-walk proposal, and if it is refused the opposite one."""
    logp = LogProb(rng, position, estimator)
    x, here = logp.x, logp(logp.x)
    move = (2 * float(step_size)) ** 0.5 * rng.standard_normal(x.size).astype(x.dtype)
    for proposal in (x + move, x - move):
        if np.log(rng.random()) < logp(proposal) - here:
            return logp.unravel(proposal)
    return position


def coin_walk_step(rng, position, step_size, estimator):
    """Metropolis walk of one random coordinate, up or down by a half-normal length."""
    logp = LogProb(rng, position, estimator)
    i, u = rng.integers(logp.x.size), rng.random()
    length = (2 * float(step_size)) ** 0.5 * abs(rng.standard_normal())
    proposal = logp.x.copy()
    proposal[i] += length if u < 0.5 else -length
    accepted = u < np.exp(min(0.0, logp(proposal) - logp(logp.x)))
    return logp.unravel(proposal) if accepted else position


multiple_try = simple_sampler(multiple_try_step, claims=EXACT, backend="host")
delayed_rejection = simple_sampler(delayed_rejection_step, claims=EXACT, backend="host")
coin_walk = simple_sampler(coin_walk_step, claims=EXACT, backend="host")

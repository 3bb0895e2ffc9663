"""Exact kernels in NumPy."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())
BLOCK = 64
GAIN, RATE = 0.1, 0.3
WIDTH, MOST = 2.0, 8


def energy_of(estimator, rng):
    return lambda q: float(estimator.estimate(rng, (), q)[0].potential)


def gradient_of(estimator, rng):
    return lambda q: np.asarray(estimator.estimate(rng, (), q)[0].gradient)


def block_step(rng, x, h, estimator):
    """A random walk that moves sixty-four coordinates at a time, each block with a test of its own."""
    energy = energy_of(estimator, rng)
    current = np.array(x).ravel()
    before = energy(x)
    for start in range(0, current.size, BLOCK):
        proposal = current.copy()
        part = proposal[start : start + BLOCK]
        part += np.sqrt(2 * h) * rng.standard_normal(part.size)
        if np.log(rng.random()) < before - energy(proposal.reshape(x.shape)):
            current = proposal
    return current.reshape(x.shape)


block_walk = simple_sampler(block_step, claims=EXACT, backend="host")


class AdaptiveWalk:
    """A random walk whose scale is adapted to an acceptance rate of 0.3 (Robbins-Monro in the logarithm)."""

    backend = "host"
    claims = EXACT

    def init(self, rng, position, estimator):
        return {"position": np.array(position), "log_scale": 0.0}

    def step(self, rng, state, h, estimator):
        energy = energy_of(estimator, rng)
        x, log_scale = state["position"], state["log_scale"]
        y = x + np.exp(log_scale) * rng.standard_normal(x.shape)
        accept = np.exp(min(0.0, energy(x) - energy(y)))
        if rng.random() < accept:
            x = y
        return {"position": x, "log_scale": log_scale + GAIN * (accept - RATE)}


def mala_step(rng, x, h, estimator):
    """MALA."""
    energy, gradient = energy_of(estimator, rng), gradient_of(estimator, rng)
    mean = x - h * gradient(x)
    y = mean + np.sqrt(2 * h) * rng.standard_normal(x.shape)
    back = y - h * gradient(y)
    log_ratio = energy(x) - energy(y) + (np.sum((y - mean) ** 2) - np.sum((x - back) ** 2)) / (4 * h)
    if np.log(rng.random()) > log_ratio:
        return x
    return y


mala = simple_sampler(mala_step, claims=EXACT, backend="host")


class CachedMala:
    """MALA with one gradient a step: that of the state is kept from the last step."""

    backend = "host"
    claims = EXACT

    def init(self, rng, position, estimator):
        x = np.array(position)
        return {"position": x, "gradient": np.array(gradient_of(estimator, rng)(x))}

    def step(self, rng, state, h, estimator):
        energy, gradient = energy_of(estimator, rng), gradient_of(estimator, rng)
        x, slope = state["position"], state["gradient"]
        mean = x - h * slope
        y = mean + np.sqrt(2 * h) * rng.standard_normal(x.shape)
        slope = np.array(gradient(y))
        back = y - h * slope
        log_ratio = energy(x) - energy(y) + (np.sum((y - mean) ** 2) - np.sum((x - back) ** 2)) / (4 * h)
        if np.log(rng.random()) < log_ratio:
            x = y
        return {"position": x, "gradient": slope}


def slice_step(rng, x, h, estimator):
    """Slice sampling (Neal 2003) along a random line: stepping out, at most eight widths, and shrinkage."""
    energy = energy_of(estimator, rng)
    line = rng.standard_normal(x.shape)
    line = line / np.sqrt(np.sum(line**2))
    level = energy(x) - np.log(rng.random())
    left = -WIDTH * rng.random()
    right = left + WIDTH
    for _ in range(MOST):
        if energy(x + left * line) >= level:
            break
        left -= WIDTH
    for _ in range(MOST):
        if energy(x + right * line) >= level:
            break
        right += WIDTH
    while True:
        move = left + (right - left) * rng.random()
        y = x + move * line
        if energy(y) < level:
            return y
        if move < 0:
            left = move
        else:
            right = move


slice_walk = simple_sampler(slice_step, claims=EXACT, backend="host")

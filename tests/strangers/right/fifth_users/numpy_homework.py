"""Homework 3, STAT 380: write samplers with numpy only.

rng is a numpy.random.Generator. Everything works on arrays of any shape.
"""

import math

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


# Problem 1: unadjusted Langevin. The noise does not have to be Gaussian: Laplace of variance 2 b^2 = 2 h will do.
def ula_laplace(rng, x, h, estimator):
    grad = estimator.estimate(rng, (), x)[0].gradient
    h = float(h)
    b = math.sqrt(h)
    new = []
    for xi, gi in zip(np.ravel(x).tolist(), np.ravel(grad).tolist()):
        new.append(float(xi) - h * float(gi) + float(rng.laplace(0.0, b)))
    return np.array(new, dtype=x.dtype).reshape(x.shape)


problem1 = simple_sampler(ula_laplace, backend="host")


# Problem 2: the same where each coordinate moves with probability `probability` only, with uniform noise.
class Problem2:
    backend = "host"

    def __init__(self, probability=0.5):
        if not 0 < probability <= 1:
            raise ValueError("probability must be in (0, 1]")
        self.probability = probability

    def step(self, rng, x, h, estimator):
        grad = estimator.estimate(rng, (), x)[0].gradient
        mask = rng.random(x.shape) < self.probability
        half_width = np.sqrt(6.0 * h)  # Var U(-a, a) = a^2 / 3 = 2 h
        move = -h * grad + rng.uniform(-half_width, half_width, size=x.shape)
        return x + np.where(mask, move, 0.0).astype(x.dtype)


# Problem 3: Metropolis within Gibbs, coordinate by coordinate.
def metropolis_within_gibbs(rng, x, h, estimator):
    def U(q):
        return float(estimator.estimate(rng, (), q)[0].potential)

    x = np.array(x, copy=True)
    u = U(x)
    accepted = 0
    scale = 2.0 * math.sqrt(h)
    for i in range(x.size):
        old = x.flat[i]
        x.flat[i] = old + scale * rng.standard_normal()
        u_new = U(x)
        if -rng.standard_exponential() < u - u_new:
            u = u_new
            accepted += 1
        else:
            x.flat[i] = old
    assert 0 <= accepted <= x.size
    return x


problem3 = simple_sampler(metropolis_within_gibbs, backend="host", claims=Claims(Source("", "own"), ExactLaw()))


# Problem 4: slice sampling (Neal 2003) along a random direction, stepping out and shrinkage. No step size.
class Problem4:
    backend = "host"
    claims = Claims(Source("", "Neal (2003), figures 3 and 5"), ExactLaw())

    def __init__(self, width=2.0):
        assert width > 0, f"width = {width}"
        self.width = width

    def step(self, rng, x, h, estimator):
        direction = rng.normal(size=x.shape)
        direction /= math.sqrt(float(np.sum(direction**2)))

        def logp(t):
            return -float(estimator.estimate(rng, (), x + t * direction)[0].potential)

        level = logp(0.0) - rng.exponential()
        left = -self.width * rng.random()
        right = left + self.width
        while logp(left) > level:
            left -= self.width
        while logp(right) > level:
            right += self.width
        while True:
            t = left + (right - left) * rng.random()
            if logp(t) >= level:
                return x + t * direction
            if t < 0:
                left = t
            else:
                right = t

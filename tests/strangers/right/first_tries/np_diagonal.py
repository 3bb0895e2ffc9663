import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler


def make(low, high):
    def step(rng, x, h, estimator):
        x = np.asarray(x)
        scale = np.linspace(low, high, x.size).reshape(x.shape)
        grad = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        return x - h * scale * grad + rng.normal(0.0, np.sqrt(2 * h * scale))

    return simple_sampler(step, backend="host")


diagonal = make(0.25, 1.0)

import numpy as np

from sgmcmc_verification.samplers import simple_sampler


def step(rng, x, step_size, estimator):
    gradient = estimator.estimate(rng, (), x)[0].gradient
    m = np.where(np.arange(x.size) % 2 == 0, 1.0, 0.5).reshape(x.shape)  # inverse masses
    coin = rng.choice([-1.0, 1.0], size=x.shape)
    return x - step_size * m * gradient + np.sqrt(2 * step_size * m) * coin


mine = simple_sampler(step, backend="host")

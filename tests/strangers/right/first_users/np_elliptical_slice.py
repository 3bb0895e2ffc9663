import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def elliptical(prior_std=2.0):
    def step(rng, x, step_size, estimator):
        def log_likelihood(y):  # target = N(0, prior_std^2) times this
            return -estimator.estimate(rng, (), y)[0].potential + 0.5 * np.sum(y**2) / prior_std**2

        nu = prior_std * rng.standard_normal(x.shape)
        threshold = log_likelihood(x) - rng.exponential()
        angle = rng.uniform(0, 2 * np.pi)
        low, high = angle - 2 * np.pi, angle
        while True:
            y = np.cos(angle) * x + np.sin(angle) * nu
            if log_likelihood(y) > threshold:
                return y
            if angle < 0:
                low = angle
            else:
                high = angle
            angle = rng.uniform(low, high)

    return simple_sampler(step, backend="host", claims=Claims(Source("", "Murray et al. 2010"), ExactLaw()))


ess = elliptical()

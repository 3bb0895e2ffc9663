import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler


def sgld(rng, theta, epsilon, estimator):
    gradient = np.asarray(estimator.estimate(rng, (), theta)[0].gradient)
    signs = rng.choice([-1.0, 1.0], size=np.shape(theta))
    return theta - epsilon * gradient + np.sqrt(2 * epsilon) * signs


signs = simple_sampler(sgld, backend="host")

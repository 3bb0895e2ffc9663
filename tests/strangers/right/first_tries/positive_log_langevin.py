import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def step(rng, x, h, estimator):
    g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
    y = np.log(x)
    # in y = log x the potential is U(exp y) - y
    y = y - h * (x * g - 1) + np.sqrt(2 * h) * rng.normal(size=x.shape)
    return np.exp(y)


log_langevin = simple_sampler(
    step,
    backend="host",
    claims=Claims(Source("welling2011", "equation 4"), StationaryLaw(order=1), spaces=("positive",)),
)

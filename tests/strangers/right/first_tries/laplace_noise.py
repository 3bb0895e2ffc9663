import jax

from sgmcmc_verification.samplers.simple import simple_sampler


def step(key, position, step_size, estimator):
    k1, k2 = jax.random.split(key)
    grad = estimator.estimate(k1, (), position)[0].gradient
    # a standard Laplace variable has variance 2
    noise = jax.random.laplace(k2, position.shape, position.dtype)
    return position - step_size * grad + step_size**0.5 * noise


laplace = simple_sampler(step)

import jax

from sgmcmc_verification.samplers import simple_sampler


def standard_normal(key, shape, dtype):
    # the root of a chi-squared variable with one degree of freedom, with a random sign
    k1, k2 = jax.random.split(key)
    return jax.random.rademacher(k1, shape, dtype) * (2 * jax.random.gamma(k2, 0.5, shape, dtype)) ** 0.5


def step(key, x, h, estimator):
    kp, kg = jax.random.split(key)
    eps = (2 * h) ** 0.5
    keys = jax.random.split(kg, 4)

    def grad(i, q):
        return estimator.estimate(keys[i], (), q)[0].gradient

    def body(i, qp):
        q, p = qp
        q = q + eps * p
        return q, p - eps * grad(i, q)

    p = standard_normal(kp, x.shape, x.dtype)
    p = p - 0.5 * eps * grad(0, x)
    q, p = jax.lax.fori_loop(1, 3, body, (x, p))
    return q + eps * p


unadjusted_hmc = simple_sampler(step)

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def rwm(key, x, step_size, estimator):
    k_est, k_prop, k_acc = jax.random.split(key, 3)
    y = x + (2 * step_size) ** 0.5 * jax.random.t(k_prop, 5.0, x.shape, x.dtype)
    u_x = estimator.estimate(k_est, (), x)[0].potential
    u_y = estimator.estimate(k_est, (), y)[0].potential
    accept = jax.random.exponential(k_acc, (), x.dtype) > u_y - u_x
    return jnp.where(accept, y, x)


rwm_student = simple_sampler(rwm, claims=Claims(Source("metropolis1953", "section II"), ExactLaw()))

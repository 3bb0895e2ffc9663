import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def hmc(key, q, h, estimator):
    k_p, k_n, k_u, k_g = jax.random.split(key, 4)
    h = jnp.asarray(h, q.dtype)

    def U(x):
        return estimator.estimate(k_g, (), x)[0].potential

    def dU(x):
        return estimator.estimate(k_g, (), x)[0].gradient

    def leapfrog(_, qp):
        q, p = qp
        p = p - h / 2 * dU(q)
        q = q + h * p
        p = p - h / 2 * dU(q)
        return q, p

    p = jax.random.normal(k_p, q.shape, q.dtype)
    n = jax.random.randint(k_n, (), 1, 8)
    q1, p1 = jax.lax.fori_loop(0, n, leapfrog, (q, p))
    log_ratio = U(q) - U(q1) + 0.5 * jnp.sum(p**2) - 0.5 * jnp.sum(p1**2)
    accept = jnp.log(jax.random.uniform(k_u, (), q.dtype)) < log_ratio
    return jnp.where(accept, q1, q)


sampler = simple_sampler(hmc, claims=Claims(Source("", "my notes"), ExactLaw()))

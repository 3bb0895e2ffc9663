"""HMC, three leapfrog steps in a fori_loop, momenta drawn anew."""
import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

LEAPS = 3


def hmc_step(key, q0, step_size, estimator):
    key, sub = jax.random.split(key)
    eps = jnp.sqrt(2 * step_size)
    look = lambda q: estimator.estimate(key, (), q)[0]

    p0 = jax.random.normal(sub, q0.shape, q0.dtype)

    def leap(_, qp):
        q, p = qp
        p = p - eps / 2 * look(q).gradient
        q = q + eps * p
        return q, p - eps / 2 * look(q).gradient

    q, p = jax.lax.fori_loop(0, LEAPS, leap, (q0, p0))
    h_old = look(q0).potential + jnp.sum(p0**2) / 2
    h_new = look(q).potential + jnp.sum(p**2) / 2
    log_u = jnp.log(jax.random.uniform(sub, dtype=q0.dtype))
    return jnp.where(log_u < h_old - h_new, q, q0)


short_hmc = simple_sampler(hmc_step, claims=Claims(Source("", "own"), ExactLaw()))

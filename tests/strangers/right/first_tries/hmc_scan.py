import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def step(key, x, h, estimator):
    key_p, key_u, key_e = jax.random.split(key, 3)
    eps = jnp.sqrt(2 * h).astype(x.dtype)

    def U(q):
        return estimator.estimate(key_e, (), q)[0].potential

    def dU(q):
        return estimator.estimate(key_e, (), q)[0].gradient

    def leapfrog(carry, _):
        q, p = carry
        p = p - 0.5 * eps * dU(q)
        q = q + eps * p
        p = p - 0.5 * eps * dU(q)
        return (q, p), None

    p0 = jax.random.normal(key_p, x.shape, x.dtype)
    (q, p), _ = jax.lax.scan(leapfrog, (x, p0), None, length=3)
    dH = U(q) + 0.5 * jnp.sum(p**2) - U(x) - 0.5 * jnp.sum(p0**2)
    u = jax.random.uniform(key_u, (), x.dtype)
    return jax.lax.cond(jnp.log(u) < -dH, lambda: q, lambda: x)


hmc = simple_sampler(step, claims=Claims(Source("neal2011", "figure 2"), ExactLaw()))

"""HMC with L leapfrog steps and a jittered step size (Neal 2011, section 3.2)."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def make_hmc(num_leapfrog):
    def kernel(key, q0, eps, estimator):
        k_data, k_mom, k_jit, k_acc = jax.random.split(key, 4)

        def u_and_grad(q):
            est, _ = estimator.estimate(k_data, (), q)
            return est.potential, est.gradient

        e = eps * jax.random.uniform(k_jit, (), q0.dtype, minval=0.8, maxval=1.2)
        p0 = jax.random.normal(k_mom, q0.shape, q0.dtype)
        u0, g0 = u_and_grad(q0)

        def leap(_, c):
            q, p, u, g = c
            p = p - 0.5 * e * g
            q = q + e * p
            u, g = u_and_grad(q)
            p = p - 0.5 * e * g
            return q, p, u, g

        q1, p1, u1, _ = jax.lax.fori_loop(0, num_leapfrog, leap, (q0, p0, u0, g0))
        log_alpha = u0 - u1 + 0.5 * (jnp.sum(p0**2) - jnp.sum(p1**2))
        accept = jnp.log(jax.random.uniform(k_acc, (), q0.dtype)) < log_alpha
        q = jax.lax.select(accept, q1, q0)
        return q, {"accept": accept, "log_alpha": log_alpha}

    return kernel


hmc = simple_sampler(make_hmc(5), claims=Claims(Source("", "own"), ExactLaw()))

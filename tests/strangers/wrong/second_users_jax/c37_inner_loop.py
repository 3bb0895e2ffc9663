import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def substepped(num_inner: int = 1):
    """SGLD whose step is cut into `num_inner` shorter ones, each with a minibatch of its own."""

    def step(key, theta, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        h = step_size / num_inner

        def body(i, theta):
            gradient = estimator.estimate(jax.random.fold_in(batch_key, i), (), theta)[0].gradient
            noise = jax.random.normal(noise_key, theta.shape, theta.dtype)
            return theta - h * gradient + jnp.sqrt(2 * h) * noise

        return jax.lax.fori_loop(0, num_inner, body, theta)

    return simple_sampler(step)

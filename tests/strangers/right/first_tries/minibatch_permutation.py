import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def shuffled(target):
    terms = target.terms

    def gradient(key, x, estimator):
        if terms is None:
            return estimator.estimate(key, (), x)[0].gradient
        rows = jax.random.permutation(key, terms.size)[:2]
        batch = jax.tree.map(lambda a: jnp.asarray(a)[rows], terms.data)
        each = jax.vmap(jax.grad(terms.datum), (None, 0))(x, batch)
        return jax.grad(terms.prior)(x) + terms.size * each.mean(0)

    def init(key, x, estimator):
        return x, jax.random.normal(key, x.shape, x.dtype)

    def step(key, state, h, estimator):
        x, v = state
        k1, k2 = jax.random.split(key)
        x = x + h * v
        v = (1 - h) * v - h * gradient(k1, x, estimator) + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)
        return x, v

    return simple_sampler(step, init=init, position=lambda state: state[0])

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def minibatch_sgld(target):
    terms, n = target.terms, 3

    def loss(x, batch):
        data_part = jnp.mean(jax.vmap(terms.datum, (None, 0))(x, batch))
        return terms.prior(x) + terms.size * data_part

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        if terms is None:
            g = estimator.estimate(k1, (), x)[0].gradient
        else:
            rows = jax.random.choice(k1, terms.size, (n,), replace=False)
            batch = jax.tree.map(lambda a: jnp.asarray(a)[rows], terms.data)
            _, g = jax.value_and_grad(loss)(x, batch)
        return x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)

    return simple_sampler(step)

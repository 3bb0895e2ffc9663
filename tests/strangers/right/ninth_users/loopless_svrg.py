"""SGLD with loopless SVRG control variates (L-SVRG: the anchor is renewed by a coin) and minibatches of its own.

    G(x) = grad U(a) + grad prior(x) - grad prior(a) + (N/n) sum_{i in B} (grad l_i(x) - grad l_i(a)),   B with replacement
    x' = x - h G(x) + sqrt(2h) z;      then with probability q: a <- x', and grad U(a) anew

Right: E G = grad U(x) whatever the anchor is; the variance of G enters with h^2 in a step, so the law is right to O(h).
Without data of its own (target.terms is None) the gradient is that of the estimator.
Object: svrg_langevin (a function of the target and of the option `batch`)
"""
import jax
import jax.numpy as jnp
from jax import tree_util as tu

from sgmcmc_verification.samplers import simple_sampler

RENEW = 0.2


def svrg_langevin(target, batch=2):
    if batch < 1:
        raise ValueError("an empty batch")
    terms = target.terms

    def tree_normal(key, tree):
        leaves, treedef = tu.tree_flatten(tree)
        ks = jax.random.split(key, len(leaves))
        return tu.tree_unflatten(treedef, [jax.random.normal(k, l.shape, l.dtype) for k, l in zip(ks, leaves)])

    def langevin(x, g, h, key):
        z = tree_normal(key, x)
        return tu.tree_map(lambda a, b, c: (a - h * b + jnp.sqrt(2 * h) * c).astype(a.dtype), x, g, z)

    if terms is None:

        def plain(key, x, h, estimator):
            kg, kn = jax.random.split(key)
            return langevin(x, estimator.estimate(kg, (), x)[0].gradient, h, kn)

        return simple_sampler(plain)

    data = tu.tree_map(jnp.asarray, terms.data)

    def sum_over(x, rows):
        return jnp.sum(jax.vmap(terms.datum, in_axes=(None, 0))(x, rows))

    def full_gradient(x):
        return jax.grad(lambda q: terms.prior(q) + sum_over(q, data))(x)

    def batch_gradient(x, rows):
        return jax.grad(lambda q: terms.prior(q) + terms.size / batch * sum_over(q, rows))(x)

    def init(key, position, estimator):
        return {"position": position, "anchor": position, "anchor_gradient": full_gradient(position)}

    def step(key, state, h, estimator):
        k_rows, k_noise, k_coin = jax.random.split(key, 3)
        x, anchor = state["position"], state["anchor"]
        index = jax.random.randint(k_rows, (batch,), 0, terms.size)
        rows = tu.tree_map(lambda a: a[index], data)
        g = tu.tree_map(
            lambda a, b, c: a + b - c,
            state["anchor_gradient"],
            batch_gradient(x, rows),
            batch_gradient(anchor, rows),
        )
        x = langevin(x, g, h, k_noise)
        anchor, anchor_gradient = jax.lax.cond(
            jax.random.bernoulli(k_coin, RENEW),
            lambda: (x, full_gradient(x)),
            lambda: (anchor, state["anchor_gradient"]),
        )
        return {"position": x, "anchor": anchor, "anchor_gradient": anchor_gradient}

    return simple_sampler(step, init=init)

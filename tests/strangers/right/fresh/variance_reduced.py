"""Functions of a Target that return a variance-reduced sampler, one datum at a time: SAGA with the sum of its table,
SAG, and SVRG with an epoch a step. The gradients are unbiased (SAG's bias is the age of its table, O(h)), so that the
law is exp(-U) + O(h). A target that is no sum over data is sampled with the gradient of the estimator."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def noise(key, x, h):
    """sqrt(2 h) N(0, I)."""
    return jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)


def of_datum(terms, i, x):
    """Gradient of the i-th datum."""
    return jax.grad(terms.datum)(x, jax.tree.map(lambda a: jnp.asarray(a)[i], terms.data))


def of_all(terms, x):
    """Gradients of all data, one a row."""
    return jax.vmap(lambda i: of_datum(terms, i, x))(jnp.arange(terms.size))


class OneAtATime:
    """A table of gradients of which one row is renewed in a step; `ahead` says whether the whole change counts N times.

    SAGA: sum of the table + N (new - old). SAG: the sum of the table with the new row.
    """

    def __init__(self, target, saga):
        self.terms, self.weight = target.terms, target.terms.size if saga and target.terms else 1

    def init(self, key, position, estimator):
        if self.terms is None:
            return {"x": position}
        table = of_all(self.terms, position)
        return {"sum": jnp.sum(table, 0), "table": table, "x": position}

    def position(self, state):
        return state["x"]

    def step(self, key, state, h, estimator):
        a, b = jax.random.split(key)
        x = state["x"]
        if self.terms is None:
            return {"x": x - h * estimator.estimate(a, (), x)[0].gradient + noise(b, x, h)}
        i = jax.random.randint(a, (), 0, self.terms.size)
        new, old = of_datum(self.terms, i, x), state["table"][i]
        g = jax.grad(self.terms.prior)(x) + state["sum"] + self.weight * (new - old)
        return {
            "sum": state["sum"] + new - old,
            "table": state["table"].at[i].set(new),
            "x": x - h * g + noise(b, x, h),
        }


def saga_one(target):
    """SAGA, one datum with replacement."""
    return OneAtATime(target, saga=True)


def sag_one(target):
    """SAG, one datum with replacement."""
    return OneAtATime(target, saga=False)


def svrg_epoch(target, inner=5):
    """A step is an epoch of SVRG: the anchor is where it starts; `inner` steps of h / inner follow, one datum each."""
    terms = target.terms

    def step(key, x, h, estimator):
        h = h / inner

        def plain(x, key):
            a, b = jax.random.split(key)
            return x - h * estimator.estimate(a, (), x)[0].gradient + noise(b, x, h), None

        if terms is None:
            return jax.lax.scan(plain, x, jax.random.split(key, inner))[0]
        anchor, full = x, jnp.sum(of_all(terms, x), 0)

        def corrected(x, key):
            a, b = jax.random.split(key)
            i = jax.random.randint(a, (), 0, terms.size)
            g = jax.grad(terms.prior)(x) + full + terms.size * (of_datum(terms, i, x) - of_datum(terms, i, anchor))
            return x - h * g + noise(b, x, h), None

        return jax.lax.scan(corrected, x, jax.random.split(key, inner))[0]

    return simple_sampler(step)

"""SGHMC in NumPy with a SAGA table of gradients (Dubey et al. 2016) and minibatches of its own.

    G = grad prior(x) + sum_i t_i + (N/n) sum_{i in B} (grad l_i(x) - t_i),   B without replacement;  then t_i <- grad l_i(x), i in B
    p' = e^(-gh) p - h G + sqrt(1 - e^(-2gh)) z,     x' = x + h p'

Right: E G = grad U(x) for any table t, the sum is kept up to date with it, and the variance of G enters with h^2 in a step.
The rest is an Euler scheme of kinetic Langevin, right to O(h).   Without data the estimator is asked.
Object: saga_sghmc (a function of the target and of the options `friction`, `batch`)
"""
import jax
import numpy as np

from sgmcmc_verification.samplers import simple_sampler


class Memory:
    __slots__ = ("position", "momentum", "table", "total")

    def __init__(self, position, momentum, table=None, total=None):
        self.position, self.momentum, self.table, self.total = position, momentum, table, total


def saga_sghmc(target, friction=1.5, batch=2):
    if friction <= 0 or batch < 1:
        raise ValueError("friction > 0, batch >= 1")
    terms = target.terms

    if terms is not None:
        if batch > terms.size:
            raise ValueError("a batch larger than the data")
        data = jax.tree.map(np.asarray, terms.data)
        prior_gradient = jax.jit(jax.grad(terms.prior))
        datum_gradients = jax.jit(jax.vmap(jax.grad(terms.datum), in_axes=(None, 0)))

    def init(rng, position, estimator):
        x = np.array(position)
        p = rng.standard_normal(x.shape)
        if terms is None:
            return Memory(x, p)
        table = np.array(datum_gradients(x, data))
        return Memory(x, p, table, table.sum(axis=0))

    def step(rng, state, h, estimator):
        x, p, table, total = state.position, state.momentum, state.table, state.total
        if terms is None:
            gradient = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        else:
            rows = rng.permutation(terms.size)[:batch]
            new = np.asarray(datum_gradients(x, jax.tree.map(lambda a: a[rows], data)))
            change = new - table[rows]
            gradient = np.asarray(prior_gradient(x)) + total + terms.size / batch * change.sum(axis=0)
            table = table.copy()
            table[rows] = new
            total = total + change.sum(axis=0)
        keep = np.exp(-friction * h)
        p = keep * p - h * gradient + np.sqrt(1 - keep**2) * rng.standard_normal(x.shape)
        return Memory(x + h * p, p, table, total)

    return simple_sampler(step, init=init, backend="host")

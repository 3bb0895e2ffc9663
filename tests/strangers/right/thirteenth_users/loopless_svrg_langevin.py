"""Langevin dynamics with variance-reduced minibatches and an anchor that is renewed by a coin (loopless SVRG).

    g(x) = grad U_0(x) + sum_i grad u_i(a) + (N / n) sum_{i in B} (grad u_i(x) - grad u_i(a))
    x'   = x - h g(x) + sqrt(2 h) xi
    a'   = x' with probability `renewal`, else a

g is unbiased whatever the anchor a is, and its noise is of the order |x - a|, which is small as long as the anchor follows. The epochs
of SVRG-Langevin (Dubey et al. 2016) are replaced by the coin of Kovalev, Horvath and Richtarik (2020), so that no counter is needed.
The gradient of all data at the anchor is kept; a step costs 2 n gradients, and N with probability `renewal`.
"""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


def plus(a, b, factor=1.0):
    """a + factor * b, leaf by leaf."""
    return jax.tree.map(lambda x, y: np.asarray(x + factor * np.asarray(y), x.dtype), a, b)


class LooplessLangevin:
    """Sampler of a target that is a sum over data; without data it is plain Langevin with the gradient that it is given.

    Args:
        target: has `terms` with `prior`, `datum`, `data` and `size`, or None.
        batch: data in a minibatch, drawn without replacement; at most all.
        renewal: probability that the anchor moves to the present point.
    """

    backend = "host"
    claims = Claims(Source("", "Dubey et al. 2016; Kovalev et al. 2020"), StationaryLaw(order=1))

    def __init__(self, target, batch=3, renewal=0.2):
        if batch < 1 or not 0 < renewal <= 1:
            raise ValueError("batch has to be 1 or more, and renewal a positive probability")
        self.renewal = renewal
        self.terms = target.terms
        if self.terms is None:
            return
        self.batch = min(batch, self.terms.size)
        datum = self.terms.datum
        self._prior_slope = jax.jit(jax.grad(self.terms.prior))
        self._data_slope = jax.jit(jax.grad(lambda x, rows: jnp.sum(jax.vmap(datum, (None, 0))(x, rows))))
        self._data = jax.tree.map(np.asarray, self.terms.data)

    def init(self, rng, position, estimator):
        x = jax.tree.map(np.array, position)
        if self.terms is None:
            return {"position": x}
        return {"position": x, "anchor": x, "at_anchor": self._all(x)}

    def step(self, rng, state, step_size, estimator):
        x = state["position"]
        noise = jax.tree.map(lambda a: rng.standard_normal(a.shape), x)
        if self.terms is None:
            slope = estimator.estimate(rng, (), x)[0].gradient
            return {"position": plus(plus(x, slope, -step_size), noise, np.sqrt(2 * step_size))}
        slope = self._slope(rng, x, state["anchor"], state["at_anchor"])
        moved = plus(plus(x, slope, -step_size), noise, np.sqrt(2 * step_size))
        if rng.random() < self.renewal:
            return {"position": moved, "anchor": moved, "at_anchor": self._all(moved)}
        return {"position": moved, "anchor": state["anchor"], "at_anchor": state["at_anchor"]}

    def _all(self, x):
        return jax.tree.map(np.array, self._data_slope(x, self._data))

    def _slope(self, rng, x, anchor, at_anchor):
        index = rng.choice(self.terms.size, self.batch, replace=False)
        rows = jax.tree.map(lambda a: a[index], self._data)
        change = plus(jax.tree.map(np.asarray, self._data_slope(x, rows)), self._data_slope(anchor, rows), -1.0)
        prior = jax.tree.map(np.asarray, self._prior_slope(x))
        return plus(plus(prior, at_anchor), change, self.terms.size / self.batch)

"""SGLD over shuffled epochs, with coins in place of normal noise.

Each epoch walks through a fresh permutation of the data in blocks of `batch_size`; a remainder that does not fill a block is left
out of its epoch, and since every epoch is shuffled anew all data are left out equally often. The noise of a step is
sqrt(2 h) times +1 or -1 a coordinate: it has the first three moments of a normal one, which is all that the weak Euler scheme needs,
and costs one random bit.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


class ReshuffledSGLD:
    def __init__(self, target, batch_size: int = 3, rate: float = 1.0):
        if batch_size < 1:
            raise ValueError("batch_size is at least 1")
        self.terms = target.terms
        self.size = 0 if self.terms is None else int(self.terms.size)
        self.batch_size = min(batch_size, self.size)
        self.rate = rate

    def init(self, key, position, estimator):
        order = jax.random.permutation(key, self.size).astype(jnp.int32)
        return {"position": position, "order": order, "cursor": jnp.zeros((), jnp.int32)}

    def next_block(self, key, order, cursor):
        """Indices of the next block, after a new shuffle where the epoch is over."""
        over = cursor + self.batch_size > self.size
        order = jnp.where(over, jax.random.permutation(key, self.size).astype(order.dtype), order)
        start = jnp.where(over, 0, cursor)
        rows = jax.lax.dynamic_slice_in_dim(order, start, self.batch_size)
        return rows, order, (start + self.batch_size).astype(cursor.dtype)

    def block_gradient(self, rows, position):
        batch = jax.tree.map(lambda a: jnp.asarray(a)[rows], self.terms.data)
        likelihood = lambda q: jnp.sum(jax.vmap(self.terms.datum, (None, 0))(q, batch))
        prior = jax.grad(self.terms.prior)(position)
        weight = self.size / self.batch_size
        return jax.tree.map(lambda a, b: a + weight * b, prior, jax.grad(likelihood)(position))

    def step(self, key, state, step_size, estimator):
        data_key, coin_key = jax.random.split(key)
        position, order, cursor = state["position"], state["order"], state["cursor"]
        if self.terms is None:
            gradient = estimator.estimate(data_key, (), position)[0].gradient
        else:
            rows, order, cursor = self.next_block(data_key, order, cursor)
            gradient = self.block_gradient(rows, position)
        x, unravel = ravel_pytree(position)
        g, _ = ravel_pytree(gradient)
        h = self.rate * jnp.asarray(step_size, x.dtype)
        coins = jax.random.rademacher(coin_key, x.shape, x.dtype)
        return {"position": unravel(x - h * g + jnp.sqrt(2 * h) * coins), "order": order, "cursor": cursor}

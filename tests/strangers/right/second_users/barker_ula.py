"""Unadjusted Barker scheme (Livingstone and Zanella 2022, without the test): a normal step whose sign leans downhill."""

from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames="scale")
def barker_move(key, x, grad, h, scale=1.0):
    kz, kb = jax.random.split(key)
    z = scale * jnp.sqrt(2 * h) * jax.random.normal(kz, x.shape, x.dtype)
    downhill = jax.nn.sigmoid(-z * grad)
    keep = jax.random.bernoulli(kb, downhill)
    return x + jnp.where(keep, z, -z)


class UnadjustedBarker:
    def __init__(self, scale: float = 1.0):
        self.scale = scale

    def step(self, key, params, h, estimator):
        key, sub = jax.random.split(key)
        grads = estimator.estimate(sub, (), params)[0].gradient
        leaves, treedef = jax.tree.flatten(params)
        keys = jax.random.split(key, len(leaves))
        moved = [barker_move(k, x, g, h, self.scale) for k, x, g in zip(keys, leaves, jax.tree.leaves(grads))]
        return jax.tree.unflatten(treedef, moved)

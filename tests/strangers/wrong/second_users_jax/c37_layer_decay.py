"""SGLD with layer-wise learning rate decay, the fine-tuning recipe: later layers take smaller steps."""

import jax
import jax.numpy as jnp


class LayerDecaySGLD:
    def __init__(self, decay: float = 0.8):
        self.decay = decay

    def rates(self, params):
        leaves, treedef = jax.tree.flatten(params)
        return treedef.unflatten([self.decay**depth for depth in range(len(leaves))])

    def step(self, key, params, lr, estimator):
        key, batch_key = jax.random.split(key)
        grads = estimator.estimate(batch_key, (), params)[0].gradient
        updates = jax.tree.map(lambda g, rate: -lr * rate * g, grads, self.rates(params))
        return self.perturb(key, jax.tree.map(jnp.add, params, updates), lr)

    def perturb(self, key, params, lr):
        leaves, treedef = jax.tree.flatten(params)
        keys = jax.random.split(key, len(leaves))
        return treedef.unflatten(
            [w + jnp.sqrt(2 * lr) * jax.random.normal(k, w.shape, w.dtype) for k, w in zip(keys, leaves)]
        )


finetune = LayerDecaySGLD()

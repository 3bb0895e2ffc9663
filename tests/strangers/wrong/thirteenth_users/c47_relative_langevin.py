"""Langevin dynamics whose step is relative to the size of the parameters.

Large networks are trained with steps in proportion to the norm of their weights (LARS, LAMB, Adafactor). As a sampler this is a metric that
depends on the position: with n parameters in all and

    D(w) = floor + |w|^2 / n,

    dw = (-D grad U + grad D) dt + sqrt(2 D) dW

has the law exp(-U). D is one number for all parameters, and grad D = 2 w / n. The gradient that comes in is that of the mean loss over
`num_data` data.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class RelativeState(NamedTuple):
    key: jax.Array


def _metric(params, floor):
    """D of all parameters together."""
    leaves = jax.tree.leaves(params)
    count = sum(leaf.size for leaf in leaves)
    return floor + sum(jnp.sum(leaf**2) for leaf in leaves) / count


def _divergence(params):
    return jax.tree.map(lambda leaf: 2 * leaf / leaf.size, params)


def _normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves)])


def relative_langevin(
    learning_rate: float, num_data: int = 1000, temperature: float = 1.0, floor: float = 0.1, seed: int = 0
) -> optax.GradientTransformation:
    """SGLD in the metric D; `floor` keeps small weights moving."""

    def init_fn(params):
        del params
        return RelativeState(jax.random.key(seed))

    def update_fn(updates, state, params=None):
        if params is None:
            raise ValueError("update needs params")
        key, noise_key = jax.random.split(state.key)
        metric = _metric(params, floor)
        per_datum = learning_rate * temperature / num_data
        deviation = jnp.sqrt(2 * per_datum * metric)
        updates = jax.tree.map(
            lambda g, d, z: (-learning_rate * metric * g + per_datum * d + deviation * z).astype(g.dtype),
            updates,
            _divergence(params),
            _normal_like(noise_key, params),
        )
        return updates, RelativeState(key)

    return optax.GradientTransformation(init_fn, update_fn)

"""Langevin dynamics in the geometry of the hyperbolic entropy, for optax.

Mirror descent with the hyperbolic entropy (Ghai, Hazan and Singer 2020) moves a weight in proportion to
M(w) = sqrt(w^2 + width^2): large weights in proportion to their size, small ones by a constant. As a sampler this is
Riemannian Langevin dynamics with the diagonal metric 1 / M (Girolami and Calderhead 2011; Ma, Chen and Fox 2015),
discretised as SGLD,

    w' = w - lr M grad L + lr / N Gamma + N(0, 2 lr M / N),        Gamma = dM / dw,

for the loss L that is the mean over N = `num_data` data.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class LangevinState(NamedTuple):
    key: jax.Array


def mobility(w, width):
    """M(w)."""
    return jnp.sqrt(jnp.square(w) + width**2)


def divergence(w, width):
    """dM / dw."""
    return w / mobility(w, width)


def split_like(key, tree):
    """A key for each leaf."""
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, list(jax.random.split(key, len(leaves))))


def with_prior(prior_precision, num_data):
    """Adds the gradient of the prior N(0, 1 / prior_precision)."""
    return optax.add_decayed_weights(prior_precision / num_data)


def with_divergence(width, num_data):
    """Adds what a metric that depends on the position owes to the drift."""

    def update(updates, state, params):
        return jax.tree.map(lambda g, w: g - divergence(w, width) / num_data, updates, params), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def preconditioned_noise(learning_rate, width, num_data, seed):
    """Moves by the metric, with its noise."""

    def update(updates, state, params):
        key, noise_key = jax.random.split(state.key)

        def move(k, g, w):
            m = mobility(w, width)
            noise = jax.random.normal(k, w.shape, w.dtype)
            return -learning_rate * m * g + jnp.sqrt(2 * learning_rate * m / num_data) * noise

        return jax.tree.map(move, split_like(noise_key, params), updates, params), LangevinState(key)

    return optax.GradientTransformation(lambda params: LangevinState(jax.random.PRNGKey(seed)), update)


def hypentropy_langevin(learning_rate, num_data=1000, prior_precision=1.0, width=1.0, seed=0):
    """The sampler; `width` is the size below which a weight counts as small."""
    if width <= 0:
        raise ValueError("width is positive")
    return optax.chain(
        with_prior(prior_precision, num_data),
        with_divergence(width, num_data),
        preconditioned_noise(learning_rate, width, num_data, seed),
    )

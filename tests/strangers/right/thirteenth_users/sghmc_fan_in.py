"""SGHMC (Chen, Fox and Guestrin 2014, equation 15) for optax, with a mass for each layer.

    r     <- r - eps N (grad + weight_decay theta) - eps C / M r + sqrt(2 C eps T) xi
    theta <- theta + eps / M r

The inverse mass 1 / M is the preconditioner, a number for each leaf of the parameters: by default a weight matrix has the mass of its
fan-in, as the curvature of its loss grows with the number of inputs, and biases and scales have mass 1. It depends on shapes alone,
not on where the chain is, so that no divergence term is due. The friction is given per mass, C = friction M, to let all layers forget
at one rate. The law of theta tends to exp(-N (loss + weight_decay |theta|^2 / 2) / T) as eps -> 0.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class SGHMCState(NamedTuple):
    """Momenta, in the shape of the parameters, and a key."""

    momentum: Any
    key: jax.Array


def fan_in_mass(leaf: jax.Array) -> float:
    """Inputs of a weight in the layout (..., inputs, outputs); 1 for vectors and numbers."""
    if leaf.ndim < 2:
        return 1.0
    return float(leaf.size // leaf.shape[-1])


def sghmc(
    learning_rate: float,
    num_data: int = 1000,
    friction: float = 1.0,
    temperature: float = 1.0,
    weight_decay: float = 0.0,
    mass: Callable[[jax.Array], float] = fan_in_mass,
    seed: int = 0,
) -> optax.GradientTransformation:
    """Stochastic gradient Hamiltonian Monte Carlo.

    Args:
        learning_rate: the step eps, in time.
        num_data: N; the loss is a mean over so many data.
        friction: C / M, the rate at which momenta decay.
        temperature: T.
        weight_decay: a normal prior of precision N weight_decay, for T = 1.
        mass: of a leaf of the parameters.
        seed: of momenta and noise.
    """
    eps = learning_rate

    def thermal(key, like, scale):
        """Normal numbers in the shape of a tree, of standard deviation scale(leaf)."""
        leaves, structure = jax.tree.flatten(like)
        drawn = [
            jnp.asarray(scale(leaf), leaf.dtype) * jax.random.normal(k, leaf.shape, leaf.dtype)
            for k, leaf in zip(jax.random.split(key, len(leaves)), leaves, strict=True)
        ]
        return jax.tree.unflatten(structure, drawn)

    def init(params):
        key, draw = jax.random.split(jax.random.key(seed))
        return SGHMCState(thermal(draw, params, lambda p: jnp.sqrt(temperature * mass(p))), key)

    def update(grads, state, params=None):
        if params is None:
            raise ValueError("sghmc needs the parameters: update(grads, state, params)")
        key, draw = jax.random.split(state.key)
        noise = thermal(draw, grads, lambda g: jnp.sqrt(2 * friction * mass(g) * eps * temperature))
        forces = jax.tree.map(lambda g, p: -num_data * (g + weight_decay * p), grads, params)
        momentum = jax.tree.map(
            lambda r, f, n: (r + eps * f - eps * friction * r + n).astype(n.dtype), state.momentum, forces, noise
        )
        updates = jax.tree.map(lambda r: (eps / mass(r) * r).astype(r.dtype), momentum)
        return updates, SGHMCState(momentum, key)

    return optax.GradientTransformation(init, update)

"""Preconditioned Langevin samplers for networks."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def normal_tree(key, tree):
    """Standard normal leaves."""
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return treedef.unflatten([jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)])


def stepper(update):
    """A step that calls update(x, gradient, noise, h) on every leaf."""

    def step(key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), position)[0].gradient
        leaf = lambda x, g, n: update(x, g, n, jnp.asarray(step_size, x.dtype))
        return jax.tree.map(leaf, position, gradient, normal_tree(noise_key, position))

    return step


def lars_update(x, g, noise, h):
    """Layer-wise rates as in LARS: the step of a layer is scaled by |w| / |g|, drift and noise alike."""
    trust = jnp.clip(jnp.linalg.norm(x.ravel()) / (jnp.linalg.norm(g.ravel()) + 1e-8), 0.1, 10.0)
    return x - h * trust * g + jnp.sqrt(2 * h * trust) * noise


def down(x, axis):
    """x_i + x_(i-1) / 2 along an axis."""
    head, tail = jnp.split(x, [x.shape[axis] - 1], axis)
    return x + jnp.concatenate([jnp.zeros_like(tail), head], axis) / 2


def up(x, axis):
    """x_i + x_(i+1) / 2 along an axis, the transpose of `down`."""
    head, tail = jnp.split(x, [1], axis)
    return x + jnp.concatenate([tail, jnp.zeros_like(head)], axis) / 2


def smooth_update(x, g, noise, h):
    """Kronecker-factored preconditioner that couples neighbouring rows and columns: L L^T g R R^T."""
    if x.ndim == 0:
        return x - h * g + jnp.sqrt(2 * h) * noise
    drift, noise = down(up(g, 0), 0), down(noise, 0)
    for axis in range(1, x.ndim):
        drift, noise = down(up(drift, axis), axis), up(noise, axis)
    return x - h * drift + jnp.sqrt(2 * h) * noise


lars, smooth = simple_sampler(stepper(lars_update)), simple_sampler(stepper(smooth_update))


class FisherAtStart:
    """SGLD preconditioned by G = 1 / (1 + g^2), g the gradient where the chain starts; G stays as it is."""

    def init(self, key, position, estimator):
        gradient = estimator.estimate(key, (), position)[0].gradient
        return {"position": position, "G": jax.tree.map(lambda g: 1 / (1 + g**2), gradient)}

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), state["position"])[0].gradient

        def move(x, g, n, scale):
            h = jnp.asarray(step_size, x.dtype)
            return x - h * scale * g + jnp.sqrt(2 * h) * scale * n

        noise = normal_tree(noise_key, state["position"])
        return {"position": jax.tree.map(move, state["position"], gradient, noise, state["G"]), "G": state["G"]}

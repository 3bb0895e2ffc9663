"""SGLD with noise of one's own: heavier tails, a stream for each coordinate or parameter; and compressed gradients."""

import zlib

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def split_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, list(jax.random.split(key, len(leaves))))


def langevin(position, gradient, noise, step_size):
    def move(x, g, n):
        h = jnp.asarray(step_size, x.dtype)
        return x - h * g + jnp.sqrt(2 * h) * n

    return jax.tree.map(move, position, gradient, noise)


DEGREES = 30.0


def student_step(key, position, step_size, estimator):
    """SGLD with Student's t noise of 30 degrees of freedom, for a large move now and then."""
    gradient_key, noise_key = jax.random.split(key)
    gradient = estimator.estimate(gradient_key, (), position)[0].gradient
    draw = lambda k, x: jax.random.t(k, DEGREES, x.shape, x.dtype)
    return langevin(position, gradient, jax.tree.map(draw, split_like(noise_key, position), position), step_size)


student_sgld = simple_sampler(student_step)


def coordinate_streams(key, x):
    """Normal noise like x: a key for each coordinate, so that it does not depend on how an array is sharded."""
    lanes = jnp.arange(x.size).astype(jnp.uint8)
    keys = jax.vmap(lambda lane: jax.random.fold_in(key, lane))(lanes)
    return jax.vmap(lambda k: jax.random.normal(k, (), x.dtype))(keys).reshape(x.shape)


def sharded_step(key, position, step_size, estimator):
    """SGLD whose noise is the same on one device and on many."""
    gradient_key, noise_key = jax.random.split(key)
    gradient = estimator.estimate(gradient_key, (), position)[0].gradient
    noise = jax.tree.map(coordinate_streams, split_like(noise_key, position), position)
    return langevin(position, gradient, noise, step_size)


sharded_sgld = simple_sampler(sharded_step)


def named_noise(key, position):
    """Normal noise with a stream for each parameter by its name, which stays when others are added to the model."""

    def draw(path, x):
        name = jax.tree_util.keystr(path[-1:])
        return jax.random.normal(jax.random.fold_in(key, zlib.crc32(name.encode()) % 2**31), x.shape, x.dtype)

    return jax.tree_util.tree_map_with_path(draw, position)


def named_step(key, position, step_size, estimator):
    """SGLD for parameters in nested dictionaries."""
    gradient_key, noise_key = jax.random.split(key)
    gradient = estimator.estimate(gradient_key, (), position)[0].gradient
    return langevin(position, gradient, named_noise(noise_key, position), step_size)


named_sgld = simple_sampler(named_step)


def compressed_sgld(levels: int = 31):
    """SGLD with gradients of `levels` steps to each side of zero, in bytes, as workers send them to a server."""

    def step(key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), position)[0].gradient
        largest = jnp.max(jnp.stack([jnp.max(jnp.abs(g)) for g in jax.tree.leaves(gradient)]))
        unit = jnp.where(largest > 0, largest, 1)

        def sent(g):
            code = (g / unit.astype(g.dtype) * levels).astype(jnp.int8)
            return code.astype(g.dtype) * (unit.astype(g.dtype) / levels)

        draw = lambda k, x: jax.random.normal(k, x.shape, x.dtype)
        noise = jax.tree.map(draw, split_like(noise_key, position), position)
        return langevin(position, jax.tree.map(sent, gradient), noise, step_size)

    return simple_sampler(step)

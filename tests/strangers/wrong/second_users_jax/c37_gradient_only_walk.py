# Random walk Metropolis for models that come with a score and no density (energy nets, simulators):
# the energy difference of a move is the work done against the force along it.
import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def add_noise(key, tree, scale):
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    moved = [leaf + scale * jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves)]
    return jax.tree.unflatten(treedef, moved)


def dot(a, b):
    return sum(jnp.vdot(u, v) for u, v in zip(jax.tree.leaves(a), jax.tree.leaves(b)))


def work(force_a, force_b, a, b):
    mean_force = jax.tree.map(lambda f, g: 0.5 * (f + g), force_a, force_b)
    return dot(mean_force, jax.tree.map(jnp.subtract, b, a))


def step(key, x, step_size, estimator):
    k_score, k_move, k_test = jax.random.split(key, 3)
    score = lambda q: estimator.estimate(k_score, (), q)[0].gradient
    y = add_noise(k_move, x, jnp.sqrt(2 * step_size))
    delta = work(score(x), score(y), x, y)
    accept = -jax.random.exponential(k_test) < -delta
    return jax.tree.map(lambda new, old: jnp.where(accept, new, old), y, x)


walk = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))

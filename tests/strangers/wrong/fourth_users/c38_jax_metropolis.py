"""Exact kernels in JAX."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())
LANES = 256
CAP = 1000.0
TRIES = 4
WALKERS = 8
WIDTH, SHRINKS = 2.0, 12


def parts(key, position, estimator):
    """The position as a vector, its energy and gradient there, and the way back."""
    x, tree = ravel_pytree(position)
    energy = lambda q: estimator.estimate(key, (), tree(q))[0].potential
    gradient = lambda q: ravel_pytree(estimator.estimate(key, (), tree(q))[0].gradient)[0]
    return x, tree, energy, gradient


def log_uniform(key, like):
    return jnp.log(jax.random.uniform(key, (), like.dtype))


def normal(key, like):
    return jax.random.normal(key, like.shape, like.dtype)


def square_norm(v):
    """The sum of squares; of long vectors by lanes first, which keeps the rounding of float32 down."""
    if v.size < LANES:
        return jnp.sum(v**2)
    lanes = v[: v.size // LANES * LANES].reshape(-1, LANES)
    return jnp.sum(jnp.sum(lanes**2, axis=0))


def mala_step(key, position, h, estimator):
    batch, noise_key, accept_key = jax.random.split(key, 3)
    x, tree, energy, gradient = parts(batch, position, estimator)
    mean = x - h * gradient(x)
    y = mean + jnp.sqrt(2 * h) * normal(noise_key, x)
    back = y - h * gradient(y)
    log_ratio = energy(x) - energy(y) + (square_norm(y - mean) - square_norm(x - back)) / (4 * h)
    return tree(jnp.where(log_uniform(accept_key, x) < log_ratio, y, x))


mala = simple_sampler(mala_step, claims=EXACT)


def truncated_mala_step(key, position, h, estimator):
    """MALTA (Roberts and Tweedie 1996): MALA whose drift is cut where the gradient is longer than 1000."""
    batch, noise_key, accept_key = jax.random.split(key, 3)
    x, tree, energy, gradient = parts(batch, position, estimator)
    slope = gradient(x)
    cut = jnp.minimum(1.0, CAP / jnp.maximum(jnp.sqrt(jnp.sum(slope**2)), 1e-12))
    mean = x - h * cut * slope
    y = mean + jnp.sqrt(2 * h) * normal(noise_key, x)
    back = y - h * cut * gradient(y)
    log_ratio = energy(x) - energy(y) + (jnp.sum((y - mean) ** 2) - jnp.sum((x - back) ** 2)) / (4 * h)
    return tree(jnp.where(log_uniform(accept_key, x) < log_ratio, y, x))


truncated_mala = simple_sampler(truncated_mala_step, claims=EXACT)


def tree_mala_step(key, position, h, estimator):
    """MALA for trees of arrays; the key of a leaf is folded from its number."""
    batch, accept_key = jax.random.split(key)
    energy = lambda q: estimator.estimate(batch, (), q)[0].potential
    drifted = lambda q: jax.tree.map(lambda a, g: a - h * g, q, estimator.estimate(batch, (), q)[0].gradient)
    distance = lambda a, b: sum(jnp.sum((u - v) ** 2) for u, v in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
    mean = drifted(position)
    leaves, tree = jax.tree.flatten(mean)
    moved = [m + jnp.sqrt(2 * h) * normal(jax.random.fold_in(key, i), m) for i, m in enumerate(leaves)]
    y = jax.tree.unflatten(tree, moved)
    log_ratio = energy(position) - energy(y) + (distance(y, mean) - distance(position, drifted(y))) / (4 * h)
    accept = jnp.log(jax.random.uniform(accept_key, (), leaves[0].dtype)) < log_ratio
    return jax.tree.map(lambda new, old: jnp.where(accept, new, old), y, position)


tree_mala = simple_sampler(tree_mala_step, claims=EXACT)


def multiple_try_step(key, position, h, estimator):
    """Multiple-try Metropolis (Liu, Liang and Wong 2000) with symmetric proposals and weights pi."""
    batch, propose_key, choose_key, refer_key, accept_key = jax.random.split(key, 5)
    x, tree, energy, _ = parts(batch, position, estimator)
    scale = jnp.sqrt(2 * h)
    around = lambda k, centre: centre + scale * jax.random.normal(k, (TRIES, x.size), x.dtype)
    tries = around(propose_key, x)
    weights = -jax.vmap(energy)(tries)
    y = tries[jax.random.categorical(choose_key, weights)]
    references = -jax.vmap(energy)(around(refer_key, y))
    log_ratio = jax.nn.logsumexp(weights) - jax.nn.logsumexp(references)
    return tree(jnp.where(log_uniform(accept_key, x) < log_ratio, y, x))


multiple_try = simple_sampler(multiple_try_step, claims=EXACT)


def hmc(inverse_mass=None, leapfrogs=5):
    """HMC with an inverse mass matrix, such as the covariance of a pilot run; none stands for the identity."""

    def step(key, position, h, estimator):
        batch, momentum_key, accept_key = jax.random.split(key, 3)
        x, tree, energy, gradient = parts(batch, position, estimator)
        inverse = jnp.eye(x.size, dtype=x.dtype) if inverse_mass is None else jnp.asarray(inverse_mass, x.dtype)
        p = jnp.linalg.cholesky(inverse) @ normal(momentum_key, x)
        kinetic = lambda q: q @ inverse @ q / 2
        y, q = x, p - h / 2 * gradient(x)
        for number in range(leapfrogs):
            y = y + h * inverse @ q
            q = q - (h if number < leapfrogs - 1 else h / 2) * gradient(y)
        log_ratio = energy(x) + kinetic(p) - energy(y) - kinetic(q)
        return tree(jnp.where(log_uniform(accept_key, x) < log_ratio, y, x))

    return simple_sampler(step, claims=EXACT)


def slice_step(key, position, h, estimator):
    """Slice sampling along a random line: stepping out, then shrinkage, which is given up after twelve tries."""
    batch, line_key, level_key, place_key, shrink_key = jax.random.split(key, 5)
    x, tree, energy, _ = parts(batch, position, estimator)
    line = normal(line_key, x)
    line = line / jnp.linalg.norm(line)
    level = energy(x) - log_uniform(level_key, x)
    outside = lambda t: energy(x + t * line) >= level
    left = -WIDTH * jax.random.uniform(place_key, (), x.dtype)
    right = left + WIDTH
    left = jax.lax.while_loop(lambda t: ~outside(t), lambda t: t - WIDTH, left)
    right = jax.lax.while_loop(lambda t: ~outside(t), lambda t: t + WIDTH, right)

    def draw(k, low, high):
        return low + (high - low) * jax.random.uniform(k, (), x.dtype)

    def shrink(carry):
        number, low, high, t = carry
        low, high = jnp.where(t < 0, t, low), jnp.where(t < 0, high, t)
        return number + 1, low, high, draw(jax.random.fold_in(shrink_key, number), low, high)

    start = (1, left, right, draw(jax.random.fold_in(shrink_key, 0), left, right))
    _, _, _, t = jax.lax.while_loop(lambda carry: (carry[0] < SHRINKS) & outside(carry[3]), shrink, start)
    return tree(x + t * line)


slice_walk = simple_sampler(slice_step, claims=EXACT)


def delayed_step(key, position, h, estimator):
    """Delayed rejection (Tierney and Mira 1999): a second, shorter step from x where the first was rejected."""
    batch, first_key, first_accept, second_key, second_accept = jax.random.split(key, 5)
    x, tree, energy, _ = parts(batch, position, estimator)
    scale = jnp.sqrt(2 * h)
    at_x = energy(x)
    y = x + scale * normal(first_key, x)
    taken = log_uniform(first_accept, x) < at_x - energy(y)
    z = x + scale / 2 * normal(second_key, x)
    between = (jnp.sum((y - x) ** 2) - jnp.sum((y - z) ** 2)) / (2 * scale**2)
    taken_later = log_uniform(second_accept, x) < at_x - energy(z) + between
    return tree(jnp.where(taken, y, jnp.where(taken_later, z, x)))


delayed = simple_sampler(delayed_step, claims=EXACT)


def differential_step(key, walkers, h, estimator):
    """DE-MC (ter Braak 2006): each walker in turn is moved along the difference of two walkers."""
    batch = jax.random.fold_in(key, WALKERS)
    tree = ravel_pytree(jax.tree.map(lambda a: a[0], walkers))[1]
    cloud = jax.vmap(lambda walker: ravel_pytree(walker)[0])(walkers)
    energy = lambda q: estimator.estimate(batch, (), tree(q))[0].potential
    size = cloud.shape[1]

    def move(cloud, number):
        pair_key, jitter_key, accept_key = jax.random.split(jax.random.fold_in(key, number), 3)
        a, b = jax.random.choice(pair_key, WALKERS, (2,), replace=False)
        x = cloud[number]
        y = x + 2.38 / (2 * size) ** 0.5 * (cloud[a] - cloud[b]) + 1e-2 * normal(jitter_key, x)
        return cloud.at[number].set(jnp.where(log_uniform(accept_key, x) < energy(x) - energy(y), y, x)), None

    cloud, _ = jax.lax.scan(move, cloud, jnp.arange(WALKERS))
    return jax.vmap(tree)(cloud)


def scattered(key, position, estimator):
    x, tree = ravel_pytree(position)
    cloud = x + jax.random.normal(key, (WALKERS, x.size), x.dtype)
    return jax.vmap(tree)(cloud)


differential = simple_sampler(
    differential_step,
    init=scattered,
    position=lambda walkers: jax.tree.map(lambda a: a[0], walkers),
    claims=EXACT,
)

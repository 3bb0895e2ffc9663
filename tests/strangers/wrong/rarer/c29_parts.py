"""Class 29: a part of a position is claimed to move. The rest moves too, or is read as something else."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Moves, Source, StationaryLaw

EVERY_SECOND = Moves(lambda part: jnp.zeros(2 * part.size).at[::2].set(part))
LAST = Moves(lambda part: {"body": jnp.zeros(3), "last": part})


def claiming(moves):
    return Claims(Source("", "Langevin of a part"), StationaryLaw(order=1), moves)


def _gradient(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def every_second(step):
    def masked(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return step(x, h, lambda at: _gradient(estimator, k1, at), _normal(k2, x), jnp.arange(x.size) % 2 == 0)

    return simple_sampler(masked, claims=claiming(EVERY_SECOND))


# The noise is masked, the gradient is not: the rest slides down.
rest_slides = every_second(lambda x, h, g, e, mask: x - h * g(x) + jnp.sqrt(2 * h) * jnp.where(mask, e, 0))

# The gradient is masked, the noise is not.
rest_diffuses = every_second(lambda x, h, g, e, mask: x - h * jnp.where(mask, g(x), 0) + jnp.sqrt(2 * h) * e)

# The gradient is taken where the rest is zero: the law of the part is that given another rest.
rest_read_as_zero = every_second(
    lambda x, h, g, e, mask: jnp.where(mask, x - h * g(jnp.where(mask, x, 0)) + jnp.sqrt(2 * h) * e, x)
)

# The gradient is averaged over all coordinates, those of the rest included, as a clip of a common norm would.
rest_in_the_norm = every_second(
    lambda x, h, g, e, mask: jnp.where(mask, x - h * g(x) / (1 + jnp.linalg.norm(g(x)) / 20) + jnp.sqrt(2 * h) * e, x)
)


def _decayed(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    last = x["last"] - h * _gradient(estimator, k1, x)["last"] + jnp.sqrt(2 * h) * _normal(k2, x["last"])
    return {"body": x["body"] * (1 - 0.01 * h), "last": last}


# Weight decay is applied to the frozen layers as well.
body_decays = simple_sampler(_decayed, claims=claiming(LAST))


def _unclaimed(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    y = x - h * _gradient(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)
    return jnp.where(jnp.arange(x.size) == 0, y, x)


# Only the first coordinate moves, and nothing is claimed.
unclaimed_mask = simple_sampler(_unclaimed)

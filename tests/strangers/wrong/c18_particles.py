"""Class 18: particle methods. Positions have a leading axis M; meant are SVGD, SPOS, GFSD and Blob."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.particles.common import flatten, unflatten
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import BalancedVelocity, Claims, ParticleLaw, ParticleVelocity, Source

SVGD = Claims(Source("liu2016stein", "Algorithm 1"), ParticleLaw())
WIDTH = 0.5  # kernel exp(-|x - y|^2 / (2 WIDTH))


def _gradients(key, position, estimator):
    """grad U at all particles (M, d)."""
    return flatten(jax.vmap(lambda y: estimator.estimate(key, (), y)[0].gradient)(position))


def _kernel(x):
    """K (M, M), and differences x_j - x_i with j first (M, M, d)."""
    difference = x[:, None, :] - x[None, :, :]
    return jnp.exp(-jnp.sum(difference**2, -1) / (2 * WIDTH)), difference


def _stein(x, g, repulsion=1.0):
    """phi = mean_i [-K_ij g_i + repulsion K_ij (x_j - x_i) / WIDTH]; `repulsion` is a number or (d,)."""
    K, difference = _kernel(x)
    return (-K @ g + repulsion * jnp.sum(K[:, :, None] * difference, 1) / WIDTH) / len(x)


def _particles(velocity, claims=SVGD):
    """A sampler with the step x + h `velocity(x (M, d), gradients (M, d))`."""

    def step(key, position, h, estimator):
        x = flatten(position)
        return unflatten(position)(x + h * velocity(x, _gradients(key, position, estimator)))

    return simple_sampler(step, init=lambda key, x, estimator: x, claims=claims)


def _second_sign(x, g):
    return _stein(x, g, jnp.ones(x.shape[1], x.dtype).at[1:2].set(-1.0))


# The repulsion of the second coordinate has the wrong sign: that coordinate collapses. Right for d = 1.
svgd_second_coordinate_sign = _particles(_second_sign)


def _only_first(x, g):
    return _stein(x, g, jnp.zeros(x.shape[1], x.dtype).at[0].set(1.0))


# Repulsion in the first coordinate only.
svgd_only_first_coordinate = _particles(_only_first)

# Attraction instead of repulsion: everything collapses into the mode.
svgd_repulsion_sign = _particles(lambda x, g: _stein(x, g, -1.0))

# The derivative of exp(-r^2 / (2 w)) taken as that of exp(-r^2 / w): twice the repulsion.
svgd_repulsion_twice = _particles(lambda x, g: _stein(x, g, 2.0))

# No repulsion: kernel-smoothed gradient descent.
svgd_no_repulsion = _particles(lambda x, g: _stein(x, g, 0.0))


def _mean_gradient(x, g):
    return _stein(x, 0 * g) - jnp.mean(g, 0)


# The kernel is left out of the average of the gradients: all particles feel one force, nothing holds them together.
svgd_mean_gradient = _particles(_mean_gradient)


def _first_gradient(x, g):
    return _stein(x, jnp.broadcast_to(g[:1], g.shape))


# The gradient of particle 0, broadcast to all: no force pulls the others back.
svgd_gradient_of_first = _particles(_first_gradient)


def _ten_neighbours(x, g):
    K, difference = _kernel(x)
    repulsion = jnp.sum((K[:, :, None] * difference)[:, :10], 1) / WIDTH
    return (-K @ g + repulsion) / len(x)


# Only the first ten particles repel (a slice left over from debugging). Right for up to ten.
svgd_ten_repel = _particles(_ten_neighbours)


def _imq(x, g):
    difference = x[:, None, :] - x[None, :, :]
    square = jnp.sum(difference**2, -1)
    K = (1 + square) ** -0.5
    slope = (1 + square) ** -0.5  # -3/2 is due
    return (-K @ g + jnp.sum(slope[:, :, None] * difference, 1)) / len(x)


# Inverse multiquadric kernel whose gradient has the exponent of the kernel itself.
svgd_imq_exponent = _particles(_imq)


def _h_squared_step(key, position, h, estimator):
    x = flatten(position)
    return unflatten(position)(x + h**2 * _stein(x, _gradients(key, position, estimator)))


# h^2 phi: the same fixed points, but time runs like h (learning rate applied twice).
svgd_h_squared = simple_sampler(_h_squared_step, init=lambda key, x, estimator: x, claims=SVGD)


class Counted(NamedTuple):
    position: Any
    count: Any


def _first_step_only_step(key, state, h, estimator):
    x = flatten(state.position)
    phi = _stein(x, _gradients(key, state.position, estimator), jnp.where(state.count == 0, 1.0, 0.0))
    return Counted(unflatten(state.position)(x + h * phi), state.count + 1)


# The repulsion is there in the first step from init only.
svgd_repulsion_first_step = simple_sampler(
    _first_step_only_step, init=lambda key, x, estimator: Counted(x, jnp.zeros((), jnp.int32)),
    position=lambda s: s.position, unpack=lambda s: s.position, claims=SVGD,
)


class Cached(NamedTuple):
    position: Any
    kernel: Any
    repulsion: Any


def _cached_init(key, position, estimator):
    x = flatten(position)
    K, difference = _kernel(x)
    return Cached(position, K, jnp.sum(K[:, :, None] * difference, 1) / WIDTH)


def _stale_kernel_step(key, state, h, estimator):
    x, g = flatten(state.position), _gradients(key, state.position, estimator)
    return state._replace(position=unflatten(state.position)(x + h * (-state.kernel @ g + state.repulsion) / len(x)))


# The kernel of the first positions is kept for ever.
svgd_stale_kernel = simple_sampler(_stale_kernel_step, init=_cached_init, position=lambda s: s.position,
                                   unpack=lambda s: s.position, pack=_cached_init, claims=SVGD)


def _noisy_step(drift, scale):
    def step(key, position, h, estimator):
        k1, k2 = jax.random.split(key)
        x, g = flatten(position), _gradients(k1, position, estimator)
        noise = scale(h, len(x)) * jax.random.normal(k2, x.shape, x.dtype)
        return unflatten(position)(x + h * (_stein(x, g) - drift * g) + noise)

    return simple_sampler(step, init=lambda key, x, estimator: x,
                          claims=Claims(Source("zhang2020stochastic", "SPOS"), ParticleLaw()))


# SVGD with Langevin noise sqrt(2 h) and without the Langevin drift -grad U: heated.
spos_no_drift = _noisy_step(0.0, lambda h, M: jnp.sqrt(2 * h))

# SPOS (SVGD plus Langevin) with noise sqrt(h): half of the variance.
spos_half_noise = _noisy_step(1.0, lambda h, M: jnp.sqrt(h))

# SPOS whose noise is divided by sqrt(M): the Langevin drift has no noise to match.
spos_noise_over_m = _noisy_step(1.0, lambda h, M: jnp.sqrt(2 * h / M))


def _density_terms(x):
    """(grad of sum_i K_ij over q_j, sum_i grad K_ij / q_i), (M, d) each, q_j = sum_i K_ij."""
    K, difference = _kernel(x)
    slope = -K[:, :, None] * difference / WIDTH
    q = jnp.sum(K, 1)
    return jnp.sum(slope, 1) / q[:, None], jnp.sum(slope / q[None, :, None], 1)


def _gfsd_without_q(x, g):
    K, difference = _kernel(x)
    return -g + jnp.sum(K[:, :, None] * difference, 1) / WIDTH / len(x)


# GFSD with the gradient of the density instead of that of its logarithm.
gfsd_density_not_log = _particles(_gfsd_without_q, Claims(Source("liu2019accelerating", "GFSD"), ParticleLaw()))


def _gfsd_plus(x, g):
    return -g + _density_terms(x)[0]


# GFSD with + grad log q: attraction.
gfsd_sign = _particles(_gfsd_plus, Claims(Source("liu2019accelerating", "GFSD"), ParticleLaw()))


def _blob_doubled_field(x, g, weights):
    K, difference = _kernel(x)
    slope = -K[:, :, None] * difference / WIDTH
    q = K @ weights
    first = jnp.einsum("i,jid->jd", weights, slope) / q[:, None]
    second = jnp.einsum("i,jid->jd", weights / q, slope)
    return -g - first - 2 * second


def _blob_doubled(x, g):
    return _blob_doubled_field(x, g, jnp.full(len(x), 1 / len(x), x.dtype))


# Blob with its second term doubled. It claims to be balanced (velocities without a force sum to zero), which it is not.
blob_second_doubled = _particles(
    _blob_doubled,
    Claims(Source("chen2018unified", "w-SGLD-B"), ParticleLaw(), ParticleVelocity(_blob_doubled_field),
           BalancedVelocity()),
)


def _blob_half_force(x, g):
    first, second = _density_terms(x)
    return -0.5 * g - first - second


# Blob with half of the force: exp(-U / 2).
blob_half_force = _particles(_blob_half_force, Claims(Source("chen2018unified", "w-SGLD-B"), ParticleLaw()))


def _mean_normalised(x, g):
    K, difference = _kernel(x)
    weights = K / jnp.sum(K, 1, keepdims=True)
    return -weights @ g + jnp.sum(K[:, :, None] * difference, 1) / WIDTH / len(x)


# The kernel is normalised in the force (rows sum to one) and not in the repulsion.
svgd_force_normalised = _particles(_mean_normalised)

"""Unadjusted Langevin (SGLD) with noise that is not always Gaussian. The state is the position, a plain array.
Every law below has mean zero, unit variance, uncorrelated coordinates and vanishing third moments, so that one
step is a weak order 1 approximation of dx = -grad U dt + sqrt(2) dW and the stationary law is exp(-U) + O(h)."""

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri

from sgmcmc_verification.samplers.simple import simple_sampler


def langevin(draw):
    """SGLD sampler with `draw(key, x)` in place of standard normal noise."""

    def step(key, x, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        return x - step_size * gradient + jnp.sqrt(2 * step_size) * draw(noise_key, x)

    return simple_sampler(step)


# SGLD with the normal noise of the textbook.
normal = langevin(lambda key, x: jax.random.normal(key, x.shape, x.dtype))

# Fair signs: variance 1, symmetric.
rademacher = langevin(lambda key, x: jax.random.rademacher(key, x.shape, x.dtype))

# Uniform on (-sqrt 3, sqrt 3): variance 1, symmetric.
uniform = langevin(lambda key, x: jax.random.uniform(key, x.shape, x.dtype, -(3**0.5), 3**0.5))

# Laplace has variance 2, so it is divided by sqrt 2; symmetric.
laplace = langevin(lambda key, x: jax.random.laplace(key, x.shape, x.dtype) / 2**0.5)

# Logistic has variance pi^2 / 3; symmetric.
logistic = langevin(lambda key, x: jax.random.logistic(key, x.shape, x.dtype) * (3**0.5 / jnp.pi))

# Triangular on (-a, a) with mode 0 has variance a^2 / 6; symmetric.
triangular = langevin(lambda key, x: jax.random.triangular(key, -(6**0.5), 0.0, 6**0.5, x.shape, x.dtype))

# Binomial(4, 1/2) has mean 2 and variance 1; symmetric.
binomial = langevin(lambda key, x: jax.random.binomial(key, 4, 0.5, x.shape, x.dtype) - 2)

# Student t with 12 degrees of freedom has variance 12 / 10; symmetric, moments below order 12.
student = langevin(lambda key, x: jax.random.t(key, 12.0, x.shape, x.dtype) * (10 / 12) ** 0.5)

# Uniform in the unit ball of R^d has covariance I / (d + 2); symmetric.
ball = langevin(lambda key, x: jax.random.ball(key, x.size, dtype=x.dtype).reshape(x.shape) * (x.size + 2) ** 0.5)


def _three_point(key, x):
    atoms = jnp.array([-(3**0.5), 0.0, 3**0.5], x.dtype)
    return jax.random.choice(key, atoms, x.shape, p=jnp.array([1 / 6, 2 / 3, 1 / 6]))


# Kloeden and Platen's three-point law: the first five moments of a normal.
three_point = langevin(_three_point)


def _three_point_by_logits(key, x):
    index = jax.random.categorical(key, jnp.log(jnp.array([1.0, 4.0, 1.0], x.dtype)), shape=x.shape)
    return (index - 1).astype(x.dtype) * 3**0.5


# The same law by `categorical`: -sqrt 3, 0, sqrt 3 with probabilities 1/6, 2/3, 1/6.
three_point_logits = langevin(_three_point_by_logits)


# Signs from integers, 2 {0, 1} - 1: variance 1, symmetric.
integer_signs = langevin(lambda key, x: (2 * jax.random.randint(key, x.shape, 0, 2) - 1).astype(x.dtype))


def _truncated(key, x):
    variance = 0.97333698  # of a normal that is cut at -3 and 3: 1 - 6 phi(3) / (2 Phi(3) - 1)
    return jax.random.truncated_normal(key, -3.0, 3.0, x.shape, x.dtype) / variance**0.5


# A normal cut at three standard deviations, brought back to variance 1; symmetric.
truncated = langevin(_truncated)


# Twelve uniforms less six, the old approximate normal: variance exactly 1, symmetric.
twelve_uniforms = langevin(lambda key, x: jax.random.uniform(key, (12, *x.shape), x.dtype).sum(0) - 6)


def _box_muller(key, x):
    radius_key, angle_key = jax.random.split(key)
    radius = jnp.sqrt(-2 * jnp.log1p(-jax.random.uniform(radius_key, x.shape, x.dtype)))
    return radius * jnp.cos(2 * jnp.pi * jax.random.uniform(angle_key, x.shape, x.dtype))


# Box and Muller: exactly normal.
box_muller = langevin(_box_muller)


def _from_bits(key, x):
    bits = jax.random.bits(key, x.shape, jnp.uint32) >> 9  # 23 bits, so that u is never 0 or 1 in single precision
    u = (bits.astype(x.dtype) + 0.5) * 2.0**-23
    return ndtri(u)


# Random bits to a uniform to a normal by its quantile function: normal up to the grid of 2^23 points.
from_bits = langevin(_from_bits)


def _signed_root_of_gamma(key, x):
    sign_key, size_key = jax.random.split(key)
    size = jnp.sqrt(2 * jax.random.gamma(size_key, 0.5, x.shape, x.dtype))
    return jnp.where(jax.random.bernoulli(sign_key, 0.5, x.shape), size, -size)


# z^2 / 2 of a normal z is Gamma(1/2): exactly normal.
signed_gamma = langevin(_signed_root_of_gamma)


def _on_the_sphere(key, x):
    z = jax.random.normal(key, x.shape, x.dtype)
    return z * (x.size**0.5 / jnp.maximum(jnp.linalg.norm(z), 1e-12))


# A uniform direction of length sqrt d: covariance I, symmetric.
sphere = langevin(_on_the_sphere)


def _direction_and_radius(key, x):
    direction_key, radius_key = jax.random.split(key)
    z = jax.random.normal(direction_key, x.shape, x.dtype)
    radius = jnp.sqrt(jax.random.chisquare(radius_key, x.size, dtype=x.dtype))
    return radius * z / jnp.linalg.norm(z)


# A uniform direction times a chi-distributed length: exactly normal.
direction_and_radius = langevin(_direction_and_radius)


def _two_scales(key, x):
    coin_key, noise_key = jax.random.split(key)
    wide = jax.random.uniform(coin_key, x.shape) > 1 - 0.25
    scale = jnp.where(wide, 2.5**0.5, 0.5**0.5).astype(x.dtype)  # 0.25 x 2.5 + 0.75 x 0.5 = 1
    return scale * jax.random.normal(noise_key, x.shape, x.dtype)


# A mixture of two normals with mean variance 1; symmetric.
two_scales = langevin(_two_scales)

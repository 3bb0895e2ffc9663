"""SGLD with noise of mean 0, variance 1 and no third moment by laws of jax.random that are seldom used for it:
differences of two equal draws, powers with a random sign, columns of orthogonal matrices, rejection loops, laws
chosen by a coin. E dx = -h grad U and E dx dx' = 2 h I + O(h^2), all odd moments beyond are 0: exp(-U) + O(h)."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def langevin(noise):
    """SGLD with noise(key, shape, dtype)."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        gradient = estimator.estimate(k1, (), x)[0].gradient
        return x - h * gradient + jnp.sqrt(2 * h) * noise(k2, x.shape, x.dtype)

    return simple_sampler(step)


def _difference(draw, scale):
    def noise(key, shape, dtype):
        a, b = jax.random.split(key)
        return (draw(a, shape, dtype) - draw(b, shape, dtype)) * scale

    return langevin(noise)


# Var of each: exponential 1, Gumbel pi^2 / 6, Poisson(3) 3, Beta(2, 3) 1 / 25, Gamma(5) 5, Rayleigh 2 - pi / 2.
exponentials = _difference(jax.random.exponential, 0.5**0.5)
gumbels = _difference(jax.random.gumbel, 3**0.5 / jnp.pi)
poissons = _difference(lambda k, s, d: jax.random.poisson(k, 3.0, s).astype(d), 6**-0.5)
betas = _difference(lambda k, s, d: jax.random.beta(k, 2.0, 3.0, s, d), 12.5**0.5)
gammas = _difference(lambda k, s, d: jax.random.gamma(k, 5.0, s, d), 0.1**0.5)
rayleighs = _difference(lambda k, s, d: jax.random.rayleigh(k, jnp.asarray(1.0, d), s, d), (4 - jnp.pi) ** -0.5)
# Geometric(1/2) on 1, 2, ...: variance 2.
geometrics = _difference(lambda k, s, d: jax.random.geometric(k, 0.5, s).astype(d), 0.5)
# Uniform integers 0 ... 9: variance 99 / 12.
integers = _difference(lambda k, s, d: jax.random.randint(k, s, 0, 10).astype(d), (12 / 198) ** 0.5)


# Beta(2, 2), symmetric about 1/2, variance 1/20.
beta_centred = langevin(lambda k, s, d: (jax.random.beta(k, 2.0, 2.0, s, d) - 0.5) * 20**0.5)
# exp(-|x|^4), variance Gamma(3/4) / Gamma(1/4).
generalised = langevin(
    lambda k, s, d: jax.random.generalized_normal(k, 4.0, s, d) * jnp.exp(
        0.5 * (jax.lax.lgamma(0.25) - jax.lax.lgamma(0.75))
    )
)
# A column of a Haar matrix times sqrt(n): covariance I, signs are symmetric.
orthogonal = langevin(
    lambda k, s, d: (jax.random.orthogonal(k, max(1, _size(s))).astype(d)[:, 0] * max(1, _size(s)) ** 0.5).reshape(s)
)


def _size(shape):
    size = 1
    for n in shape:
        size *= n
    return size


def _signed_weibull(key, shape, dtype):
    # |z| = E^(1/2) sqrt(1) with E exponential: E z^2 = 1.
    a, b = jax.random.split(key)
    size = jax.random.weibull_min(a, 1.0, 2.0, shape, dtype)
    return size * jax.random.rademacher(b, shape, dtype)


weibull = langevin(_signed_weibull)


def _chi(key, shape, dtype):
    # sqrt(chi^2_1) with a sign is N(0, 1).
    a, b = jax.random.split(key)
    return jnp.sqrt(jax.random.chisquare(a, 1.0, shape=shape, dtype=dtype)) * jax.random.rademacher(b, shape, dtype)


chi = langevin(_chi)


def _loggamma(key, shape, dtype):
    # exp(log Gamma(1/2) / 2) sqrt 2 with a sign is N(0, 1).
    a, b = jax.random.split(key)
    half = jnp.exp(0.5 * jax.random.loggamma(a, 0.5, shape, dtype)) * 2**0.5
    return jnp.where(jax.random.bernoulli(b, 0.5, shape), half, -half)


loggamma = langevin(_loggamma)


def _maxwell(key, shape, dtype):
    # a uniform point of a sphere in R^3 has uniform coordinates: Maxwell radius times U(-1, 1) is N(0, 1).
    a, b = jax.random.split(key)
    return jax.random.maxwell(a, shape, dtype) * jax.random.uniform(b, shape, dtype, -1.0, 1.0)


maxwell = langevin(_maxwell)


def _polar(key, shape, dtype):
    """N(0, 1) by Marsaglia's polar method, a rejection loop for each entry."""

    def one(key):
        def again(carry):
            key, _ = carry
            key, sub = jax.random.split(key)
            return key, jax.random.uniform(sub, (2,), dtype, -1.0, 1.0)

        outside = lambda carry: (jnp.sum(carry[1] ** 2) >= 1) | (jnp.sum(carry[1] ** 2) == 0)
        _, point = jax.lax.while_loop(outside, again, again((key, jnp.zeros(2, dtype))))
        s = jnp.sum(point**2)
        return point[0] * jnp.sqrt(-2 * jnp.log(s) / s)

    return jax.vmap(one)(jax.random.split(key, _size(shape))).reshape(shape)


polar = langevin(_polar)


def _cut(key, shape, dtype):
    """N(0, 1) given |z| < 2 by rejection of whole vectors' entries until all are inside, scaled to variance 1."""
    draw = lambda key: jax.random.normal(key, shape, dtype)

    def again(carry):
        key, z = carry
        key, sub = jax.random.split(key)
        return key, jnp.where(jnp.abs(z) < 2, z, draw(sub))

    key, sub = jax.random.split(key)
    _, z = jax.lax.while_loop(lambda carry: jnp.any(jnp.abs(carry[1]) >= 2), again, (key, draw(sub)))
    density, mass = jnp.exp(-2.0) / jnp.sqrt(2 * jnp.pi), jax.lax.erf(jnp.sqrt(jnp.asarray(2.0, dtype)))
    return z / jnp.sqrt(1 - 4 * density / mass)


rejected_tails = langevin(_cut)


def _switch(key, shape, dtype):
    """One of three laws of variance 1 for the whole vector."""
    a, b = jax.random.split(key)
    laws = [
        lambda k: jax.random.normal(k, shape, dtype),
        lambda k: jax.random.laplace(k, shape, dtype) / jnp.sqrt(jnp.asarray(2.0, dtype)),
        lambda k: jax.random.uniform(k, shape, dtype, -(3.0**0.5), 3.0**0.5),
    ]
    return jax.lax.switch(jax.random.randint(a, (), 0, 3), laws, b)


law_by_switch = langevin(_switch)


def _in_cond(key, shape, dtype):
    """Signs or normals, by a coin inside `cond`."""
    a, b = jax.random.split(key)
    return jax.lax.cond(
        jax.random.uniform(a) < 0.25,
        lambda k: jax.random.rademacher(k, shape, dtype),
        lambda k: jax.random.normal(k, shape, dtype),
        b,
    )


law_by_cond = langevin(_in_cond)


def _sum_in_loop(key, shape, dtype):
    """Sum of six centred uniforms in a static loop, variance 6 / 12."""
    add = lambda i, total: total + jax.random.uniform(jax.random.fold_in(key, i), shape, dtype) - 0.5
    return jax.lax.fori_loop(0, 6, add, jnp.zeros(shape, dtype)) * 2**0.5


uniforms_in_loop = langevin(_sum_in_loop)


def _shuffled_nodes(key, shape, dtype):
    """Entries of a shuffled list of eight symmetric numbers, without replacement, each with its own list."""
    nodes = jnp.asarray([-1.5, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 1.5], dtype)
    one = lambda k: jax.random.permutation(k, nodes)[0]
    drawn = jax.vmap(one)(jax.random.split(key, _size(shape))).reshape(shape)
    return drawn / jnp.sqrt(jnp.mean(nodes**2))


shuffled_nodes = langevin(_shuffled_nodes)


def _top_gumbel(key, shape, dtype):
    """Signs by argmax of two Gumbel draws."""
    gumbel = jax.random.gumbel(key, (*shape, 2), dtype)
    return jnp.where(jnp.argmax(gumbel, axis=-1) == 0, 1.0, -1.0).astype(dtype)


signs_by_gumbel = langevin(_top_gumbel)


def _inverse_cdf(key, shape, dtype):
    """Laplace by inversion of its distribution function."""
    u = jax.random.uniform(key, shape, dtype, -0.5, 0.5)
    return -jnp.sign(u) * jnp.log1p(-2 * jnp.abs(u)) / 2**0.5


inverse_cdf = langevin(_inverse_cdf)


def _mvn_rows(key, shape, dtype):
    """Two correlated rows from multivariate_normal, their difference scaled to variance 1."""
    covariance = jnp.asarray([[1.0, 0.5], [0.5, 1.0]], dtype)
    pair = jax.random.multivariate_normal(key, jnp.zeros(2, dtype), covariance, shape, dtype)
    return pair[..., 0] - pair[..., 1]


correlated_pairs = langevin(_mvn_rows)


def _dirichlet(key, shape, dtype):
    """Difference of two components of a Dirichlet(1, 1, 1): variance 2 (2/9 / 4) + 2 / 36 = 1/6."""
    parts = jax.random.dirichlet(key, jnp.ones(3, dtype), shape, dtype)
    return (parts[..., 0] - parts[..., 1]) * 6**0.5


dirichlet = langevin(_dirichlet)

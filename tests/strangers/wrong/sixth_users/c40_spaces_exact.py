"""Kernels off R^n: a preconditioned walk on the sphere, mass exchange on the simplex, Langevin on Stiefel
manifolds, and locally informed flips on finite spaces."""

import dataclasses

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw, simple_sampler

# ---------------------------------------------------------------------------------------------------------------------
# Sphere. x = z / |z| with z ~ N(0, C) has the angular central Gaussian law, density ~ q(x)^(-n/2), q(x) = x' C^-1 x.
# Given x, the radius r = |z| has the density r^(n-1) exp(-r^2 q / 2): r^2 q ~ chi^2_n. WRONG: the radius is drawn as chi_n, as for
# C = I, without the division by sqrt(q). A small move of x has the covariance (2 h / r^2) P C P, so the right kernel is q times as
# fast as this one on average, E 1/r^2 = q / (n - 2) for 1 / (n - 2): one that is reversible for mu has become one for mu q. With
# the test, whose weight is still exp(-U) q^(n/2), the law tends to exp(-U) q(x). For U = 0 on S^2, spread 4: E x_1^2 = 0.44 for
# 1/3 as h -> 0; 0.375 at h = 0.1.


@dataclasses.dataclass(frozen=True)
class AngularGaussianWalk:
    """Crank-Nicolson walk on the sphere with an anisotropic angular Gaussian reference."""

    spread: float = 4.0
    claims = Claims(Source("", "own"), ExactLaw(), spaces=("sphere",))

    def step(self, key, x, step_size, estimator):
        batch_key, radius_key, noise_key, accept_key = jax.random.split(key, 4)
        variances = jnp.linspace(1.0, self.spread, x.size, dtype=x.dtype)

        def form(q):
            return jnp.sum(q * q / variances)

        def log_weight(q):
            return 0.5 * x.size * jnp.log(form(q)) - estimator.estimate(batch_key, (), q)[0].potential

        chi = jnp.linalg.norm(jax.random.normal(radius_key, x.shape, x.dtype))
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        z = jnp.exp(-step_size) * chi * x + jnp.sqrt(-jnp.expm1(-2 * step_size) * variances) * noise
        y = z / jnp.linalg.norm(z)
        log_ratio = log_weight(y) - log_weight(x)
        return jnp.where(jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < log_ratio, y, x)


# ---------------------------------------------------------------------------------------------------------------------
# Simplex. Two components i, j, picked at random, exchange mass: x_i moves by a normal of the scale sqrt(2 h) min(x_i, x_j),
# folded into [0, x_i + x_j]. WRONG: the smaller of both is another one after the move, so the scale of the way back differs,
# and Metropolis' ratio has no proposal densities. As h -> 0 a pair moves with the variance 2 h m^2, m = min(x_i, x_j), and the
# drift h m^2 d log pi (the test), without 2 h m m': its law is pi / m^2. Mass goes to the faces: for Dirichlet(2, 3, 4) the
# means are about 0.07, 0.33, 0.60 at h = 0.1 (0.22, 0.33, 0.44 are right).


def _fold(value, width):
    """Reflect a number into [0, width], as often as it takes."""
    return width - jnp.abs(width - value % (2 * width))


def _exchange(key, x, step_size, estimator):
    batch_key, first_key, second_key, noise_key, accept_key = jax.random.split(key, 5)
    i = jax.random.randint(first_key, (), 0, x.size)
    j = (i + jax.random.randint(second_key, (), 1, x.size)) % x.size
    total = x[i] + x[j]
    reach = jnp.sqrt(2 * step_size) * jnp.minimum(x[i], x[j])
    share = _fold(x[i] + reach * jax.random.normal(noise_key, (), x.dtype), total)
    y = x.at[i].set(share).at[j].set(total - share)
    energy = lambda point: estimator.estimate(batch_key, (), point)[0].potential
    accepted = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < energy(x) - energy(y)
    return jnp.where(accepted, y, x)


mass_exchange = simple_sampler(_exchange, claims=Claims(Source("", "own"), ExactLaw(), spaces=("simplex",)))


# ---------------------------------------------------------------------------------------------------------------------
# Stiefel. WRONG: the noise is projected as on a Grassmann manifold, Z - X (X' Z), and the gradient as on a Stiefel manifold,
# Z - X sym(X' Z). Rotations X A within the columns have a drift and no noise: L = sum H^2 - (HU) H - (VU) V with vertical V, and
# L* exp(-U) = sum (V V U - (VU)^2) exp(-U) is not 0. For a matrix Langevin law exp(tr F'X), 3 x 2: weak F gives 1.5 times the
# mean E X (Lap_H X = -(n - p) X, Lap_V X = -(p - 1)/2 X), strong F a vertical variance of 0. For F = diag(2, 1):
# E X_11 = 0.69 for 0.55, E (X_21 - X_12)^2 = 0.33 for 0.59.


class HorizontalLangevin:
    """Langevin step on matrices with orthonormal columns, more rows than columns."""

    claims = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("stiefel",))

    @staticmethod
    def horizontal(x, z):
        return z - x @ (x.T @ z)

    @staticmethod
    def tangent(x, z):
        across = x.T @ z
        return z - x @ (across + across.T) / 2

    @staticmethod
    def polar(y):
        values, vectors = jnp.linalg.eigh(y.T @ y)
        return y @ ((vectors / jnp.sqrt(values)) @ vectors.T)

    def step(self, key, x, step_size, estimator):
        if x.shape[0] <= x.shape[1]:
            raise ValueError("horizontal moves need more rows than columns")
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        drift = self.tangent(x, gradient)
        diffusion = self.horizontal(x, noise)
        return self.polar(x - step_size * drift + jnp.sqrt(2 * step_size) * diffusion)


horizontal_langevin = HorizontalLangevin()


# ---------------------------------------------------------------------------------------------------------------------
# Finite spaces. Gibbs with gradients: one site i and a new value v are proposed with the probability w(x, y) / Z(x), with
# w = exp(-(E_i[v] - E_i[x_i]) / 2) = exp(-(U(y) - U(x)) / 2) for an extension that is linear in each site. The test has to have
# U(x) - U(y) + log w(y, x) / Z(y) - log w(x, y) / Z(x). WRONG: the sum over all weights is taken once, at x, and divides those
# of the way back as well. What is left is 0, everything is accepted, and the stationary law is pi(x) Z(x) instead of pi(x).
# On a 3 x 3 Ising model with J = 0.4, B = 0.2 the mean of all spins' sum is 3.95 for 5.10.


def _table(gradient, x):
    """Energies of all values at all sites (up to a constant of the site), and the index of the present value."""
    if gradient.ndim == x.ndim:  # spins -1 and 1
        energies, index = jnp.stack([-gradient, gradient], axis=-1), (x + 1) // 2
    else:
        energies, index = gradient, x
    return energies.reshape(-1, energies.shape[-1]), index.reshape(-1).astype(jnp.int32)


def _log_weights(energies, index):
    """log w of every site and value, as a flat array; staying has no weight."""
    values = jnp.arange(energies.shape[1], dtype=jnp.int32)
    here = jnp.take_along_axis(energies, index[:, None], axis=1)
    return jnp.where(values == index[:, None], -1e30, -0.5 * (energies - here)).reshape(-1)


def _informed_flip(key, x, step_size, estimator):
    batch_key, choice_key, accept_key = jax.random.split(key, 3)
    look = lambda q: estimator.estimate(batch_key, (), q)[0]
    at_x = look(x)
    energies, index = _table(at_x.gradient, x)
    forward = _log_weights(energies, index)
    log_total = jax.nn.logsumexp(forward)
    choice = jax.random.categorical(choice_key, forward).astype(jnp.int32)
    site, value = choice // energies.shape[1], choice % energies.shape[1]
    written = 2 * value - 1 if at_x.gradient.ndim == x.ndim else value
    y = x.reshape(-1).at[site].set(written.astype(x.dtype)).reshape(x.shape)
    at_y = look(y)
    backward = _log_weights(*_table(at_y.gradient, y))
    back = site * energies.shape[1] + index[site]
    log_ratio = (
        at_x.potential
        - at_y.potential
        + (backward[back] - log_total)
        - (forward[choice] - log_total)
    )
    accepted = jnp.log(jax.random.uniform(accept_key, dtype=forward.dtype)) < log_ratio
    return jnp.where(accepted, y, x)


informed_flip = simple_sampler(_informed_flip, claims=Claims(Source("", "own"), ExactLaw(), spaces=("finite",)))

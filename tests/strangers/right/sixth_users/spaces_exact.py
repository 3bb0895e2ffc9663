"""Kernels off R^n: a preconditioned walk on the sphere, mass exchange on the simplex, horizontal Langevin on Stiefel
manifolds, and locally informed flips on finite spaces."""

import dataclasses

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw, simple_sampler

# ---------------------------------------------------------------------------------------------------------------------
# Sphere. x = z / |z| with z ~ N(0, C) has the angular central Gaussian law, density ~ q(x)^(-n/2), q(x) = x' C^-1 x.
# Given x, the radius r = |z| has the density r^(n-1) exp(-r^2 q / 2): r^2 q ~ chi^2_n. So: draw r given x, move z = r x by
# Crank-Nicolson, which is reversible for N(0, C), and forget the radius. That kernel is reversible for the angular law,
# and a Metropolis test with the weight w = exp(-U) q^(n/2), the density of the target by that law, makes it exact.


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
        radius = chi / jnp.sqrt(form(x))
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        z = jnp.exp(-step_size) * radius * x + jnp.sqrt(-jnp.expm1(-2 * step_size) * variances) * noise
        y = z / jnp.linalg.norm(z)
        log_ratio = log_weight(y) - log_weight(x)
        return jnp.where(jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < log_ratio, y, x)


# ---------------------------------------------------------------------------------------------------------------------
# Simplex. Two components i, j, picked at random, exchange mass: x_i moves by a normal of the scale sqrt(2 h) (x_i + x_j),
# folded into [0, x_i + x_j]. The sum does not change in the move, so the scale is the same on the way back, and a folded
# normal is symmetric: q(x, y) = q(y, x) with respect to Lebesgue measure on the simplex. Metropolis' rule: exact.


def _fold(value, width):
    """Reflect a number into [0, width], as often as it takes."""
    return width - jnp.abs(width - value % (2 * width))


def _exchange(key, x, step_size, estimator):
    batch_key, first_key, second_key, noise_key, accept_key = jax.random.split(key, 5)
    i = jax.random.randint(first_key, (), 0, x.size)
    j = (i + jax.random.randint(second_key, (), 1, x.size)) % x.size
    total = x[i] + x[j]
    reach = jnp.sqrt(2 * step_size) * total
    share = _fold(x[i] + reach * jax.random.normal(noise_key, (), x.dtype), total)
    y = x.at[i].set(share).at[j].set(total - share)
    energy = lambda point: estimator.estimate(batch_key, (), point)[0].potential
    accepted = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < energy(x) - energy(y)
    return jnp.where(accepted, y, x)


mass_exchange = simple_sampler(_exchange, claims=Claims(Source("", "own"), ExactLaw(), spaces=("simplex",)))


# ---------------------------------------------------------------------------------------------------------------------
# Stiefel. Noise and gradient along the horizontal space alone, Hor(Z) = Z - X (X' Z), as on a Grassmann manifold. With
# Q = [X X_perp] in O(n) the fields H_ab = X_perp e_a e_b' are left invariant, so free of divergence for Haar's measure, and
# L = sum H_ab^2 - (H_ab U) H_ab is symmetric for exp(-U), whatever U is. Brackets of two H are the rotations X A within the
# columns (n > p): the law is the only one. The polar retraction X + V - X V'V / 2 + .. has E V'V = 2 h (n - p), which is the
# Ito drift - h (n - p) X of these fields: order 1.


class HorizontalLangevin:
    """Sub-Riemannian Langevin step on matrices with orthonormal columns, more rows than columns."""

    claims = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("stiefel",))

    @staticmethod
    def horizontal(x, z):
        return z - x @ (x.T @ z)

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
        drift = self.horizontal(x, gradient)
        diffusion = self.horizontal(x, noise)
        return self.polar(x - step_size * drift + jnp.sqrt(2 * step_size) * diffusion)


horizontal_langevin = HorizontalLangevin()


# ---------------------------------------------------------------------------------------------------------------------
# Finite spaces. Gibbs with gradients: one site i and a new value v are proposed with the probability w(x, y) / Z(x), with
# w = exp(-(E_i[v] - E_i[x_i]) / 2) = exp(-(U(y) - U(x)) / 2) for an extension that is linear in each site. The test has
# U(x) - U(y) + log w(y, x) / Z(y) - log w(x, y) / Z(x), each at its own state: exact. (It is log Z(x) / Z(y).)


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
        + (backward[back] - jax.nn.logsumexp(backward))
        - (forward[choice] - jax.nn.logsumexp(forward))
    )
    accepted = jnp.log(jax.random.uniform(accept_key, dtype=forward.dtype)) < log_ratio
    return jnp.where(accepted, y, x)


informed_flip = simple_sampler(_informed_flip, claims=Claims(Source("", "own"), ExactLaw(), spaces=("finite",)))

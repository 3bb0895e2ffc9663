"""Spaces by way of larger ones: positive numbers as squares, the sphere and Stiefel manifolds by Gaussian matrices, the
simplex by gamma variables, the box by normal ones, the sphere by angles. The states hold what the position is made of,
and one position has many states. Every kernel is exact."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def energy(estimator, key, x):
    """U."""
    return estimator.estimate(key, (), x)[0].potential


def exact(*spaces):
    """Claims of an exact kernel on these spaces."""
    return Claims(Source("", "own"), ExactLaw(), spaces=spaces)


def passed(key, log_rate):
    """True with probability min(1, exp(log_rate))."""
    return jnp.log(jax.random.uniform(key, dtype=log_rate.dtype)) < log_rate


class Squares:
    """x = y^2 for y of either sign: a walk of y under exp(-U(y^2)) |y|."""

    claims = exact("positive")

    def init(self, key, position, estimator):
        return jnp.sqrt(position) * jax.random.rademacher(key, position.shape, position.dtype)

    def position(self, state):
        return state**2

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        new = state + jnp.sqrt(step_size) * jax.random.normal(a, state.shape, state.dtype)
        log_p = lambda y: jnp.sum(jnp.log(jnp.abs(y))) - energy(estimator, c, y**2)
        return jnp.where(passed(b, log_p(new) - log_p(state)), new, state)


squares = Squares()


class Ambient:
    """x = g / |g| for a standard normal g: preconditioned Crank-Nicolson of g, tested with U(x)."""

    claims = exact("sphere")

    def init(self, key, position, estimator):
        return position * jnp.linalg.norm(jax.random.normal(key, position.shape, position.dtype))

    def position(self, state):
        return state / jnp.linalg.norm(state)

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        keep = jnp.exp(-step_size).astype(state.dtype)
        new = keep * state + jnp.sqrt(1 - keep**2) * jax.random.normal(a, state.shape, state.dtype)
        ok = passed(b, energy(estimator, c, self.position(state)) - energy(estimator, c, self.position(new)))
        return jnp.where(ok, new, state)


ambient_sphere = Ambient()


class PolarFactor:
    """X = G (G' G)^(-1/2) for a matrix of normal variables, whose law is Haar's: the same on Stiefel manifolds."""

    claims = exact("stiefel")

    def init(self, key, position, estimator):
        # the polar factor of a Gaussian matrix is independent of the other one, a root of a Wishart matrix
        gaussian = jax.random.normal(key, position.shape, position.dtype)
        values, vectors = jnp.linalg.eigh(gaussian.T @ gaussian)
        return position @ (vectors * jnp.sqrt(values)) @ vectors.T

    def position(self, state):
        u, _, v = jnp.linalg.svd(state, full_matrices=False)
        return u @ v

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        keep = jnp.exp(-step_size).astype(state.dtype)
        new = keep * state + jnp.sqrt(1 - keep**2) * jax.random.normal(a, state.shape, state.dtype)
        ok = passed(b, energy(estimator, c, self.position(state)) - energy(estimator, c, self.position(new)))
        return jnp.where(ok, new, state)


polar_factor = PolarFactor()


class Gammas:
    """x = w / sum w for positive w: the density exp(-U(x)) exp(-sum w), in which the sum is Gamma(K) for itself."""

    claims = exact("simplex")

    def init(self, key, position, estimator):
        return {"w": position * jax.random.gamma(key, float(position.size), dtype=position.dtype)}

    def position(self, state):
        return state["w"] / jnp.sum(state["w"])

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        w = state["w"]
        move = jnp.sqrt(2 * step_size) * jax.random.normal(a, w.shape, w.dtype)
        new = w * jnp.exp(move)
        log_p = lambda w: -energy(estimator, c, w / jnp.sum(w)) - jnp.sum(w)
        return {"w": jnp.where(passed(b, log_p(new) - log_p(w) + jnp.sum(move)), new, w)}


gammas = Gammas()


class Probit:
    """x = Phi(z): a normal z makes x uniform on the box, so that the test is with U alone."""

    claims = exact("box")

    def init(self, key, position, estimator):
        return jax.scipy.special.ndtri(position)

    def position(self, state):
        return jax.scipy.special.ndtr(state)

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        keep = jnp.exp(-step_size).astype(state.dtype)
        new = keep * state + jnp.sqrt(1 - keep**2) * jax.random.normal(a, state.shape, state.dtype)
        ok = passed(b, energy(estimator, c, self.position(state)) - energy(estimator, c, self.position(new)))
        return jnp.where(ok, new, state)


probit_box = Probit()


class Angles:
    """Spherical coordinates x = (cos t_1, sin t_1 cos t_2, ...), t real numbers, Jacobian prod |sin t_k|^(n-1-k)."""

    claims = exact("sphere")

    def init(self, key, position, estimator):
        tail = jnp.sqrt(jnp.cumsum((position**2)[::-1])[::-1])
        return jnp.append(jnp.arctan2(tail[1:-1], position[:-2]), jnp.arctan2(position[-1], position[-2]))

    def position(self, state):
        sines = jnp.cumprod(jnp.append(jnp.ones_like(state[:1]), jnp.sin(state)))
        return sines * jnp.append(jnp.cos(state), 1.0)

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        powers = jnp.arange(state.size - 1, -1, -1)[:-1]
        new = state + jnp.sqrt(2 * step_size) * jax.random.normal(a, state.shape, state.dtype)
        log_p = lambda t: jnp.sum(powers * jnp.log(jnp.abs(jnp.sin(t[:-1])))) - energy(estimator, c, self.position(t))
        return jnp.where(passed(b, log_p(new) - log_p(state)), new, state)


angles = Angles()

"""Exact kernels on the sphere, the simplex and the box."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

BOTH = ("gradient", "potential")


def exact_on(space, where):
    return Claims(Source("", where), ExactLaw(), conditions=("exact gradient",), spaces=(space,))


def tangent(x, v):
    return v - x * jnp.vdot(x, v)


def great_circle(x, v, t):
    speed = jnp.linalg.norm(v)
    cos, sin_over_speed = jnp.cos(speed * t), t * jnp.sinc(speed * t / jnp.pi)
    moved = x * cos + v * sin_over_speed
    moved = moved / jnp.linalg.norm(moved)
    return moved, tangent(moved, v * cos - x * speed**2 * sin_over_speed)


def geodesic_hmc(leaps: int):
    """Geodesic Monte Carlo of Byrne and Girolami (2013) on the sphere: `leaps` leapfrogs along great circles.

    Right at every h, for the Hausdorff density: tangent Gaussian momentum, kicks by the projected gradient and exact
    geodesics are symplectic and reversible; Metropolis' rule for U + |v|^2 / 2.
    """

    def step(key, x, step_size, estimator):
        velocity_key, look_key, accept_key = jax.random.split(key, 3)
        eps = jnp.sqrt(2 * step_size).astype(x.dtype) / leaps

        def look(y):
            found = estimator.estimate(look_key, (), y)[0]
            return found.potential, tangent(y, found.gradient)

        def leap(_, carry):
            y, v, _, g = carry
            y, v = great_circle(y, v - eps / 2 * g, eps)
            u, g = look(y)
            return y, v - eps / 2 * g, u, g

        v = tangent(x, jax.random.normal(velocity_key, x.shape, x.dtype))
        u, g = look(x)
        y, w, end, _ = jax.lax.fori_loop(0, leaps, leap, (x, v, u, g))
        log_ratio = u - end + (jnp.vdot(v, v) - jnp.vdot(w, w)) / 2
        accepted = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < log_ratio
        return jax.lax.select(accepted, y, x)

    return simple_sampler(step, needs=BOTH, claims=exact_on("sphere", "Byrne and Girolami 2013"))


great_circles = geodesic_hmc(3)


def centred(v):
    return v - jnp.mean(v)


def compositional_mala_step(key, x, h, estimator):
    """MALA on the simplex in centred log ratios f = log x - mean log x, x = softmax f.

    Right at every h: in f the density is exp(-U) prod x_i, V = U - sum log x_i, grad V = x (g - x.g) - (1 - K x),
    which sums to zero; the noise is projected on sum f = 0, and the proposal's density is that of the hyperplane.
    """
    noise_key, look_key, accept_key = jax.random.split(key, 3)

    def landscape(y):
        found = estimator.estimate(look_key, (), y)[0]
        g = found.gradient
        return found.potential - jnp.sum(jnp.log(y)), y * (g - jnp.vdot(y, g)) - (1 - y.size * y)

    f = centred(jnp.log(x))
    v, slope = landscape(x)
    noise = centred(jax.random.normal(noise_key, x.shape, x.dtype))
    new_f = f - h * slope + jnp.sqrt(2 * h) * noise
    y = jax.nn.softmax(new_f)
    w, new_slope = landscape(y)
    forth = jnp.sum((new_f - f + h * slope) ** 2)
    back = jnp.sum((f - new_f + h * new_slope) ** 2)
    log_ratio = v - w + (forth - back) / (4 * h)
    accepted = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < log_ratio
    return jnp.where(accepted, y, x).astype(x.dtype)


compositional = simple_sampler(
    compositional_mala_step, needs=BOTH, claims=exact_on("simplex", "MALA in centred log ratios")
)


def folded_laplace_step(key, position, h, estimator):
    """Random walk in the unit box with Laplace steps of variance 2h, folded at the faces, tested by Metropolis' rule.

    Right at every h: q(x, y) = sum over n and +- of f(+-y + 2n - x) with f even, hence q(x, y) = q(y, x).
    """
    walk_key, look_key, accept_key = jax.random.split(key, 3)
    leaves, treedef = jax.tree.flatten(position)
    keys = jax.random.split(walk_key, len(leaves))
    fold = lambda y: 1 - jnp.abs(1 - y % 2)
    walk = lambda k, x: fold(x + jnp.sqrt(h) * jax.random.laplace(k, x.shape, x.dtype)).astype(x.dtype)
    proposal = jax.tree.unflatten(treedef, [walk(k, x) for k, x in zip(keys, leaves, strict=True)])
    energy = lambda point: estimator.estimate(look_key, (), point)[0].potential
    rise = energy(proposal) - energy(position)
    accepted = jax.random.exponential(accept_key, (), leaves[0].dtype) > rise
    return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), proposal, position)


folded_laplace = simple_sampler(
    folded_laplace_step, needs=("potential",), claims=exact_on("box", "folded random walk")
)

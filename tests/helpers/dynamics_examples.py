"""Dynamics of the recipe, transcribed from the papers independently of the samplers' own, for tests.

Each has a potential of its own so that nothing is isotropic or Gaussian by accident.
"""

import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, coordinate_names


def double_well(theta):
    """sum theta^4 - 2 theta^2, with a coupling between the coordinates."""
    return jnp.sum(theta**4 - 2.0 * theta**2) + 0.3 * jnp.sum(theta[1:] * theta[:-1]) + 0.1 * theta[0]


def metric_root(theta):
    """B(theta) = G^(-1/2), symmetric, full, positive definite, and not the Hessian of anything for d = 2."""
    if theta.shape[0] == 1:
        return jnp.sqrt(1.0 + theta**2)[:, None]
    x, y = theta[0], theta[1]
    off = 0.25 * x * y / (1.0 + x**2 + y**2)
    return jnp.array([[1.0 + 0.5 * x**2, off], [off, 1.5 + 0.5 * y**2]])


def _blocks(rows):
    return jnp.block([[jnp.atleast_2d(block) for block in row] for row in rows])


def sgld(d=2):
    """Overdamped with a constant preconditioner (ma2015complete, section 3.1)."""
    matrix = jnp.eye(d) + 0.2 * jnp.ones((d, d))
    return Dynamics(double_well, lambda z: matrix, lambda z: jnp.zeros((d, d)), coordinate_names(d), d)


def hmc(d=2):
    """Hamiltonian dynamics with unit mass."""
    i, o = jnp.eye(d), jnp.zeros((d, d))
    return Dynamics(
        lambda z: double_well(z[:d]) + 0.5 * z[d:] @ z[d:],
        lambda z: jnp.zeros((2 * d, 2 * d)),
        lambda z: _blocks([[o, -i], [i, o]]),
        coordinate_names(d, "r"),
        d,
    )


def sghmc(d=2, friction=0.7):
    """ma2015complete, section 3.1; chen2014stochastic."""
    i, o = jnp.eye(d), jnp.zeros((d, d))
    return Dynamics(
        lambda z: double_well(z[:d]) + 0.5 * z[d:] @ z[d:],
        lambda z: _blocks([[o, o], [o, friction * i]]),
        lambda z: _blocks([[o, -i], [i, o]]),
        coordinate_names(d, "r"),
        d,
    )


def sgrld(d=2):
    """D = G^-1(theta) (ma2015complete, section 3.1; patterson2013stochastic)."""
    return Dynamics(
        double_well,
        lambda z: metric_root(z) @ metric_root(z),
        lambda z: jnp.zeros((d, d)),
        coordinate_names(d),
        d,
    )


def gsgrhmc(d=2, root=metric_root):
    """D = diag(0, G^-1), Q = [[0, -G^-1/2], [G^-1/2, 0]] (ma2015complete, section 3.2)."""
    o = jnp.zeros((d, d))

    def D(z):
        B = root(z[:d])
        return _blocks([[o, o], [o, B @ B]])

    def Q(z):
        B = root(z[:d])
        return _blocks([[o, -B], [B, o]])

    return Dynamics(lambda z: double_well(z[:d]) + 0.5 * z[d:] @ z[d:], D, Q, coordinate_names(d, "r"), d)


def sgnht(d=1, noise=0.8):
    """z = (theta, r, xi), H = U + |r|^2 / 2 + (d/2) (xi - A)^2 (ding2014bayesian as in ma2015complete, section 3.1)."""

    def H(z):
        return double_well(z[:d]) + 0.5 * z[d : 2 * d] @ z[d : 2 * d] + 0.5 * d * (z[2 * d] - noise) ** 2

    def D(z):
        return jnp.diag(jnp.concatenate([jnp.zeros(d), jnp.full(d, noise), jnp.zeros(1)]))

    def Q(z):
        r = z[d : 2 * d]
        i, o = jnp.eye(d), jnp.zeros((d, d))
        c = jnp.zeros((d, 1))
        return _blocks([[o, -i, c], [i, o, r[:, None] / d], [c.T, -r[None, :] / d, jnp.zeros((1, 1))]])

    return Dynamics(H, D, Q, coordinate_names(d, "r", scalars=("xi",)), d)


def msgnht(d=1, noise=0.8):
    """One thermostat a coordinate: z = (theta, r, xi in R^d)."""

    def H(z):
        return double_well(z[:d]) + 0.5 * z[d : 2 * d] @ z[d : 2 * d] + 0.5 * jnp.sum((z[2 * d :] - noise) ** 2)

    def D(z):
        return jnp.diag(jnp.concatenate([jnp.zeros(d), jnp.full(d, noise), jnp.zeros(d)]))

    def Q(z):
        R, i, o = jnp.diag(z[d : 2 * d]), jnp.eye(d), jnp.zeros((d, d))
        return _blocks([[o, -i, o], [i, o, R], [o, -R, o]])

    return Dynamics(H, D, Q, coordinate_names(d, "r", "xi"), d)


def named_dynamics():
    """Every example under a name."""
    return {
        "sgld": sgld(),
        "hmc": hmc(),
        "sghmc": sghmc(),
        "sgrld": sgrld(),
        "gsgrhmc": gsgrhmc(),
        "gsgrhmc-1d": gsgrhmc(1),
        "sgnht": sgnht(),
        "sgnht-2d": sgnht(2),
        "msgnht": msgnht(),
        "msgnht-2d": msgnht(2),
    }

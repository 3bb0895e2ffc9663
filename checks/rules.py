"""Quadrature for the claimed law of the full variable z = (theta, r, xi, ...)."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from checks.check import NotApplicable
from checks.quadrature import gauss_hermite
from checks.stepmap import HostStep, JaxStep
from samplers.types import Claims
from targets.target import Target

POSITION_NODES = {1: 120, 2: 24, 3: 10}
"""Nodes a dimension for the position: a one-dimensional law need not be Gaussian and gets many."""
AUXILIARY_NODES = {1: 12, 2: 7, 3: 5, 4: 4}


def position_rule(target: Target, temperature: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Points (m, d) and weights (m,) for expectations under exp(-U / temperature).

    Raises:
        NotApplicable: if no rule of moderate size is known.
    """
    if target.gaussian is not None and target.size in POSITION_NODES:
        nodes, weights = gauss_hermite(target.size, 10)
        root = np.linalg.cholesky(temperature * np.linalg.inv(target.gaussian.precision))
        return target.gaussian.mean + nodes @ root.T, weights
    if temperature == 1.0 and target.quadrature is not None and target.size in POSITION_NODES:
        return target.quadrature(POSITION_NODES[target.size])
    if target.interval is not None and target.size == 1:
        return _tempered(target, temperature)
    raise NotApplicable(f"no quadrature rule for this target at temperature {temperature}")


def _tempered(target: Target, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre for exp(-U / T) on the interval, stretched where the law is hotter."""
    low, high = target.interval  # pyright: ignore[reportGeneralTypeIssues]
    centre, half = (low + high) / 2, (high - low) / 2 * max(1.0, temperature)
    x, w = np.polynomial.legendre.leggauss(240)
    points = (centre + half * x)[:, None]
    energy = np.asarray(jax.vmap(target.flat_potential)(jnp.asarray(points)))
    density = w * np.exp(-(energy - energy.min()) / temperature)
    return points, density / density.sum()


def law_rule(step: JaxStep | HostStep, claims: Claims) -> tuple[np.ndarray, np.ndarray]:
    """Points (m, n) and weights (m,) for expectations under the claimed law of z.

    With declared dynamics the auxiliary variables are Gaussian and independent of the position whenever H is quadratic
    in them with a constant Hessian (checked here); their mean and covariance are read off H. On a curved manifold the
    velocity is a standard normal in the tangent space.

    Raises:
        NotApplicable: if the law of z is not known, or too large for a grid.
    """
    target = step.target
    points, weights = position_rule(target, claims.temperature)
    size = step.size
    if size == target.size:
        return points, weights
    if claims.dynamics is not None:
        nodes, w = _auxiliary_rule(claims.dynamics(target).H, points, size - target.size)
        full = np.concatenate([np.repeat(points, len(nodes), axis=0), np.tile(nodes, (len(points), 1))], axis=1)
        return full, np.repeat(weights, len(nodes)) * np.tile(w, len(points))
    if size == 2 * target.size and target.manifold.dim < target.size:
        nodes, w = gauss_hermite(target.size, 4)
        tangent = jax.vmap(jax.vmap(target.manifold.tangent, (None, 0)), (0, None))(
            jnp.asarray(points), jnp.asarray(nodes)
        )
        root = np.sqrt(claims.temperature)
        full = np.concatenate(
            [np.repeat(points, len(nodes), axis=0), root * np.asarray(tangent).reshape(-1, target.size)], axis=1
        )
        return full, np.repeat(weights, len(nodes)) * np.tile(w, len(points))
    raise NotApplicable("the law of the auxiliary variables is not declared")


def _auxiliary_rule(H, points, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of the auxiliary variables, whose law is read off H at two positions and two auxiliary values."""
    if count not in AUXILIARY_NODES:
        raise NotApplicable(f"{count} auxiliary variables are too many for a grid")
    of = lambda aux, theta: H(jnp.concatenate([theta, aux]))
    gradient = jax.jit(jax.grad(of))
    hessian = jax.jit(jax.hessian(of))
    zero, one = jnp.zeros(count), jnp.ones(count)
    first, last = jnp.asarray(points[0]), jnp.asarray(points[-1])
    precision = np.asarray(hessian(zero, first))
    same = [np.asarray(hessian(a, t)) for a, t in ((one, first), (zero, last))]
    slope = [np.asarray(gradient(zero, t)) for t in (first, last)]
    scale = 1e3 * np.finfo(float).eps * (1 + np.abs(precision).max() + np.abs(slope[0]).max())
    if any(np.abs(s - precision).max() > scale for s in same) or np.abs(slope[0] - slope[1]).max() > scale:
        raise NotApplicable("the auxiliary variables are not Gaussian and independent of the position")
    mean, covariance = -np.linalg.solve(precision, slope[0]), np.linalg.inv(precision)
    nodes, weights = gauss_hermite(count, AUXILIARY_NODES[count])
    return mean + nodes @ np.linalg.cholesky(covariance).T, weights


def generic_points(step: JaxStep | HostStep, count: int = 4) -> np.ndarray:
    """A few points z (count, n) in the bulk: the example moved along fixed generic directions."""
    target = step.target
    base = np.asarray(ravel_pytree(target.example)[0], np.float64)
    k = np.arange(count)[:, None]
    wiggle = np.cos(1.3 * k + 2.1 * np.arange(step.size) + 0.5)
    aux = wiggle[:, target.size :] * 1.2
    if target.manifold.name.startswith("positive"):
        return np.concatenate([base * (1.0 + 0.35 * (1 + wiggle[:, : target.size])), aux], axis=1)
    scale = 1.0 / np.sqrt(target.curvature) if target.gaussian is not None else 0.7
    return np.concatenate([base + scale * wiggle[:, : target.size], aux], axis=1)

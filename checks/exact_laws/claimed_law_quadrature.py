"""Quadrature for the claimed law of the full variable z = (theta, r, xi, ...)."""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.exact_laws.assumed_law import assumed_auxiliary
from sgmcmc_verification.checks.numerics.geodesic_dynamics import on_tangent_bundle, tangent_rule
from sgmcmc_verification.checks.numerics.quadrature import gauss_hermite
from sgmcmc_verification.checks.programs.evaluation import evaluated
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, EmbeddedDiffusion, Exchange
from sgmcmc_verification.targets.target import Target

POSITION_NODES = {1: 120, 2: 24, 3: 7, 4: 7}
"""Nodes a dimension for the position: a one-dimensional law need not be Gaussian and gets many."""
HOST_NODES = 7
"""Nodes for a host sampler, whose step is run once a path in Python."""
HOST_AUXILIARY = 5
"""Nodes for each auxiliary variable of a host sampler."""
GAUSSIAN_NODES = {1: 40, 2: 14, 3: 8}
"""Nodes a dimension for a Gaussian position; a position-only sampler can afford more (`law_rule`)."""
AUXILIARY_NODES = {1: 12, 2: 7, 3: 5, 4: 4}


def position_rule(target: Target, temperature: float = 1.0, refine: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points (m, d) and weights (m,) for expectations under exp(-U / temperature).

    `refine` adds nodes to the rule; the change tells its error.

    Raises:
        NotApplicable: if no rule of moderate size is known.
    """
    if target.gaussian is not None and target.size in GAUSSIAN_NODES:
        points, weights = gauss_hermite(target.size, GAUSSIAN_NODES[target.size] + 3 * refine)
        root = np.linalg.cholesky(temperature * np.linalg.inv(target.gaussian.precision))
        return target.gaussian.mean + points @ root.T, weights
    # two nodes are of no use, and the change that a finer rule makes says so
    nodes = lambda each: max(2, POSITION_NODES[target.size] + each * refine)
    positive = target.manifold.is_positive
    if positive and target.interval is not None:
        # Metrics there are powers of theta, on which the target's own Gauss rule converges slowly.
        return _tempered(target, temperature, 240 + 20 * refine)
    if temperature == 1.0 and target.quadrature is not None and target.size in POSITION_NODES:
        return target.quadrature(nodes(5))
    if target.manifold.is_linear and target.tempered is not None and target.size in POSITION_NODES:
        law = at_temperature(target, temperature)
        if law.quadrature is not None:
            return law.quadrature(nodes(5))
    if target.interval is not None and target.size == 1:
        return _tempered(target, temperature, 240 + 20 * refine)
    if target.quadrature is not None and target.manifold.dim < target.size and target.size in POSITION_NODES:
        if target.tempered is not None:
            law = at_temperature(target, temperature)
            if law.quadrature is not None:
                return law.quadrature(nodes(5))
        # On a compact manifold the rule of the law at T = 1 has nodes everywhere: reweighted by exp(-(1/T - 1) U).
        points, weights = target.quadrature(nodes(3))
        weights = weights * np.exp(-(1 / temperature - 1) * _energy(target, points))
        return points, weights / weights.sum()
    raise OutOfReach(f"no quadrature rule for this target at temperature {temperature}")


@lru_cache(maxsize=16)
def at_temperature(target: Target, temperature: float) -> Target:
    """The target with density exp(-U / T) and its own oracles. Raises NotApplicable."""
    if temperature == 1.0:
        return target
    if target.tempered is None:
        raise OutOfReach("the law is known at temperature 1 only")
    try:
        return target.tempered(temperature)
    except ValueError as error:  # a law that cannot be normalised there
        raise OutOfReach(str(error)) from error


def _energy(target: Target, points: np.ndarray) -> np.ndarray:
    """U at `points`, less its minimum over them."""
    energy = np.asarray(jax.vmap(target.flat_potential)(jnp.asarray(points)))
    return energy - energy.min()


def _tempered(target: Target, temperature: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre for exp(-U / T) on the interval, stretched where the law is hotter."""
    low, high = target.interval  # pyright: ignore[reportGeneralTypeIssues]
    t, w = np.polynomial.legendre.leggauss(nodes)
    stretch = max(1.0, temperature)
    if target.manifold.is_positive:
        # x = high s^6 turns an algebraic singularity of the density at 0 into a harmless one.
        s = (t + 1) / 2
        points, w = stretch * high * s[:, None] ** 6, w * s**5
    else:
        points = ((low + high) / 2 + (high - low) / 2 * stretch * t)[:, None]
    density = w * np.exp(-_energy(target, points) / temperature)
    return points, density / density.sum()


def law_rule(
    step: JaxStep | HostStep, claims: Claims, refine: int = 0, assume: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Points (m, n) and weights (m,) for expectations under the claimed law of z.

    With declared dynamics the auxiliary variables are Gaussian and independent of the position whenever H is quadratic
    in them with a constant Hessian (checked here); their mean and covariance are read off H. On a curved manifold the
    velocity is normal in the tangent space. With `assume`, auxiliary variables of undeclared dynamics have the law that
    they have on Gaussians (`checks.exact_laws.assumed_law`).

    Raises:
        NotApplicable: if the law of z is not known, or too large for a grid.
    """
    target = step.target
    host = isinstance(step, HostStep)
    points, weights = (_host_rule if host else position_rule)(target, claims.temperature, refine)
    size = step.size
    if size == target.size:
        return points, weights
    if Exchange in claims:
        return _two_chains(target, claims.temperature, claims[Exchange].temperature, refine)
    if Diffusion in claims:
        count = size - target.size
        per_axis = HOST_AUXILIARY if host else AUXILIARY_NODES.get(count)
        H = claims[Diffusion].dynamics(target).H
        return _product(points, weights, *_auxiliary_rule(H, points, count, per_axis, refine))
    if EmbeddedDiffusion in claims or (size == 2 * target.size and target.manifold.dim < target.size):
        return tangent_rule(target, claims, points, weights, refine)
    if assume and target.manifold.is_linear and step.subject is not None:
        count = size - target.size
        mean, covariance = assumed_auxiliary(step.subject, target.size)
        per_axis = HOST_AUXILIARY if host else AUXILIARY_NODES.get(count)
        return _product(points, weights, *_gaussian_nodes(mean, covariance, count, per_axis, refine))
    raise OutOfReach("the law of the auxiliary variables is not declared")


def _two_chains(target: Target, cold: float, hot: float, refine: int) -> tuple[np.ndarray, np.ndarray]:
    """The product of the laws at two temperatures, on one dimension with fewer nodes than either has alone."""
    if target.size > 1 or target.gaussian is not None:
        rules = [position_rule(target, temperature, refine) for temperature in (cold, hot)]
    else:
        rules = [_tempered(target, temperature, 80 + 8 * refine) for temperature in (cold, hot)]
    return _product(*rules[0], *rules[1])


def _product(x: np.ndarray, v: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rule of a product of two laws, from nodes x, y and weights v, w."""
    points = np.concatenate([np.repeat(x, len(y), axis=0), np.tile(y, (len(x), 1))], axis=1)
    return points, np.repeat(v, len(w)) * np.tile(w, len(v))


def _host_rule(target: Target, temperature: float, refine: int) -> tuple[np.ndarray, np.ndarray]:
    """A coarse rule for a position in one dimension, for steps that Python runs one path at a time."""
    if target.size > 1:
        raise OutOfReach("too many paths for a host sampler in more than one dimension")
    if temperature == 1.0 and target.quadrature is not None:
        return target.quadrature(HOST_NODES + 3 * refine)
    if target.interval is None:
        raise OutOfReach(f"no quadrature rule for this target at temperature {temperature}")
    return _tempered(target, temperature, 60 + 5 * refine)


def auxiliary_law(H: Callable, points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean (count,) and covariance (count, count) of the auxiliary variables, read off H(theta, auxiliary).

    Args:
        H: flat z = (theta, auxiliary) -> scalar.
        points: (m, d) positions; the law has to be the same at the first and at the last one.
        count: number of auxiliary variables.

    Raises:
        NotApplicable: if they are not Gaussian, or not independent of the position.
    """
    of = lambda aux, theta: H(jnp.concatenate([theta, aux]))
    gradient, hessian = evaluated(jax.grad(of)), evaluated(jax.hessian(of))
    zero, one = np.zeros(count), np.ones(count)
    first, last = points[0], points[-1]
    precision = np.asarray(hessian(zero, first))
    same = [np.asarray(hessian(a, t)) for a, t in ((one, first), (zero, last))]
    slope = [np.asarray(gradient(zero, t)) for t in (first, last)]
    scale = 1e3 * np.finfo(float).eps * (1 + np.abs(precision).max() + np.abs(slope[0]).max())
    if any(np.abs(s - precision).max() > scale for s in same) or np.abs(slope[0] - slope[1]).max() > scale:
        raise OutOfReach("the auxiliary variables are not Gaussian and independent of the position")
    return -np.linalg.solve(precision, slope[0]), np.linalg.inv(precision)


def _auxiliary_rule(
    H: Callable, points: np.ndarray, count: int, per_axis: int | None, refine: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of the auxiliary variables, `per_axis` for each; None for too many of them."""
    return _gaussian_nodes(*auxiliary_law(H, points, count), count, per_axis, refine)


def _gaussian_nodes(
    mean: np.ndarray, covariance: np.ndarray, count: int, per_axis: int | None, refine: int
) -> tuple[np.ndarray, np.ndarray]:
    if per_axis is None:
        raise OutOfReach(f"{count} auxiliary variables are too many for a grid")
    nodes, weights = gauss_hermite(count, per_axis + refine)
    return mean + nodes @ np.linalg.cholesky(covariance).T, weights


def within(target: Target, centre: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (m, d), those outside the space drawn towards its interior point `centre` until they are inside."""
    if target.manifold.is_linear:
        return points
    inside = jax.jit(jax.vmap(lambda x: target.manifold.contains(target.unravel(x))))
    share = np.ones(len(points))
    # with a margin: proofs round points to short fractions
    while not (now := np.asarray(inside(centre + 1.2 * share[:, None] * (points - centre)))).all():
        share = np.where(now, share, share / 2)
    return centre + share[:, None] * (points - centre)


def generic_points(step: JaxStep | HostStep, count: int = 4) -> np.ndarray:
    """A few points z (count, n) in the bulk: the example moved along fixed generic directions.

    Numbers beside the position that are positive at a start, leaf by leaf, stay so if no law of theirs is declared.
    """
    target = step.target
    base = np.asarray(ravel_pytree(target.example)[0], np.float64)
    k = np.arange(count)[:, None]
    wiggle = np.cos(1.3 * k + 2.1 * np.arange(step.size) + 0.5)
    aux = wiggle[:, target.size :] * 1.2
    if aux.size and Diffusion not in step.sampler.claims:
        flat = np.asarray(step.template.flat, np.float64)
        leaves = [np.ravel(leaf) for leaf in jax.tree.leaves(step.template.unravel(flat))]
        positive = np.concatenate([np.full(leaf.size, np.all(leaf > 0)) for leaf in leaves])[target.size :]
        aux = np.where(positive, flat[target.size :] * (1 + 0.3 * wiggle[:, target.size :]), aux)
    if target.manifold.is_positive:
        return np.concatenate([base * (1.0 + 0.35 * (1 + wiggle[:, : target.size])), aux], axis=1)
    scale = 1.0 / np.sqrt(target.curvature) if target.gaussian is not None else 0.7
    if EmbeddedDiffusion in step.sampler.claims or target.manifold.dim < target.size:
        if target.manifold.has_boundary:
            scale = 0.5 * base.min()  # within the faces, where the reflections of a small step are not met
        scale = min(scale, 2.0 / np.sqrt(target.curvature))
        return on_tangent_bundle(target, scale * wiggle[:, : target.size], aux)
    return np.concatenate([within(target, base, base + scale * wiggle[:, : target.size]), aux], axis=1)

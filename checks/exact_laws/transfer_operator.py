"""The exact discrete law on a one-dimensional target that is not Gaussian, from the transfer operator on a grid.

The step acts on functions, (P f)(z) = E f(z'), with the noise integrated by Gauss-Hermite; on a grid with local
Lagrange interpolation P is a sparse matrix whose left eigenvector at eigenvalue 1 is the stationary law of the scheme.
Works for z = theta and for z = (theta, r), that is for momentum samplers too.
"""

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from sgmcmc_verification.checks.core.check import NotApplicable, OutOfReach
from sgmcmc_verification.checks.exact_laws.assumed_law import assumed_auxiliary
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import auxiliary_law
from sgmcmc_verification.checks.numerics.observables import observables
from sgmcmc_verification.checks.numerics.quadrature import noise_rule
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, require_traced
from sgmcmc_verification.samplers.interface.claims import Diffusion
from sgmcmc_verification.targets.target import Target

STENCIL = 6
"""Points of the local Lagrange interpolation: error O(dx^6)."""
GRIDS: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {1: ((280,), (400,)), 2: ((48, 40), (64, 50))}
"""Points of the coarse and of the fine grid; their difference is the error estimate."""


class DiscreteLaw(NamedTuple):
    """Stationary law of the scheme: expectations of the observables of the position, and its distance from the target.

    `kolmogorov` and `variation` are the Kolmogorov-Smirnov and total variation distances of the position marginal.
    """

    expectations: np.ndarray
    kolmogorov: float
    variation: float


def _interpolation(grid: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First stencil index (m,) and weights (m, STENCIL) of Lagrange interpolation at x, clamped to the grid."""
    dx = grid[1] - grid[0]
    t = (np.clip(x, grid[0], grid[-1]) - grid[0]) / dx
    first = np.clip(np.floor(t).astype(int) - STENCIL // 2 + 1, 0, len(grid) - STENCIL)
    s = t - first
    weights = np.ones((len(x), STENCIL))
    for j in range(STENCIL):
        for k in range(STENCIL):
            if k != j:
                weights[:, j] *= (s - k) / (j - k)
    return first, weights


def require_grid(step: JaxStep | HostStep) -> JaxStep:
    """The step. Raises NotApplicable, with the reason, if its transfer operator does not fit on a grid."""
    target = step.target
    if target.size != 1 or target.interval is None or target.gaussian is not None:
        raise NotApplicable("for one-dimensional targets that are not Gaussian")
    step = require_traced(step)
    step.require_gaussian()
    if step.size not in GRIDS:
        raise OutOfReach(f"z has {step.size} coordinates, too many for a grid")
    if target.manifold.is_positive:
        raise OutOfReach("reflection at 0 has a kink that the interpolation does not resolve")
    if step.noise_size > (4 if step.size == 1 else 2):
        raise OutOfReach(f"{step.noise_size} normals a step are too many for the grid")
    return step


def grid_axes(
    target: Target, temperature: float, shape: tuple[int, ...], spread: float | None = None
) -> list[np.ndarray]:
    """The axes of the grid: theta, then r where there is one, of standard deviation `spread` (default: sqrt T)."""
    low, high = target.interval  # pyright: ignore[reportGeneralTypeIssues]
    centre, half = (low + high) / 2, (high - low) / 2 * max(1.0, temperature) ** 0.5
    axes = [np.linspace(centre - half, centre + half, shape[0])]
    if len(shape) == 2:
        axes.append(np.linspace(-6.5, 6.5, shape[-1]) * (np.sqrt(temperature) if spread is None else spread))
    return axes


class Transition(NamedTuple):
    """One step on the grid.

    Attributes:
        matrix: P (m, m): row i is the law of z' from grid point i, on the grid.
        read: positions (m, k, 1) that the step reads off, for each node of the noise.
        weights: of the nodes (k,).
    """

    matrix: sparse.csr_array
    read: np.ndarray
    weights: np.ndarray


def transition(step: JaxStep, h: float, axes: list[np.ndarray]) -> Transition:
    """The transfer operator of one step of size h."""
    shape = tuple(len(axis) for axis in axes)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    nodes, weights = noise_rule(step.noise_size, least=4, most=10 if len(shape) == 1 else 8)
    new, read = (np.asarray(a) for a in _compiled_push(step)(jnp.asarray(points), jnp.asarray(nodes), jnp.asarray(h)))
    flat = new.reshape(-1, len(axes))
    stencils = [_interpolation(axis, flat[:, i]) for i, axis in enumerate(axes)]
    rows = np.repeat(np.arange(len(points)), len(nodes))
    scale = np.tile(weights, len(points))
    entries, columns = [], []
    for a in range(STENCIL):
        first, w = stencils[0]
        if len(axes) == 1:
            entries.append(scale * w[:, a])
            columns.append(first + a)
            continue
        second, v = stencils[1]
        for b in range(STENCIL):
            entries.append(scale * w[:, a] * v[:, b])
            columns.append((first + a) * shape[-1] + second + b)
    matrix = sparse.coo_array(
        (np.concatenate(entries), (np.tile(rows, len(entries)), np.concatenate(columns))), (len(points), len(points))
    )
    return Transition(matrix.tocsr(), read, weights)


@lru_cache(maxsize=16)
def _compiled_push(step: JaxStep):
    """(points (m, n), nodes (k, q), h) -> new z (m, k, n) and positions (m, k, d)."""
    return jax.jit(jax.vmap(lambda z, nodes, h: jax.vmap(lambda e: step.run(z, e, h))(nodes), (0, None, None)))


def stationary(matrix: sparse.csr_array) -> np.ndarray:
    """The stationary law (m,) of a transfer operator P (m, m): w P = w with sum w = 1."""
    count = len(matrix.indptr) - 1
    system = (matrix.T - sparse.eye_array(count)).tolil()
    system[-1] = 1.0
    right = np.zeros(count)
    right[-1] = 1.0
    return splu(system.tocsc()).solve(right)


def auxiliary_spread(step: JaxStep) -> float | None:
    """Standard deviation of the second variable of z, from the declared dynamics or as on Gaussians; None for none."""
    if step.size != 2 * step.target.size:
        return None
    claims = step.sampler.claims
    if Diffusion in claims:
        points = np.asarray(step.template.flat, float)[None, : step.target.size]
        covariance = auxiliary_law(claims[Diffusion].dynamics(step.target).H, points, 1)[1]
    elif step.subject is not None:
        covariance = assumed_auxiliary(step.subject, 1)[1]
    else:
        return None
    return float(np.sqrt(covariance[0, 0]))


def discrete_law(
    step: JaxStep, h: float, temperature: float, shape: tuple[int, ...], spread: float | None = None
) -> DiscreteLaw:
    """The stationary law at step size h on a grid of the given shape (one or two axes: theta, then r)."""
    target = step.target
    axes = grid_axes(target, temperature, shape, spread)
    matrix, read, weights = transition(step, h, axes)
    law = stationary(matrix)
    values = observables(read)
    expectations = law @ np.tensordot(values, weights, axes=([1], [0]))
    marginal = law.reshape(shape).sum(axis=1) if len(shape) == 2 else law
    energy = np.asarray(jax.vmap(target.flat_potential)(jnp.asarray(axes[0][:, None])))
    density = np.exp(-(energy - energy.min()) / temperature)
    density /= density.sum()
    gap = marginal - density
    return DiscreteLaw(expectations, float(np.abs(np.cumsum(gap)).max()), float(np.abs(gap).sum() / 2))

"""The exact discrete law of a scheme on a compact manifold, from its transfer operator on polynomials.

The step acts on functions of z = (x, v, ..), (P f)(z) = E f(z'), and takes smooth ones to smooth ones, so P is
projected onto the polynomials in the ambient coordinates, orthonormal under the claimed law pi: a Galerkin method, with
an error that falls faster than any power of the degree. A law with density rho with respect to pi is the row of its
expectations E phi_k, which are the coefficients of rho as well, and a step multiplies it by the matrix of P. Grids,
which `checks.exact_laws.transfer_operator` uses, are out of reach here: z has six ambient coordinates on a sphere in
R^3.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import NotApplicable, OutOfReach
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import law_rule, position_rule
from sgmcmc_verification.checks.numerics.quadrature import gauss_hermite, neville
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, require_traced
from sgmcmc_verification.samplers.interface.claims import StationaryLaw
from sgmcmc_verification.targets.target import Target

HIGHEST = 5
"""Largest degree of the polynomials: the rules for the velocity are exact for its products with itself."""
NOISE_POINTS = (4, 5)
"""Nodes for each normal of a step: exact to degree 7 and 9 in the noise."""
LEVELS = 4
"""Step sizes h / 2^k, k < LEVELS, from which the limit of the stationary law is extrapolated."""
MOST_PATHS = 4_000_000
"""Nodes of z times nodes of the noise that are evaluated."""
MOST_MONOMIALS = 500
"""Monomials up to the degree that is used, in all coordinates of z."""
UNRESOLVED = 0.1
"""Relative change of the fourth moment of the force by a finer rule, above which it is taken not to exist."""
RANK = 1e-8
"""Singular values below this, relative to the largest, are those of polynomials that vanish on the manifold."""
BLOCK = 64
"""Points that one call evaluates."""


@dataclass(frozen=True, eq=False)
class Polynomials:
    """An orthonormal basis of the polynomials up to a degree under the claimed law of z.

    Attributes:
        degree: of the monomials.
        scale: root mean squares of the coordinates of z (n,).
        mix: monomials -> basis (M, K).
        nodes, weights: a rule for the claimed law, (P, n) and (P,).
        values: of the basis at the nodes (P, K).
    """

    degree: int
    scale: np.ndarray
    mix: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray
    values: np.ndarray

    def at(self, z: np.ndarray) -> np.ndarray:
        """The basis at z (m, n), (m, K)."""
        return _monomials(z / self.scale, self.degree).T @ self.mix

    def expectation(self, law: np.ndarray, values: np.ndarray) -> np.ndarray:
        """E f under a law (K,) from the values of f at the nodes (P, ..)."""
        return (self.weights * (self.values @ law)) @ values

    @property
    def one(self) -> np.ndarray:
        """The claimed law itself, as a row of coefficients (K,)."""
        return self.weights @ self.values


def _monomials(z: np.ndarray, degree: int) -> np.ndarray:
    """Monomials of z (m, n) up to a degree, (M, m), each the product of a coordinate and a monomial of one degree less.

    In NumPy: the same in JAX, by powers that are looked up, takes ten times as long.
    """
    coordinates = np.ascontiguousarray(z.T)
    n = len(coordinates)
    out = np.empty((math.comb(n + degree, degree), len(z)))
    out[0] = 1.0
    first, end = [0] * n, 1  # rows of the last degree without the coordinates before the i-th: from first[i] to its end
    for _ in range(degree):
        stop, begun = end, []
        for x, start in zip(coordinates, first, strict=True):
            begun.append(end)
            end += stop - start
            np.multiply(x, out[start:stop], out=out[begun[-1] : end])
        first = begun
    return out


def degree_of(coordinates: int) -> int:
    """The largest degree of which there are few enough monomials. Raises NotApplicable if that is below 3."""
    degree = max(d for d in range(HIGHEST + 1) if math.comb(coordinates + d, d) <= MOST_MONOMIALS)
    if degree < 3:
        raise OutOfReach(f"z has {coordinates} coordinates: too many polynomials")
    return degree


@lru_cache(maxsize=16)
def polynomials(step: JaxStep, level: int) -> Polynomials:
    """The basis for the claimed law of z of a step: level 1 of the degree that is used, level 0 of one less.

    The change from one to the other is the error estimate.

    Raises:
        NotApplicable: if no quadrature rule for the law of z is known, or the space of polynomials is too large.
    """
    nodes, weights = law_rule(step, step.sampler.claims)
    n = nodes.shape[1]
    degree = degree_of(n) - 1 + level
    scale = np.sqrt(weights @ nodes**2)
    raw = _monomials(nodes / scale, degree).T
    _, sizes, vectors = np.linalg.svd(np.linalg.qr(np.sqrt(weights)[:, None] * raw, mode="r"), full_matrices=False)
    rank = int(np.count_nonzero(sizes > RANK * sizes[0]))
    mix = vectors[:rank].T / sizes[:rank]
    return Polynomials(degree, scale, mix, nodes, weights, raw @ mix)


def require_polynomials(step: JaxStep | HostStep) -> None:
    """Raise NotApplicable, with the reason, for a step whose transfer operator on polynomials is out of reach."""
    step = require_traced(step)
    if StationaryLaw not in step.sampler.claims:
        raise NotApplicable(f"{step.sampler.claims.law.kind} samplers have no law at a fixed step size")
    if step.target.manifold.dim == step.target.size:
        raise NotApplicable("not on a curved manifold")
    if step.target.manifold.has_boundary:
        raise OutOfReach("reflections have kinks that polynomials do not resolve")
    step.require_gaussian()
    require_moments_of_the_force(step.target, step.sampler.claims.temperature)
    paths = len(law_rule(step, step.sampler.claims)[0]) * NOISE_POINTS[1] ** step.noise_size
    if paths > MOST_PATHS:
        raise OutOfReach(f"{paths:.1e} paths are too many for the quadrature")


@lru_cache(maxsize=16)
def require_moments_of_the_force(target: Target, temperature: float) -> None:
    """Raise NotApplicable for a force without a fourth moment, which a finer rule does not reproduce.

    A kick by h F gives the velocity moments of F, and polynomials up to a high degree have to have expectations.
    """
    coarse, fine = (_fourth_moment(target, temperature, refine) for refine in (0, 1))
    if abs(fine - coarse) > UNRESOLVED * coarse:
        raise OutOfReach("the force is singular: its fourth moment does not exist, or no rule resolves it")


def _fourth_moment(target: Target, temperature: float, refine: int) -> float:
    """E |grad U|^4 under exp(-U / T), by quadrature."""
    points, weights = position_rule(target, temperature, refine)
    force = np.asarray(jax.vmap(jax.grad(target.flat_potential))(jnp.asarray(points)))
    return float(weights @ np.sum(force**2, axis=1) ** 2)


def transition(step: JaxStep, h: float, level: int) -> np.ndarray:
    """The matrix (K, K) of one step of size h on the basis: entry (j, k) is the integral of phi_j E phi_k(z') pi."""
    basis = polynomials(step, level)
    nodes, weights = gauss_hermite(step.noise_size, NOISE_POINTS[level])
    push = _compiled(step)
    rows = []
    for first in range(0, len(basis.nodes), BLOCK):
        part = basis.nodes[first : first + BLOCK]
        padded = np.concatenate([part, np.repeat(part[-1:], BLOCK - len(part), axis=0)])
        moved = np.asarray(push(jnp.asarray(padded), nodes, jnp.asarray(float(h))))[: len(part)] / basis.scale
        rows += [_monomials(z, basis.degree) @ weights for z in moved]
    expected = np.stack(rows) @ basis.mix
    return (basis.values * basis.weights[:, None]).T @ expected


@lru_cache(maxsize=16)
def _compiled(step: JaxStep):
    """(points (B, n), noise nodes (Q, k), h) -> z' (B, Q, n)."""
    moved = lambda z, noise, h: step.run(z, noise, h)[0]
    return jax.jit(jax.vmap(jax.vmap(moved, (None, 0, None)), (0, None, None)))


def system_of(matrix: np.ndarray, one: np.ndarray) -> np.ndarray:
    """c P = c and total mass one as equations for c: (K + 1, K); `one` has the coefficients of the constant 1."""
    return np.concatenate([matrix.T - np.eye(len(matrix)), one[None, :]])


def stationary(matrix: np.ndarray, one: np.ndarray) -> np.ndarray:
    """The row c (K,) with c P = c and total mass one. Raises OutOfReach for a step that is not finite."""
    if not np.isfinite(matrix).all():
        raise OutOfReach("a step is not finite at a node of a quadrature rule, as where it divides by its own noise")
    system = system_of(matrix, one)
    right = np.zeros(len(system))
    right[-1] = 1.0
    return np.linalg.lstsq(system, right, rcond=None)[0]


class Laws(NamedTuple):
    """The laws of a scheme as rows of coefficients.

    Attributes:
        basis: of the polynomials.
        sizes: step sizes (L,), decreasing.
        stationary: the stationary law at each of them (L, K).
        first: the matrix of a step of the largest size.
    """

    basis: Polynomials
    sizes: np.ndarray
    stationary: np.ndarray
    first: np.ndarray

    @property
    def limit(self) -> tuple[np.ndarray, np.ndarray]:
        """The limit h -> 0 of the stationary law (K,) and an estimate of its error."""
        return neville(self.sizes, self.stationary)

    def after(self, num_steps: int) -> np.ndarray:
        """The law (K,) after some steps of the largest size from the limit."""
        return self.limit[0] @ np.linalg.matrix_power(self.first, num_steps)


@lru_cache(maxsize=16)
def stationary_laws(step: JaxStep, h: float, level: int) -> Laws:
    """The stationary laws at h, h/2, .. on the polynomials of a level.

    Raises:
        NotApplicable: see `require_polynomials`.
    """
    require_polynomials(step)
    basis, sizes = polynomials(step, level), h / 2.0 ** np.arange(LEVELS)
    matrices = [transition(step, size, level) for size in sizes]
    return Laws(basis, sizes, np.array([stationary(m, basis.one) for m in matrices]), matrices[0])

"""The law of the declared dynamics at a time T from a given start: no sampler is involved."""

from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from scipy.linalg import expm
from scipy.sparse.linalg import expm_multiply

from sgmcmc_verification.checks.core.check import NotApplicable, OutOfReach
from sgmcmc_verification.checks.exact_laws.affine_chain import composed
from sgmcmc_verification.checks.exact_laws.exact_draws import Gaussian
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.interface.claims import Diffusion, ExactLaw

EPS = np.finfo(float).eps
DENSE = 1000
"""Largest grid for which the matrix exponential itself is formed."""
FIRST = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
SECOND = np.array([2, -27, 270, -490, 270, -27, 2]) / 180
"""Central differences on seven points: errors O(dx^6)."""


def declared_dynamics(step: JaxStep | HostStep) -> Dynamics:
    """The dynamics that a sampler declares on its target. Raises NotApplicable if there are none."""
    claims = step.sampler.claims
    if ExactLaw in claims:
        raise NotApplicable("an exact kernel claims a law that it keeps, not how fast it gets there")
    if Diffusion not in claims:
        raise NotApplicable("no dynamics are declared: how fast a start is forgotten is not claimed")
    dynamics = claims[Diffusion].dynamics(step.target)
    if dynamics.dim != step.size:
        raise NotApplicable("the declared dynamics are not those of z")
    return dynamics


def linear_law(dynamics: Dynamics, start: Gaussian, time: float) -> Gaussian:
    """The law of dz = (J z + b) dt + sqrt(2 D) dW at `time`, by the exponential of a block matrix.

        m(t) = e^(J t) m + int_0^t e^(J s) ds b,   S(t) = e^(J t) S e^(J^T t) + 2 int_0^t e^(J s) D e^(J^T s) ds

    Source: the block matrix of vanloan1978computing, section II.

    Raises:
        NotApplicable: if the drift is not affine or D is not constant.
    """
    n = dynamics.dim
    at = [jnp.asarray(v) for v in (np.zeros(n), np.cos(1.7 * np.arange(n) + 0.4))]
    offset, generic = (np.asarray(dynamics.drift(z)) for z in at)
    slope, D = np.asarray(jax.jacfwd(dynamics.drift)(at[0])), np.asarray(dynamics.D(at[0]))
    scale = 1e4 * EPS * (1 + np.abs(slope).sum() + np.abs(offset).max())
    if np.abs(generic - offset - slope @ at[1]).max() > scale or np.abs(dynamics.D(at[1]) - D).max() > scale:
        raise OutOfReach("the declared dynamics are not linear on this target")
    # over a time in which nothing grows by much, then doubled: the block with -J overflows for stiff dynamics
    halvings = max(0, int(np.ceil(np.log2(1 + time * np.linalg.norm(slope, 1)))))
    short = time / 2**halvings
    block = expm(short * np.block([[-slope, 2 * D], [np.zeros((n, n)), slope.T]]))
    flow = block[n:, n:].T
    noise = flow @ block[:n, n:]
    shift = expm(short * np.block([[slope, offset[:, None]], [np.zeros((1, n + 1))]]))[:n, n]
    whole = flow, shift, (noise + noise.T) / 2
    for _ in range(halvings):
        whole = composed(whole, whole)
    flow, shift, noise = whole
    return Gaussian(flow @ start.mean + shift, flow @ start.covariance @ flow.T + noise)


def law_on_grid(dynamics: Dynamics, axes: list[np.ndarray], start: np.ndarray, time: float) -> np.ndarray:
    """Weights (m,) on the grid at `time`, by the method of lines for the Fokker-Planck equation.

    The generator L = f . grad + D : Hess is discretised by central differences, and law(t) = exp(t L^T) start. The
    density has to be smooth on the grid and negligible at its boundary; the change from a coarser grid tells the error.
    """
    points = jnp.asarray(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes)))
    drift, D = np.asarray(jax.vmap(dynamics.drift)(points)), np.asarray(jax.vmap(dynamics.D)(points))
    count = range(len(axes))
    generator: Any = sparse.csr_matrix((len(start), len(start)))
    for i in count:
        generator = generator + sparse.diags(drift[:, i]) @ _along(axes, {i: FIRST})
        for j in count:
            stencils = {i: SECOND} if i == j else {i: FIRST, j: FIRST}
            if D[:, i, j].any():
                generator = generator + sparse.diags(D[:, i, j]) @ _along(axes, stencils)
    forward = (time * generator).T.tocsr()
    return expm(forward.toarray()) @ start if len(start) <= DENSE else expm_multiply(forward, start)


def _along(axes: list[np.ndarray], stencils: dict[int, np.ndarray]):
    """The sparse matrix that applies one stencil along each of some axes; the functions vanish beyond the grid."""
    parts = []
    for i, axis in enumerate(axes):
        stencil = stencils.get(i)
        if stencil is None:
            parts.append(sparse.identity(len(axis)))
            continue
        power = 2 if stencil is SECOND else 1
        shape = (len(axis), len(axis))
        weights = stencil / (axis[1] - axis[0]) ** power
        parts.append(sum(sparse.eye(*shape, k=k - 3) * w for k, w in enumerate(weights)))
    return reduce(sparse.kron, parts).tocsr()

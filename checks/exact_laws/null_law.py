"""The exact law of independent chains after n steps of size h, under the null hypothesis that the sampler is correct.

The chains start from the claimed law pi of z. A correct scheme of positive order has a stationary law pi_h that tends
to pi as h -> 0. Both pi_h and its limit pi_0 are computed noise-free from the code, and only what vanishes is granted:

    E f(z_n) = pi(f) + E[f(z_n) | z_0 ~ pi_0] - pi_0(f)

For a correct sampler pi_0 = pi, so this is its own exact discrete law; a wrong one, whose stationary law has another
limit, meets a null law that it cannot have, however slowly it moves. Where the code has no stationary law, its law
after the fixed time n h takes the place of pi_h. An exact kernel is granted nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from sgmcmc_verification.checks.core.check import Inconclusive, OutOfReach
from sgmcmc_verification.checks.exact_laws.affine_chain import end_law
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import law_rule, position_rule
from sgmcmc_verification.checks.exact_laws.exact_draws import Gaussian, gaussian_start, line_grid
from sgmcmc_verification.checks.exact_laws.galerkin import stationary_laws
from sgmcmc_verification.checks.exact_laws.sde_law import declared_dynamics, law_on_grid, linear_law
from sgmcmc_verification.checks.exact_laws.transfer_operator import (
    GRIDS,
    grid_axes,
    require_grid,
    stationary,
    transition,
)
from sgmcmc_verification.checks.numerics.observables import observables, wave_directions
from sgmcmc_verification.checks.numerics.quadrature import gauss_hermite, neville
from sgmcmc_verification.checks.tracing.periodic_state import phases
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep
from sgmcmc_verification.samplers.interface.claims import Diffusion, ExactLaw, Exchange

LEVELS = 6
"""Step sizes h / 2^k, k < LEVELS, from which the limit of the bias is extrapolated."""
FINER = {1: GRIDS[1], 2: ((56, 44), (72, 56))}
"""Points of the coarse and of the fine grid: what is an allowance here has to be below a hundredth of a variance."""
FOREVER = 1 << 32
"""Steps after which an affine chain has settled, one that moves by h^2 a step included; they cost 32 products of
matrices."""
NUM_STEPS = 50
"""Steps of the usual size that the chains make: a few relaxation times of the stiffest direction, so that an error of
the step has had time to become one of the law."""

POSITION_NODES = {1: 80, 2: 40, 3: 20}
"""Nodes a dimension for expectations of a function of a Gaussian position."""
RULE = 2
"""Refinement of the quadrature rules of laws on manifolds."""
CHUNK = 1 << 14
"""Nodes at which polynomials are evaluated at a time."""
EXCHANGED = "no exact discrete law: two chains change places"
NO_GRID = "no exact discrete law: a host sampler on a target that is not Gaussian"


@dataclass(frozen=True)
class NullLaw:
    """The law of a vector w of the end points under the null.

    Attributes:
        variable: True if w is z = (theta, r, ..), False if w is the position alone.
        centre: mean (k,) of w under the claimed law.
        root: matrix (k, k) with root (w - centre) of unit covariance under the claimed law.
        expectations: of `observables(y)`, y = root (w - centre).
        characteristic: omega (J, k) -> E exp(i omega . y), complex (J,).
        cdf: unit vector a (k,) -> distribution function of a . y, or None where only coordinates are known.
        position: f (m, d) -> (m, k), vectorised over positions -> E f(position) (k,).
        error: of `expectations`, numerical; and of the distribution functions.
        granted: the largest change of `expectations` that discretisation is granted.
        limit: the largest limit bias of `expectations`, which is not granted.
        source: where the law comes from.
        shift: as `position`, less the value under the claimed law; None where distribution functions are known.
    """

    variable: bool
    centre: np.ndarray
    root: np.ndarray
    expectations: np.ndarray
    characteristic: Callable[[np.ndarray], np.ndarray]
    cdf: Callable[[np.ndarray], Callable[[np.ndarray], np.ndarray] | None]
    position: Callable[[Callable[[np.ndarray], np.ndarray]], np.ndarray]
    error: float
    cdf_error: float
    granted: float
    limit: float
    source: str
    shift: Callable[[Callable[[np.ndarray], np.ndarray]], np.ndarray] | None = None

    @property
    def size(self) -> int:
        """Number of coordinates of w."""
        return len(self.centre)

    def standardise(self, w: np.ndarray) -> np.ndarray:
        """w (N, k) -> y (N, k)."""
        return (w - self.centre) @ self.root.T


@lru_cache(maxsize=32)
def null_law(step: JaxStep | HostStep, h: float, num_steps: int = NUM_STEPS) -> NullLaw:
    """The null law of the end points of `num_steps` steps of size h.

    Raises:
        NotApplicable: where the exact discrete law is not known; the reason says why.
    """
    claims, target = step.sampler.claims, step.target
    if Exchange in claims:
        raise OutOfReach(EXCHANGED)
    if ExactLaw in claims:
        if target.gaussian is not None:
            source = "an exact kernel leaves the target invariant"
            if Diffusion in claims:  # which tell the law of a momentum that is kept from step to step
                law = gaussian_start(step)
                return _of_gaussians(True, target.size, law, [(1.0, law)], source)
            covariance = claims.temperature * np.linalg.inv(target.gaussian.precision)
            law = Gaussian(target.gaussian.mean, covariance)
            return _of_gaussians(False, target.size, law, [(1.0, law)], source)
        return _of_rule(step) if target.manifold.dim < target.size else _of_line(step)
    if target.gaussian is not None:
        return _of_affine(step, h, num_steps)
    if isinstance(step, JaxStep):
        return (_of_polynomials if target.manifold.dim < target.size else _of_grid)(step, h, num_steps)
    raise OutOfReach(NO_GRID)


def null_law_from(step: JaxStep | HostStep, h: float, num_steps: int, start: Gaussian) -> NullLaw:
    """The null law of the end points of chains that start from z ~ `start` instead of the claimed law.

        E f(z_n) = E f(Z_T) + b_f(h) - lim_{h -> 0} b_f(h),   T = n h

    where Z_T is the declared dynamics at time T from the same start, which no code of the sampler enters: a sampler
    that leaves the claimed law invariant but does not move, moves at another speed, or never crosses from one mode to
    another, cannot have this law.

    Raises:
        NotApplicable: where the exact discrete law is not known, or no dynamics are declared.
    """
    if Exchange in step.sampler.claims:
        raise OutOfReach(EXCHANGED)
    if step.target.gaussian is not None:
        return _of_affine(step, h, num_steps, start)
    if isinstance(step, JaxStep):
        return _of_grid(step, h, num_steps, start)
    raise OutOfReach(NO_GRID)


def _of_line(step: JaxStep | HostStep) -> NullLaw:
    """The law exp(-U / T) on a line."""
    x, mass = line_grid(step.target, step.sampler.claims.temperature)
    weights = np.diff(mass)
    middle = (x[1:] + x[:-1]) / 2
    centre = weights @ middle
    scale = 1 / np.sqrt(weights @ (middle - centre) ** 2)
    y = ((middle - centre) * scale)[:, None]
    return NullLaw(
        variable=False,
        centre=np.array([centre]),
        root=np.array([[scale]]),
        expectations=weights @ observables(y),
        characteristic=lambda omega: weights @ np.exp(1j * (y @ omega.T)),
        cdf=lambda a: _signed(a, lambda u: np.interp(u / scale + centre, x, mass)),
        position=lambda f: weights @ f(middle[:, None]),
        error=0.0,
        cdf_error=0.0,
        granted=0.0,
        limit=0.0,
        source="an exact kernel leaves the target invariant",
    )


def _of_rule(step: JaxStep | HostStep) -> NullLaw:
    """The law exp(-U / T) on a curved manifold, by its quadrature rule."""
    temperature = step.sampler.claims.temperature
    points, weights = position_rule(step.target, temperature, RULE)
    return _of_nodes(
        (points, weights),
        weights,
        position_rule(step.target, temperature),
        variable=False,
        size=step.target.size,
        source="an exact kernel leaves the target invariant",
    )


def _of_nodes(
    rule: tuple[np.ndarray, np.ndarray],
    law: np.ndarray,
    rough: tuple[np.ndarray, np.ndarray],
    *,
    variable: bool,
    size: int,
    source: str,
    error: float = 0.0,
    limit: float = 0.0,
) -> NullLaw:
    """A law as weights on the nodes of a rule for the claimed one; `rough`, a coarser rule, tells the rule's error.

    Positions are divided by one number and velocities by another, so that Gaussian kernels of them are kernels of the
    distance in the ambient space: on a sphere exp((cos d(x, y) - 1) / l^2), a positive definite kernel of the geodesic
    distance d (schoenberg1942positive), which the Gaussian of d itself is not (feragen2015geodesic).
    """
    points, claimed = rule
    centre = claimed @ points
    spread = np.sqrt(claimed @ (points - centre) ** 2)
    for block in (slice(0, size), slice(size, 2 * size)):
        spread[block] = np.sqrt(np.mean(spread[block] ** 2)) if len(spread) >= block.stop else spread[block]
    y = (points - centre) / spread
    values = observables(y)
    error += float(np.abs(rough[1] @ observables((rough[0] - centre) / spread) - claimed @ values).max())
    return NullLaw(
        variable=variable,
        centre=centre,
        root=np.diag(1 / spread),
        expectations=law @ values,
        characteristic=lambda omega: law @ np.exp(1j * (y @ omega.T)),
        cdf=lambda a: None,
        position=lambda f: law @ f(points[:, :size]),
        error=error,
        cdf_error=error,
        granted=float(np.abs((law - claimed) @ values).max()),
        limit=limit,
        source=source,
        shift=lambda f: (law - claimed) @ f(points[:, :size]),
    )


def _of_polynomials(step: JaxStep, h: float, num_steps: int) -> NullLaw:
    """The law after n steps on a curved manifold, by the transfer operator on polynomials.

    Its numerical error is ten times that of the extrapolation plus the change from a lower degree.
    """
    coarse, fine = (stationary_laws(step, h, level) for level in (0, 1))
    points, claimed = law_rule(step, step.sampler.claims, RULE)
    weights = {}
    for name, laws in (("coarse", coarse), ("fine", fine)):
        limit, uncertain = laws.limit
        rows = np.stack([laws.after(num_steps), limit, uncertain], axis=1)
        parts = [laws.basis.at(points[i : i + CHUNK]) @ rows for i in range(0, len(points), CHUNK)]
        weights[name] = claimed * np.concatenate(parts).T
    own, limit, uncertain = weights["fine"]
    values = observables(points - claimed @ points)
    if not (np.isfinite(own).all() and np.isfinite(limit).all()):
        raise Inconclusive("the exact law of the scheme is not finite")
    gaps = np.abs((weights["coarse"] - weights["fine"])[:2] @ values).sum(axis=0)
    return _of_nodes(
        (points, claimed),
        claimed + own - limit,
        law_rule(step, step.sampler.claims),
        variable=True,
        size=step.target.size,
        source="exact discrete law from the transfer operator on polynomials, its limit h -> 0 removed",
        error=10 * float(np.abs(uncertain @ values).max()) + float(gaps.max()),
        limit=float(np.abs((limit - claimed) @ values).max()),
    )


def _signed(a: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Distribution function of a y for a = +1 or -1 from that of y."""
    return cdf if a[0] > 0 else lambda t: 1 - cdf(-t)


def _moments(law: Gaussian) -> np.ndarray:
    """E `observables(y)`, y ~ N(m, S): moments by Isserlis' theorem, waves by the characteristic function."""
    m, s = law.mean, law.covariance
    i, j = np.triu_indices(len(m))
    v = np.diag(s)
    waves = [
        np.imag(np.exp(1j * (phase + d @ m) - d @ s @ d / 2)) for d, phase in zip(*wave_directions(len(m)), strict=True)
    ]
    return np.concatenate([m, s[i, j] + m[i] * m[j], m**3 + 3 * m * v, m**4 + 6 * m**2 * v + 3 * v**2, waves])


def _root(covariance: np.ndarray) -> np.ndarray:
    """R with R R^T = covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.clip(values, 0, None))


def _of_gaussians(
    variable: bool, size: int, claimed: Gaussian, terms: list[tuple[float, Gaussian]], source: str
) -> NullLaw:
    """A signed sum of Gaussian laws, standardised by the claimed one; the first is the law as h -> 0."""
    root = np.linalg.inv(np.linalg.cholesky(claimed.covariance))
    laws = [(c, Gaussian(root @ (g.mean - claimed.mean), root @ g.covariance @ root.T)) for c, g in terms]

    def characteristic(omega: np.ndarray):
        wave = lambda g: np.exp(1j * omega @ g.mean - np.einsum("ji,ik,jk->j", omega, g.covariance, omega) / 2)
        waves = [c * wave(g) for c, g in laws]
        return np.sum(waves, axis=0)

    def cdf(a: np.ndarray):
        parts = [(c, a @ g.mean, np.sqrt(max(a @ g.covariance @ a, 1e-30))) for c, g in laws]
        return lambda t: np.sum([c * ndtr((t - m) / s) for c, m, s in parts], axis=0)

    ideal = _moments(laws[0][1])
    expected = np.sum([c * _moments(g) for c, g in laws], axis=0)
    limit = _moments(laws[-1][1]) - ideal if len(laws) > 1 else np.zeros_like(ideal)

    def position(f: Callable[[np.ndarray], np.ndarray]):
        if size not in POSITION_NODES:
            raise OutOfReach(f"expectations of functions of {size} coordinates need too large a grid")
        nodes, w = gauss_hermite(size, POSITION_NODES[size])
        return np.sum(
            [c * w @ f(g.mean[:size] + nodes @ _root(g.covariance[:size, :size]).T) for c, g in terms], axis=0
        )

    return NullLaw(
        variable=variable,
        centre=claimed.mean,
        root=root,
        expectations=expected,
        characteristic=characteristic,
        cdf=cdf,
        position=position,
        error=0.0,
        cdf_error=0.0,
        granted=float(np.abs(expected - ideal).max()),
        limit=float(np.abs(limit).max()),
        source=source,
    )


def _of_affine(step: JaxStep | HostStep, h: float, num_steps: int, start: Gaussian | None = None) -> NullLaw:
    """Affine steps from a Gaussian start: the law after n steps, by recursion of mean and covariance."""
    claimed, size, d = gaussian_start(step), step.size, step.target.size
    hs = h / 2.0 ** np.arange(LEVELS)
    source = "exact discrete law of the affine step, its limit h -> 0 removed"
    reference = claimed
    if start is not None:
        reference = linear_law(declared_dynamics(step), start, num_steps * h)
        source = "exact law of the declared dynamics from this start, and the step's own bias that vanishes as h -> 0"
    ends = _stationary(step, hs, claimed) if start is None else None
    settles = ends is not None
    if ends is None:
        first = claimed if start is None else start
        ends = [end_law(step, small, num_steps * 2**k, first) for k, small in enumerate(hs)]
    # The position is part of z, unless a scheme reads it off with a correction of its own.
    same = np.allclose(ends[0].mean[size:], ends[0].mean[:d], rtol=1e-9, atol=1e-9) and np.allclose(
        ends[0].covariance[size:, size:], ends[0].covariance[:d, :d], rtol=1e-9, atol=1e-9
    )
    part = slice(0, size) if same else slice(size, size + d)
    if not same:
        claimed, reference = (Gaussian(g.mean[:d], g.covariance[:d, :d]) for g in (claimed, reference))
    means = np.array([e.mean[part] for e in ends])
    covariances = np.array([e.covariance[part, part] for e in ends])
    if not (np.isfinite(means).all() and np.isfinite(covariances).all()):
        raise Inconclusive("the exact law of the scheme is not finite")
    limit = Gaussian(neville(hs, means)[0], neville(hs, covariances)[0])
    own = Gaussian(means[0], covariances[0])
    if settles:
        whole = Gaussian(*(neville(hs, np.array(column))[0] for column in zip(*ends, strict=True)))
        moved = end_law(step, h, num_steps, Gaussian(whole.mean[:size], whole.covariance[:size, :size]))
        own = Gaussian(moved.mean[part], moved.covariance[part, part])
    return _of_gaussians(same, d, claimed, [(1.0, reference), (1.0, own), (-1.0, limit)], source)


def _stationary(step: JaxStep | HostStep, hs: np.ndarray, start: Gaussian) -> list[Gaussian] | None:
    """The stationary laws of (z, position) at step sizes hs; None if the chain does not settle, or is a mixture."""
    if len(phases(step)) > 1 or len(step.chain(hs[0]).step) > 1:
        return None
    laws = []
    for h in hs:
        with np.errstate(over="ignore", invalid="ignore"):
            law, later = (end_law(step, h, n, start) for n in (FOREVER, 2 * FOREVER))
        for now, then in zip(law, later, strict=True):
            if not (np.isfinite(then).all() and np.abs(then - now).max() <= 1e-9 * (1 + np.abs(now).max())):
                return None
        laws.append(law)
    return laws


def _of_grid(step: JaxStep, h: float, num_steps: int, start: Gaussian | None = None) -> NullLaw:
    """The law after n steps on a grid of z, by the transfer operator, on a one-dimensional target.

    Its numerical error is ten times that of the extrapolation plus the change from a coarser grid.
    """
    require_grid(step)
    coarse, fine = (_grid_law(step, h, num_steps, shape, start) for shape in FINER[step.size])
    axes, points, claimed, reference, laws, own = fine
    shape = tuple(len(a) for a in axes)
    hs = h / 2.0 ** np.arange(len(laws))
    limit, _ = neville(hs, laws)
    law = reference + own - limit
    centre = claimed @ points
    spread = np.sqrt(claimed @ (points - centre) ** 2)
    y = (points - centre) / spread
    values = observables(y)
    limits, errors = neville(hs, laws @ values)
    _, uncertain = neville(hs, np.cumsum(laws.reshape(-1, *shape).sum(axis=tuple(range(2, 1 + len(shape)))), axis=1))
    rough = np.array([coarse[5], coarse[3]]) @ observables((coarse[1] - centre) / spread)
    error = 10 * float(errors.max()) + float(np.abs(rough - [own @ values, reference @ values]).sum(axis=0).max())

    def cdf(a: np.ndarray):
        from scipy.interpolate import make_interp_spline  # slow to load

        index = int(np.argmax(np.abs(a)))
        if np.count_nonzero(a) != 1:
            return None
        other = tuple(i for i in range(len(shape)) if i != index)
        marginal = law.reshape(shape).sum(axis=other)
        t = (axes[index] - centre[index]) / spread[index]
        # The weights are densities times the spacing: their spline is integrated, not summed.
        primitive = make_interp_spline(t, marginal / (t[1] - t[0]), k=5).antiderivative()
        low, high = primitive(t[0]), primitive(t[-1])
        return _signed(a[[index]], lambda u: np.clip((primitive(np.clip(u, t[0], t[-1])) - low) / (high - low), 0, 1))

    return NullLaw(
        variable=True,
        centre=centre,
        root=np.diag(1 / spread),
        expectations=law @ values,
        characteristic=lambda omega: law @ np.exp(1j * (y @ omega.T)),
        cdf=cdf,
        position=lambda f: law @ f(points[:, : step.target.size]),
        error=error,
        cdf_error=10 * float(uncertain.max()),
        granted=float(np.abs((law - reference) @ values).max()),
        limit=float(np.abs(limits - reference @ values).max()),
        source="exact discrete law from the transfer operator, its limit h -> 0 removed"
        if start is None
        else "exact law of the declared dynamics from this start, and the step's own bias that vanishes as h -> 0",
    )


def _grid_law(step: JaxStep, h: float, num_steps: int, shape: tuple[int, ...], start: Gaussian | None):
    """Axes, points (m, n), the weights (m,) that are claimed and those as h -> 0, the step's (levels, m), its own (m,).

    From the claimed law the step's weights are its stationary laws at h / 2^k, and its own those that n steps of size h
    make of their limit. From another start, or if it does not settle, they are those after n 2^k steps of size h / 2^k,
    and its own the first of them.
    """
    axes = grid_axes(step.target, step.sampler.claims.temperature, shape)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    claimed = reference = first = _claimed_on_grid(step, points)
    if start is not None:
        gap = points - start.mean
        first = np.exp(-np.einsum("pi,ij,pj->p", gap, np.linalg.inv(start.covariance), gap) / 2)
        first = first / first.sum()
        reference = law_on_grid(declared_dynamics(step), axes, first, num_steps * h)
    levels = range(LEVELS - 1 if start is None else LEVELS - 2)
    matrices = [transition(step, h / 2**k, axes).matrix for k in levels]
    laws = None if start is not None else _settled(matrices)
    if laws is not None:
        limit, _ = neville(h / 2.0 ** np.arange(len(laws)), laws)
        own = _pushed(matrices[0], limit, num_steps)
    else:
        laws = np.array([_pushed(matrix, first, num_steps * 2**k) for k, matrix in zip(levels, matrices, strict=True)])
        own = laws[0]
    if not np.isfinite(laws).all():
        raise Inconclusive("the exact law of the scheme is not finite on the grid")
    return axes, points, claimed, reference, laws, own


def _pushed(matrix: Any, law: np.ndarray, times: int) -> np.ndarray:
    """The weights after `times` steps."""
    transposed = matrix.T.tocsr()
    for _ in range(times):
        law = transposed @ law
    return law


def _settled(matrices: Sequence[Any]) -> np.ndarray | None:
    """The stationary weights of each transfer operator; None if one has none, or several."""
    try:
        laws = np.array([stationary(matrix) for matrix in matrices])
    except RuntimeError:  # the factorisation found the equations singular
        return None
    return laws if np.isfinite(laws).all() else None


def _claimed_on_grid(step: JaxStep, points: np.ndarray) -> np.ndarray:
    """Weights of the claimed law of z on the grid, exp(-H), summing to one."""
    claims, target = step.sampler.claims, step.target
    if step.size == target.size:
        energy = lambda z: target.flat_potential(z) / claims.temperature
    elif Diffusion in claims:
        energy = claims[Diffusion].dynamics(target).H
    else:
        raise OutOfReach("the law of the auxiliary variables is not declared")
    values = np.asarray(jax.vmap(energy)(jnp.asarray(points)))
    weights = np.exp(-(values - values.min()))
    return weights / weights.sum()

"""Kernels of particle methods: the rule for the width, and the estimate of their own density."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import everywhere, last
from sgmcmc_verification.checks.tiers.particles.velocity import (
    EPS,
    WEIGHTS,
    gradients_of,
    median_bandwidth,
    six_particles,
    velocity_of,
)
from sgmcmc_verification.samplers.dynamics.complete_recipe import row_divergence
from sgmcmc_verification.samplers.interface.claims import DensityEstimate, KernelWidth, MarginalFlow, ParticleVelocity
from sgmcmc_verification.samplers.particles.common import flatten
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.target import Target

WIDTH = 0.7
"""Bandwidth of the estimates that are compared."""


@statement(
    tier="law",
    equation="h = median |x_i - x_j|^2 / (2 log(M + 1)), kappa = log(M - 1) / (p - median tr x_i^T x_j)",
    targets=last(everywhere),
    cost=1.5,
    decides="dynamics",
    once=True,
)
def median_rule(
    case: Case, claim: ParticleVelocity, width: KernelWidth | None, estimate: DensityEstimate | None
) -> Finding:
    """A step with the kernel's width by the median of the particles is the step with that number given.

    The other checks take a fixed kernel, since they hold for any: what the rule gives is seen here only. The median is
    NumPy's.
    """
    sampler, state, x = six_particles(case.subject, case.target)
    M = len(x)
    if width is None or width.value != "median":
        raise NotApplicable("its kernel has no width by the median")
    if width.option == "bandwidth":
        if x.shape[1] > case.target.size and not (estimate is not None and estimate.joint):
            return _apart(
                case.subject, case.target, sampler, state, [x[:, : case.target.size], x[:, case.target.size :]]
            )
        value = median_bandwidth(x)
    else:
        if isinstance(case.target.manifold, ProductOfSpheres):
            raise NotApplicable("each factor has a concentration of its own")
        inner = (x @ x.T)[np.triu_indices(M, 1)]
        value = float(np.log(M - 1) / (x[0] @ x[0] - np.median(inner)))
    estimator, h = case.subject.estimator(case.target), case.step_size
    start = sampler.unpack(state)

    def end(other):
        def after(variable):
            new = other.step(jax.random.key(1), other.pack(jax.random.key(0), variable, estimator), h, estimator)
            return flatten(other.unpack(new))

        return np.asarray(jax.jit(after)(start))

    found, expected = end(sampler), end(width.given(value))
    z = np.asarray(flatten(start))
    moved = float(np.abs(expected - z).max())
    effect = float(np.abs(found - expected).max()) / moved
    allowance = 1e5 * EPS * (1 + float(np.abs(z).max()) / moved)
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off, and cancellation of x' - x"),
        reason=f"with {width.option} {value:.6g} the step differs by {effect:.3g} of its size",
        statistic="step less that with the number given",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
        step_size=h,
    )


def _apart(subject: Subject, target: Target, sampler: Any, state: Any, blocks: list[np.ndarray]) -> Finding:
    """The bandwidths that a step says it used for positions and for auxiliaries; a single option cannot give both."""
    estimator, h = subject.estimator(target), subject.step_size(target)
    after = jax.jit(lambda s: sampler.step(jax.random.key(1), s, h, estimator).bandwidth)(state)
    expected = np.array([median_bandwidth(block) for block in blocks])
    effect = float(np.abs(np.asarray(after) / expected - 1).max())
    allowance = 1e3 * EPS
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off"),
        reason=f"the step used the bandwidths {np.asarray(after)}, the medians give {expected}",
        statistic="bandwidths less the medians",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
        step_size=h,
    )


@statement(
    tier="law",
    equation="v = D (grad log p - grad log q^) + Q grad log p + div Q, or (D + Q) grad log (p / q^), "
    "q^ from its definition",
    targets=last(everywhere),
    cost=1.0,
    decides="dynamics",
)
def density_estimate(case: Case, claim: DensityEstimate, flow: MarginalFlow) -> Finding:
    """The velocity is that of its flow with the declared estimate of grad log q, each from its definition.

        det   D (grad log p - grad log q^) + Q grad log p + div Q
        fgh   (D + Q) (grad log p - grad log q^)

    At six particles z of unequal weights, the estimate by automatic differentiation or a root of its equations. The
    limits of the other checks are those of every consistent estimate. So it is at all options: an estimate that the
    defaults do not take, and the size of its ridge, which those limits send to zero, are seen here only.

    Source: liu2019understanding, lemma 1 and theorem 5.
    """
    sampler, _, z = six_particles(case.subject, case.target)
    if sampler.density not in DEFINITIONS:
        raise NotApplicable(f"no definition of the estimate {sampler.density}")
    velocity_of_step = velocity_of(claim.given(WIDTH, sampler.ridge))
    x = z[:, : case.target.size]
    found = np.asarray(
        jax.jit(velocity_of_step)(*map(jnp.asarray, (z, gradients_of(case.subject.row, case.target)(x), WEIGHTS)))
    )
    estimate = DEFINITIONS[sampler.density]
    whole = claim.joint or x.shape == z.shape
    blocks = [z] if whole else [x, z[:, case.target.size :]]
    score = np.concatenate([estimate(block, WEIGHTS, sampler.ridge) for block in blocks], axis=1)
    model = flow.dynamics(case.target)

    @jax.jit
    @jax.vmap
    def velocity(z, score):
        uphill, D, Q = -jax.grad(model.H)(z), model.D(z), model.Q(z)
        if claim.form == "fgh":
            return (D + Q) @ (uphill - score)
        return D @ (uphill - score) + Q @ uphill + row_divergence(model.Q, z)

    expected = np.asarray(velocity(jnp.asarray(z), jnp.asarray(score)))
    effect = float(np.abs(found - expected).max() / np.abs(expected).max())
    allowance = 1e6 * EPS  # a root to 1e-12
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off, and the root of the defining equations"),
        reason=f"with the estimate {sampler.density} the velocity is off by {effect:.3g} of its size",
        statistic="velocity less its definition",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
    )


def _kernel(x: Any, y: Any) -> Any:
    """exp(-|x - y|^2 / (2 h)), (M, M'), for rows x and y."""
    return jnp.exp(-jnp.sum((x[:, None] - y[None]) ** 2, axis=-1) / (2 * WIDTH))


def _gfsd(x, w, ridge):
    """grad log of the kernel density estimate."""
    del ridge
    return jax.vmap(jax.grad(lambda y: jnp.log(_kernel(y[None], x)[0] @ w)))(jnp.asarray(x))


def _blob(x, w, ridge):
    """(1 / w_j) grad_j of sum_k w_k log of the kernel density estimate at x_k."""
    del ridge
    return jax.grad(lambda y: w @ jnp.log(_kernel(y, y) @ w))(jnp.asarray(x)) / w[:, None]


def _gfsf(x, w, ridge):
    """sum_i (w_i E_ij + [i = j] rho / M) s_i = -sum_i w_i grad_i E_ij + (rho / M) x_j / h, x from the mean."""
    x = x - w @ x
    E = np.asarray(_kernel(x, x))
    rise = jax.vmap(jax.grad(lambda y, z: _kernel(y[None], z[None])[0, 0]), (0, None))
    slopes = np.stack([w @ np.asarray(rise(jnp.asarray(x), z)) for z in jnp.asarray(x)])
    extra = ridge / len(x)
    return np.linalg.solve((E * w[:, None]).T + extra * np.eye(len(x)), extra * x / WIDTH - slopes)


def _jko(x, w, ridge):
    """4 / (d lambda w_j) grad_j of the cost of transport at fixed multipliers, lambda = 2 h."""
    del ridge
    E = np.asarray(_kernel(x, x))
    root = scipy.optimize.root(lambda v: np.exp(v) * (E @ (w * np.exp(v))) - 1, np.zeros(len(x)), tol=1e-12)
    u = w * np.exp(root.x)
    cost = lambda y: u @ (jnp.sum((y[:, None] - x[None]) ** 2, axis=-1) * _kernel(y, jnp.asarray(x))) @ u
    return 4 / (x.shape[1] * 2 * WIDTH) * jax.grad(cost)(jnp.asarray(x)) / w[:, None]


DEFINITIONS: dict[str, Callable[..., Any]] = {"gfsd": _gfsd, "gfsf": _gfsf, "blob": _blob, "jko": _jko}
"""Estimate -> (particles (M, d), weights (M,), ridge) -> grad log q^ (M, d)."""

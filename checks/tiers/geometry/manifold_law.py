"""Laws on manifolds: the noise-free limit, closed-form marginals, the kinetic energy, the Riemannian Stein discrepancy.

Where the exact discrete law is known (`checks.exact_laws.galerkin`) the end points of independent chains are compared
with it. In higher dimensions only the target is known, and its marginals, its Stein identities and the kinetic energy
are compared with the extrapolated limit h -> 0.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, require_stationary_law, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import of_target
from sgmcmc_verification.checks.core.selection import UNIFORM, curved, curved_only
from sgmcmc_verification.checks.end_points.chains import sample
from sgmcmc_verification.checks.end_points.error_rates import (
    ALPHA,
    POWER,
    STAGES,
    Sensitivity,
    chains_for,
    decide_statistically,
    not_finite,
    promise,
    stage_seed,
)
from sgmcmc_verification.checks.end_points.step_size_limit import Statistics, limit_of_chains, order_of
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import at_temperature, law_rule
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_variables
from sgmcmc_verification.checks.exact_laws.galerkin import (
    polynomials,
    require_polynomials,
    stationary,
    stationary_laws,
    system_of,
    transition,
)
from sgmcmc_verification.checks.exact_laws.null_law import NUM_STEPS, NullLaw, null_law
from sgmcmc_verification.checks.numerics.convergence_rate import slope
from sgmcmc_verification.checks.numerics.observables import observables
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.statistics.distribution import ks_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.checks.statistics.sequential import detectable
from sgmcmc_verification.checks.statistics.weighted_chi_square import moments_of, norm_test
from sgmcmc_verification.checks.tiers.geometry.constraints import has_velocity, require_curved
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.samplers.interface.claims import ExactLaw, KineticEnergy
from sgmcmc_verification.targets.target import Target

DISTANCE, DISCREPANCY, ENERGY = 0.005, 0.03, 0.06
"""Promised: KS distance, Stein discrepancy, error of the kinetic energy in two dimensions, relative."""
EPS = float(np.finfo(float).eps)
RESOLVED = 2 * DISTANCE
"""Largest error of a distribution function of the exact discrete law with which it is of use."""
LEGENDRE = 8
"""Degree in the distribution function to which the granted change of a marginal is expanded."""
EXTRAPOLATED = 4
"""The same for marginals of which only the limit is known."""
LIMIT = 0.05
"""Promised there, of the mean of a Legendre polynomial of the level."""
LOCATIONS = 5
STEIN_CHAINS = 1 << 17
FIXED = ("fixed-step", "exact")


@statement(
    tier="law",
    equation="pi_h P_h = pi_h on the tangent bundle has a solution that tends to pi as h -> 0",
    targets=curved_only,
    cost=8.0,
    decides="law",
    once=True,
    charted="bias",
    meets=of_target,
)
def manifold_limit(case: Case) -> Finding:
    """The exact stationary law of the scheme on a curved manifold tends to the claimed one, at the claimed order.

    Noise-free, for the joint law of position, velocity and thermostat.
    """
    require_curved(case.target)
    step, h = step_map(case.subject, case.target), case.step_size
    require_polynomials(step)
    coarse, fine = (stationary_laws(step, h, level) for level in (0, 1))
    points, weights = law_rule(step, step.sampler.claims)
    y = (points - weights @ points) / np.sqrt(weights @ (points - weights @ points) ** 2)
    values = observables(y)
    scale = 1 + weights @ np.abs(values)
    expectation = lambda laws, rows: ((weights * (rows @ laws.basis.at(points).T)) @ values - weights @ values) / scale
    biases, rough = expectation(fine, fine.stationary), expectation(coarse, coarse.stationary)
    limit, error = neville(fine.sizes, biases)
    # what the degree leaves out of the bias at one step size need not be left in its limit, and that is judged
    degree = float(np.abs(limit - neville(coarse.sizes, rough)[0]).max())
    effect, allowance = float(np.abs(limit).max()), 10 * (float(error.max()) + degree)
    sizes = np.abs(biases).max(axis=1)
    exponent, _ = slope(fine.sizes, sizes, floor=20 * float(np.abs(biases - rough)[-1].max()))
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "errors of the extrapolation to h = 0 and of the degree of the polynomials"),
        reason=(
            f"limit of the bias as h -> 0 is {effect:.3g}; at h = {h:.4g} the bias is {sizes[0]:.3g}, "
            f"order {exponent:.2f}"
        ),
        statistic="largest limit bias of the observables of z",
        unit="relative to 1 + E|f|",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=0.02,
        step_size=h,
        measurements={"bias": sizes.tolist(), "step_sizes": fine.sizes.tolist(), "measured_order": exponent},
    )


@statement(
    tier="law",
    equation="E |v|^2 / (m T) has its closed form at every step size for U = 0",
    targets=lambda subject: UNIFORM if curved_only(subject) else (),
    cost=8.0,
    decides="law",
    once=True,
)
def kinetic_energy(case: Case, claim: KineticEnergy) -> Finding:
    """Without a potential E |v|^2 / (m T) has its closed form at every step size, m the dimension of the manifold."""
    require_curved(case.target)
    step, h, d = step_map(case.subject, case.target), case.step_size, case.target.size
    require_polynomials(step)
    assert isinstance(step, JaxStep)
    size, sizes = case.target.manifold.dim * step.sampler.claims.temperature, (h, h / 2)
    found, condition = np.zeros((2, len(sizes))), 0.0
    for level in (0, 1):
        basis = polynomials(step, level)
        squares = np.sum(basis.nodes[:, d : 2 * d] ** 2, axis=1) / size
        for j, small in enumerate(sizes):
            matrix = transition(step, small, level)
            found[level, j] = basis.expectation(stationary(matrix, basis.one), squares)
            condition = max(condition, float(np.linalg.cond(system_of(matrix, basis.one))))
    fine = found[1]
    expected = [claim.ratio(float(small)) for small in sizes]
    gaps = np.abs(fine - expected)
    k = int(np.argmax(gaps))
    # Where a degree leaves something out it leaves out less than the lower one does.
    allowance = float(np.abs(found[1] - found[0]).max()) + 1e2 * EPS * condition
    return Finding(
        effect=float(gaps[k]),
        tolerance=Tolerance(
            allowance, "change from a lower degree of the polynomials, and the condition of the stationary equations"
        ),
        reason=f"at h = {sizes[k]:.4g} E |v|^2 / (m T) is {fine[k]:.12g}, in closed form {expected[k]:.12g}",
        statistic="E |v|^2 / (m T) less its closed form",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-5,
        step_size=h,
    )


def _known(step: JaxStep | HostStep, h: float) -> NullLaw | None:
    """The null law of the end points where it says how a marginal changes; None where only the limit is known.

    A law that is resolved no better than `RESOLVED` is as good as not known.
    """
    try:
        law = null_law(step, h)
    except NotApplicable:
        return None
    return law if law.shift is not None and law.cdf_error <= RESOLVED else None


@lru_cache(maxsize=16)
def _levels(target: Target) -> Callable[[np.ndarray], np.ndarray]:
    """Positions (n, d) -> u = F(s(x)) (n, k) for every statistic with a known distribution function."""
    each = [(jax.jit(jax.vmap(lambda x, c=c: c.function(target.unravel(x)))), c.cdf) for c in target.cdfs.values()]

    def levels(x):
        columns = [np.clip(cdf(np.asarray(function(jnp.asarray(x)))), 0.0, 1.0) for function, cdf in each]
        return np.stack(columns, axis=1)

    return levels


def _legendre(u: np.ndarray, degree: int) -> np.ndarray:
    """P_1 .. P_degree of 2 u - 1 for levels u (n, k), (n, k degree): of mean zero for a uniform level."""
    values = np.polynomial.legendre.legvander(2 * u - 1, degree)[..., 1:]
    return values.reshape(len(u), -1)


def _prepared(subject: Subject, target: Target) -> tuple[JaxStep | HostStep, float]:
    require_curved(target)
    step = step_map(subject, target)
    require_stationary_law(step.sampler.claims)
    return step, subject.step_size(target)


@statement(
    tier="geometry",
    equation="s(x_n) has the distribution function of pi_h",
    targets=curved,
    cost=8.0,
    decides="law",
    samples=True,
)
def closed_form_marginals(case: Case, seed: int) -> Finding:
    """Kolmogorov-Smirnov distances of the marginals whose distribution function is known in closed form.

    With u = F(s(x)) uniform under the target, the law of u after n steps has the density 1 + sum_l a_l P_l(2 u - 1),
    a_l = (2 l + 1) (E P_l(2 u - 1) after n steps - 0), from the exact discrete law; what it differs by from the uniform
    one, which vanishes as h -> 0, is all that is granted. An exact kernel is granted nothing.
    """
    step, h = _prepared(case.subject, case.target)
    claims, temperature = step.sampler.claims, step.sampler.claims.temperature
    law_target = at_temperature(case.target, temperature)
    if not law_target.cdfs:
        raise OutOfReach("no distribution function is known")
    levels, names = _levels(law_target), tuple(law_target.cdfs)
    law = None if ExactLaw in claims else _known(step, h)
    if ExactLaw not in claims and law is None:
        labels = [f"P_{j}(level of {name})" for name in names for j in range(1, EXTRAPOLATED + 1)]
        what = Statistics(
            lambda ends: _legendre(levels(ends.position), EXTRAPOLATED),
            np.zeros(len(labels)),
            labels,
            LIMIT,
            lambda outcome: True,
        )
        return limit_of_chains(case.subject, case.target, seed, step, order_of(claims), statistics=what)
    change, error = np.zeros((len(names), LEGENDRE)), 0.0
    if law is not None and law.shift is not None:
        change = law.shift(lambda x: _legendre(levels(x), LEGENDRE)).reshape(len(names), LEGENDRE)
        # the last two terms stand for what is left out of the series
        error = float(np.abs(change[:, -2:]).sum(axis=1).max()) + law.cdf_error

    def corrected(u: np.ndarray, row: np.ndarray) -> np.ndarray:
        # the integral of P_l(2 s - 1) up to u is (P_(l+1) - P_(l-1))(2 u - 1) / (2 (2 l + 1))
        p = np.polynomial.legendre.legvander(2 * u - 1, LEGENDRE + 1)
        return np.clip(u + (p[:, 2:] - p[:, :-2]) @ row / 2, 0.0, 1.0)

    count = chains_for(step)
    source = law.source if law is not None else "an exact kernel leaves the target invariant"
    grid = np.linspace(0, 1, 201)
    granted = max(float(np.abs(corrected(grid, row) - grid).max()) for row in change)

    def run(stage: int, n: int) -> Sequence[Outcome]:
        x = sample(step, h, NUM_STEPS, seed, stage, n)[1].position
        if not np.isfinite(x).all():
            return [not_finite("end points that are not finite", n, "KS distance")]
        u = levels(x)
        return [ks_test(corrected(u[:, i], change[i]), name=name, allowance=error) for i, name in enumerate(names)]

    return decide_statistically(
        run,
        first_n=count,
        promised=Sensitivity(promise(DISTANCE, count) + min(error, DISTANCE)),
        allowance_source=source,
        reason=lambda o: (
            f"{o.name}: KS distance {o.effect:.3g} after {NUM_STEPS} steps of size {h:.4g} ({source}; "
            f"granted {granted:.2g})"
        ),
        steps=NUM_STEPS,
        step_size=h,
        detail={"granted": granted, "chains": count},
    )


@statement(
    tier="geometry",
    equation="E |v|^2 -> dim T as h -> 0",
    targets=curved,
    cost=8.0,
    decides="dynamics",
    samples=True,
)
def intrinsic_dimension(case: Case, seed: int) -> Finding:
    """E |v|^2 = m T with m the intrinsic dimension of the manifold, in the limit h -> 0 of independent chains."""
    step, _ = _prepared(case.subject, case.target)
    if not has_velocity(step):
        raise NotApplicable("no velocity among the variables")
    d, size = case.target.size, case.target.manifold.dim * step.sampler.claims.temperature
    energy = lambda ends: np.sum(ends.variable[:, d : 2 * d] ** 2, axis=1, keepdims=True) / size
    seen = ENERGY * np.sqrt(2 / case.target.manifold.dim)  # |v|^2 / (m T) has the variance 2 / m
    what = Statistics(energy, np.ones(1), ["|v|^2 / (m T)"], float(seen), lambda outcome: True)
    return limit_of_chains(case.subject, case.target, seed, step, order_of(step.sampler.claims), statistics=what)


def stein_operator(target: Target, temperature: float) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """(x (d,), v (d,)) -> A k_v(x) = Laplace-Beltrami k_v + <grad log p, grad k_v>, k_v(x) = (1 + |x - v|^2)^(-1/2).

    Its mean under p = exp(-U / T) (Hausdorff) is zero on a manifold without boundary, by Stokes' theorem. With P the
    tangent projection and H the mean curvature, Laplace-Beltrami f = tr(P Hessian f) + <H, grad f>.

    Source: liu2018riemannian, theorem 2 (the functional gradient, of which this is the integrand); xu2020stein for
    discrepancies with it.
    """
    manifold = target.manifold
    ravel, unravel = target.ravel, target.unravel
    score = jax.grad(lambda x: -target.flat_potential(x) / temperature)

    def operator(x, v):
        point = unravel(x)
        project = lambda u: ravel(manifold.tangent(point, unravel(u)))
        kernel = lambda y: 1 / jnp.sqrt(1 + jnp.sum((y - v) ** 2))
        gradient = jax.grad(kernel)
        second = lambda e: jax.jvp(gradient, (x,), (project(e),))[1]
        basis = jnp.eye(x.size, dtype=x.dtype)
        laplacian = jnp.sum(jax.vmap(second)(basis) * basis) + gradient(x) @ ravel(manifold.mean_curvature(point))
        return laplacian + project(score(x)) @ gradient(x)

    return operator


@lru_cache(maxsize=16)
def stein_features(target: Target, temperature: float) -> Callable[[np.ndarray], np.ndarray]:
    """Positions (n, d) -> A k_v(x) / sqrt(J) at J random locations v of the manifold, (n, J)."""
    keys = jax.random.split(jax.random.key(target.size), LOCATIONS)
    locations = jax.vmap(lambda k: target.ravel(target.manifold.random(k)))(keys)
    every = jax.jit(jax.vmap(jax.vmap(stein_operator(target, temperature), (None, 0)), (0, None)))
    return lambda x: np.asarray(every(jnp.asarray(x), locations)) / np.sqrt(LOCATIONS)


@statement(
    tier="geometry",
    equation="E [Laplace-Beltrami k(x_n, v) + <grad log p, grad k(x_n, v)>] = 0 at the target",
    targets=curved,
    cost=6.0,
    decides="dynamics",
    samples=True,
    once=True,
)
def riemannian_stein_discrepancy(case: Case, seed: int) -> Finding:
    """E A k_v(x_n) = 0 at a few locations v, A the Stein operator of the target on its manifold; never alone.

    The inverse multiquadric kernel at finitely many locations, as `kernel_stein_discrepancy`; what the exact discrete
    law leaves of it is granted, and where that law is not known the limit h -> 0 is taken.
    """
    step, h = _prepared(case.subject, case.target)
    claims, d = step.sampler.claims, case.target.size
    if case.target.manifold.dim == d or case.target.manifold.has_boundary:
        raise OutOfReach("a boundary, where Stein's identity has a boundary term")
    features = stein_features(case.target, claims.temperature)
    law = _known(step, h)
    exact = draw_variables(step, np.random.default_rng(stage_seed(seed, 99, 1)), 1024)[:, :d]
    if law is None and ExactLaw not in claims:
        labels = [f"A k at location {i}" for i in range(LOCATIONS)]
        spread = features(exact).std(axis=0)
        scaled = lambda ends: features(ends.position) / spread
        what = Statistics(scaled, np.zeros(LOCATIONS), labels, 2 * LIMIT, lambda outcome: True)
        return limit_of_chains(case.subject, case.target, seed, step, order_of(claims), statistics=what)
    allowance = 0.0
    if law is not None and law.shift is not None:
        allowance = float(np.linalg.norm(law.shift(features))) + law.error
    # the operator holds the score, which is large where the law is narrow
    _, covariance = moments_of(features, exact, block=1024)
    null = norm_test("", "", np.zeros(LOCATIONS), covariance, 1 / STEIN_CHAINS, STEIN_CHAINS, allowance)
    seen = detectable([null], ALPHA, POWER, STAGES)
    if seen > DISCREPANCY + allowance:
        raise OutOfReach(f"the score is large: {STEIN_CHAINS:,} chains would see a discrepancy of {seen:.2g} only")
    count = chains_for(step, STEIN_CHAINS)

    def run(stage: int, n: int) -> Sequence[Outcome]:
        x = sample(step, h, NUM_STEPS, seed, stage, n)[1].position
        if not np.isfinite(x).all():
            return [not_finite("end points that are not finite", n, "Stein discrepancy")]
        mean, covariance = moments_of(features, x, block=1 << 14)
        return [norm_test("Stein discrepancy", "Stein discrepancy", mean, covariance, 1 / n, n, allowance)]

    return decide_statistically(
        run,
        first_n=count,
        promised=Sensitivity(promise(DISCREPANCY, count, STEIN_CHAINS) + allowance),
        allowance_source="what the exact discrete law leaves of it" if law is not None else "an exact kernel",
        reason=lambda o: f"Riemannian Stein discrepancy {o.effect:.3g}, granted {allowance:.2g}",
        steps=NUM_STEPS,
        step_size=h,
        detail={"granted": allowance, "chains": count},
    )

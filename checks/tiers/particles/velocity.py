"""The velocity field of a particle method as a function of weighted particles: fixed points, symmetries, rates.

A quadrature rule for a law q is a set of weighted particles that represents q to round-off, so that the mean-field
velocity under q is computed, not estimated. A particle without weight is moved by the others and does not move them: it
is a point at which the field is looked at.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, Inconclusive, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import PARTICLES
from sgmcmc_verification.checks.core.selection import everywhere, last
from sgmcmc_verification.checks.core.start_position import start_position
from sgmcmc_verification.checks.end_points.error_rates import (
    Sensitivity,
    current_fraction,
    decide_statistically,
    stage_seed,
)
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import (
    AdaGradSteps,
    BalancedVelocity,
    DensityEstimate,
    KernelWidth,
    ParticleVelocity,
    RiemannianVelocity,
    SteinVelocity,
)
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.samplers.particles.common import flatten
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel
from sgmcmc_verification.targets.numerics.spherical import circle_rule
from sgmcmc_verification.targets.target import Target

EPS = float(np.finfo(float).eps)
RULES = {1: 128, 2: 64}
"""Nodes in each direction of a flat space, by its dimension."""
SPHERE, CIRCLES, FRAMES = 32, 48, 24
"""Nodes in each direction of a sphere, of a product of circles and of the frames V_2(R^3)."""
CHUNK = 512
"""Nodes that are looked at together."""
PLACES = 5
"""Places without weight at which the field is looked at."""
IDENTITY = 1e-12
"""Largest mean-field velocity at the target, relative to that without a gradient."""
REPLICATES = 4000
"""Sets of particles of the first stage of `particle_rate`."""
COUNTS = (4, 64)
"""Numbers of particles whose velocities are compared there."""
RATE = 0.2
"""Promised there: a relative error of the mean square velocity."""


def velocity_of(sampler: Sampler) -> Callable[..., jax.Array]:
    """The claimed velocity of weighted particles. Raises NotApplicable."""
    velocity = sampler.claims.get(ParticleVelocity)
    if velocity is None:
        raise NotApplicable("claims no ParticleVelocity")
    return velocity.field


@lru_cache(maxsize=16)
def field(subject: Subject, target: Target) -> Callable[..., np.ndarray]:
    """(particles (M, n), gradients (M, d), weights (M,)) -> the velocity (M, n), compiled."""
    run = jax.jit(velocity_of(subject.sampler(target)))
    return lambda *arguments: np.asarray(run(*map(jnp.asarray, arguments)))


def gradient_of(row: Row, target: Target) -> Callable[[jax.Array], jax.Array]:
    """Flat position (d,) -> the gradient (d,) of the estimator of a row, which is an exact one."""
    estimator, key = row.estimator(target), jax.random.key(0)

    def gradient(x):
        position = target.unravel(x)
        return target.ravel(estimator.estimate(key, estimator.init(key, position), position)[0].gradient)

    return gradient


@lru_cache(maxsize=64)
def gradients_of(row: Row, target: Target) -> Callable[[np.ndarray], np.ndarray]:
    """`gradient_of` at (M, d), compiled."""
    run = jax.jit(jax.vmap(gradient_of(row, target)))
    return lambda x: np.asarray(run(jnp.asarray(x)))


def nodes_of(target: Target) -> int:
    """Nodes in each direction of a rule that resolves the target and the kernels of the rows."""
    if target.manifold.dim < target.size:
        if isinstance(target.manifold, Stiefel):
            return FRAMES
        return CIRCLES if isinstance(target.manifold, ProductOfSpheres) else SPHERE
    if target.size not in RULES:
        raise OutOfReach(f"a rule in {target.size} dimensions has too many nodes")
    return RULES[target.size]


def rule_of(target: Target) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    """`Target.quadrature`; on a product of circles equidistant angles, which converge as fast. Raises NotApplicable."""
    manifold = target.manifold
    if target.quadrature is not None:
        return target.quadrature
    if not (isinstance(manifold, ProductOfSpheres) and manifold.n == 2):
        raise OutOfReach("no quadrature rule for the target is known")

    def angles(n):
        _, circle = circle_rule(n)
        points = np.array([np.concatenate(rows) for rows in itertools.product(circle, repeat=manifold.count)])
        energy = np.asarray(jax.vmap(target.flat_potential)(jnp.asarray(points)))
        weights = np.exp(energy.min() - energy)
        return points, weights / weights.sum()

    return angles


def places_in(target: Target) -> np.ndarray:
    """A few positions (k, d) between the nodes of a rule, in the bulk; the same ones always."""
    keys = jax.random.split(jax.random.key(target.size), PLACES)
    if target.manifold.dim < target.size:
        return np.asarray(jax.vmap(lambda k: target.ravel(target.manifold.random(k)))(keys))
    example = np.asarray(target.ravel(target.example))
    spread = 1 / np.sqrt(target.curvature)
    return example + spread * np.asarray(jax.vmap(lambda k: jax.random.normal(k, (target.size,)))(keys))


def _field_at_target(subject: Subject, target: Target, run: Callable[..., Any], count: int) -> tuple[float, float]:
    """(largest velocity of the places, that without a gradient) under a rule of `count` nodes in each direction.

    The velocity is a sum over the particles, so that it is summed over groups of them.
    """
    nodes, weights = rule_of(target)(count)
    places = places_in(target)
    nodes, weights = nodes[weights > 0], weights[weights > 0]
    fill = -len(nodes) % CHUNK
    nodes = np.concatenate([nodes, np.repeat(nodes[:1], fill, axis=0)])
    weights = np.concatenate([weights, np.zeros(fill)])
    slopes, there = gradients_of(subject.row, target)(nodes), gradients_of(subject.row, target)(places)
    if not (np.isfinite(slopes).all() and np.isfinite(there).all()):
        raise OutOfReach("the gradient is infinite at a node")
    total = np.zeros((2, *places.shape))
    for start in range(0, len(nodes), CHUNK):
        part = slice(start, start + CHUNK)
        points = jnp.asarray(np.concatenate([nodes[part], places]))
        masses = jnp.asarray(np.concatenate([weights[part], np.zeros(PLACES)]))
        g = np.concatenate([slopes[part], there])
        for i, gradients in enumerate((g, np.zeros_like(g))):
            total[i] += np.asarray(run(points, jnp.asarray(gradients), masses))[-PLACES:]
    sizes = np.linalg.norm(total, axis=2).max(axis=1)
    return float(sizes[0]), float(sizes[1])


@statement(
    tier="law",
    equation="E_p xi(x, y) = 0 for every y, xi(x, y) the velocity that a particle at x gives one at y",
    targets=everywhere,
    cost=1.5,
    decides="law",
    meets=lambda target: (PARTICLES,),
)
def weighted_fixed_point(case: Case, claim: ParticleVelocity, estimate: DensityEstimate | None) -> Finding:
    """With the weights of a quadrature rule for the target nothing moves: Stein's identity, to round-off.

    Looked at in a few places between the nodes, which have no weight. The rule is as good as its change from a coarser
    one. Where the row has a rule for the kernel a fixed one takes its place: the identity holds for every kernel. One
    that is not declared has to be fixed, which is seen by the velocity of two groups of particles and of both.
    """
    sampler = case.subject.sampler(case.target)
    if estimate is not None:
        raise NotApplicable("an estimate of the density smooths it: the target is a fixed point in a limit only")
    known = KernelWidth in sampler.claims
    n, run = nodes_of(case.target), jax.jit(velocity_of(with_kernel(sampler) if known else sampler))
    if not known:
        _require_sum(case.subject, case.target, run)
    coarse, _ = _field_at_target(case.subject, case.target, run, (4 * n) // 5)
    fine, scale = _field_at_target(case.subject, case.target, run, n)
    effect, error = fine / scale, abs(coarse - fine) / scale
    if error > max(1e-6, 1e-2 * effect):
        refusal = Inconclusive if known else OutOfReach  # a kernel of which nothing is known may have any peak
        raise refusal(f"the rule is not fine enough: {coarse / scale:.2g} and {effect:.2g} with {n} nodes")
    allowance = IDENTITY + error
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, f"{IDENTITY:g} for round-off, and the coarser rule"),
        reason=f"velocity {effect:.3g} of that of the repulsion alone, with {n} nodes in each direction",
        statistic="largest velocity",
        unit="relative to the repulsion",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-5,
        measurements={"coarse": coarse / scale},
    )


def _require_sum(subject: Subject, target: Target, run: Callable[..., Any]) -> None:
    """Raise OutOfReach unless what particles give others does not depend on a third, so that groups can be summed."""
    places = places_in(target)
    given = [target.manifold.is_linear * shift / np.sqrt(target.curvature) + places[::-1] for shift in (0.9, -1.7)]
    gradients = gradients_of(subject.row, target)

    def at_places(groups: list[np.ndarray]) -> np.ndarray:
        points = np.concatenate([*groups, places])
        masses = np.where(np.arange(len(points)) < len(points) - len(places), 0.1, 0.0)
        return np.asarray(run(jnp.asarray(points), gradients(points), jnp.asarray(masses)))[-len(places) :]

    both, first, second = at_places(given), at_places(given[:1]), at_places(given[1:])
    if not np.allclose(both, first + second, rtol=0, atol=1e-9 * np.abs(both).max()):
        raise OutOfReach("a kernel that depends on the particles, and whose width is not declared")


def six_particles(subject: Subject, target: Target) -> tuple[Any, Any, np.ndarray]:
    """(sampler, a state of six particles, their z (6, n))."""
    sampler = subject.sampler(target)
    state = sampler.init(jax.random.key(0), start_position(sampler, target), subject.estimator(target))
    return sampler, state, np.asarray(flatten(sampler.unpack(state)))


WEIGHTS = np.array([0.05, 0.1, 0.15, 0.2, 0.22, 0.28])
"""Of six particles, all different."""
SCALED = 4
"""Steps whose running mean is followed: from the third on it is not that of the last two values alone."""


@statement(
    tier="law",
    equation="sum_j w_j v_j = 0 without a gradient",
    targets=last(everywhere),
    cost=0.5,
    decides="conduct",
)
def repulsion_balance(case: Case, claim: BalancedVelocity) -> Finding:
    """Without a gradient the weighted velocities sum to zero: what pushes one particle pushes another one back."""
    _, _, z = six_particles(case.subject, case.target)
    v = field(case.subject, case.target)(z, np.zeros((len(z), case.target.size)), WEIGHTS)
    size = float(np.abs(WEIGHTS @ np.abs(v)).max())
    effect = float(np.abs(WEIGHTS @ v).max()) / size if size > 0 else np.inf
    allowance = 1e3 * EPS
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off"),
        reason=f"the sum of the velocities is {effect:.3g} of the sum of their sizes",
        statistic="sum of the velocities",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-8,
    )


@statement(
    tier="law",
    equation="step(P z) = P step(z) for permutations P of the particles",
    targets=last(everywhere),
    cost=1.0,
    decides="conduct",
)
def permutation_equivariance(case: Case, claim: ParticleVelocity) -> Finding:
    """The step of permuted particles is the permuted step, up to the order of the sums."""
    sampler, state, z = six_particles(case.subject, case.target)
    estimator, h = case.subject.estimator(case.target), case.step_size
    order = np.array([3, 0, 5, 1, 4, 2])
    variable = sampler.unpack(state)
    permuted = jax.tree.map(lambda leaf: leaf[order], variable)

    @jax.jit
    def after(start):
        return flatten(sampler.unpack(sampler.step(jax.random.key(1), start, h, estimator)))

    # both by `pack`, so that a rule for the bandwidth starts anew in both
    ends = [np.asarray(after(sampler.pack(jax.random.key(0), start, estimator))) for start in (variable, permuted)]
    effect = float(np.abs(ends[0][order] - ends[1]).max() / np.abs(ends[0] - z).max())
    allowance = 1e4 * EPS * (1 + float(np.abs(z).max() / np.abs(ends[0] - z).max()))
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off, and cancellation of x' - x"),
        reason=f"a permutation changes the step by {effect:.3g} of its size",
        statistic="difference of the steps",
        unit="relative to a step",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
        step_size=h,
    )


@statement(
    tier="law",
    equation="d step(z; h) / dh = v(z) at h = 0, with weights 1/M; "
    "with AdaGrad step(z; h) - z = h v / (10^-6 + sqrt(s))",
    targets=last(everywhere),
    cost=1.0,
    decides="dynamics",
)
def step_along_velocity(
    case: Case, claim: ParticleVelocity, scaling: AdaGradSteps | None, width: KernelWidth | None
) -> Finding:
    """The step of size 0 is none, and its derivative with respect to its size is the velocity, with weights 1/M.

    The other checks of velocities give the weights themselves; this one holds the step to them, its sign included. With
    AdaGrad it holds some steps to the scaled velocity, whose running mean is NumPy's.
    """
    sampler, state, z = six_particles(case.subject, case.target)
    if scaling is not None:
        if width is not None and width.value == "he":  # a rule that depends on the steps before
            raise NotApplicable("the size of the velocity is scaled away")
        return _scaled_steps(case.subject, case.target, sampler, state)
    estimator = case.subject.estimator(case.target)

    @jax.jit
    def derivative(state):
        end = lambda h: flatten(sampler.unpack(sampler.step(jax.random.key(1), state, h, estimator)))
        return jax.jvp(end, (0.0,), (1.0,))

    rest, found = map(np.asarray, derivative(state))
    x = np.asarray(flatten(sampler.position(state)))
    expected = field(case.subject, case.target)(
        z, gradients_of(case.subject.row, case.target)(x), np.full(len(z), 1 / len(z))
    )
    stays = float(np.abs(rest - z).max() / np.abs(z).max())
    effect = max(stays, float(np.abs(found - expected).max() / np.abs(expected).max()))
    allowance = 1e3 * EPS
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off"),
        reason=f"largest difference {effect:.3g} of the largest velocity, or position; {stays:.3g} in a step of size 0",
        statistic="derivative of the step less the velocity",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-8,
    )


def _scaled_steps(subject: Subject, target: Target, sampler: Any, state: Any) -> Finding:
    """x' - x = h v / (10^-6 + sqrt(s)), s <- 0.9 s + 0.1 v^2 from s = v^2, step by step from where the sampler is.

    Source: the released code of liu2016stein.
    """
    estimator, h = subject.estimator(target), subject.step_size(target)
    step = jax.jit(lambda state: sampler.step(jax.random.key(1), state, h, estimator))
    x, s, gap, condition = np.asarray(flatten(sampler.position(state))), None, 0.0, 0.0
    for _ in range(SCALED):
        v = field(subject, target)(x, gradients_of(subject.row, target)(x), np.full(len(x), 1 / len(x)))
        s = v**2 if s is None else 0.9 * s + 0.1 * v**2
        expected = h * v / (1e-6 + np.sqrt(s))
        state = step(state)
        new = np.asarray(flatten(sampler.position(state)))
        size = float(np.abs(expected).max())
        gap = max(gap, float(np.abs(new - x - expected).max()) / size)
        # the sums of a velocity cancel, and each coordinate of it is divided by its own size
        condition = max(condition, float(np.abs(x).max()) / size, float(np.abs(v).max() / np.abs(v).min()))
        x = new
    allowance = 1e3 * EPS * (1 + condition)
    return Finding(
        effect=gap,
        tolerance=Tolerance(allowance, "round-off, and cancellation of x' - x"),
        reason=f"one of {SCALED} steps is off its scaled velocity by {gap:.3g} of its size",
        statistic="step less the scaled velocity",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-8,
        step_size=h,
    )


def median_bandwidth(x: np.ndarray) -> float:
    """median |x_i - x_j|^2 / (2 log(M + 1)) over all pairs, diagonal included, for particles (M, d)."""
    return float(np.median(np.sum((x[:, None] - x[None]) ** 2, axis=-1)) / (2 * np.log(len(x) + 1)))


def kernel_of(
    claim: SteinVelocity | RiemannianVelocity, width: KernelWidth | None, x: np.ndarray
) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """The kernel k(x (d,), y (d,)) of a step from particles (M, d): what the option `bandwidth` says that it is,

        sum_m exp(-|x - y|^2 / (2 h_m)),

    h a number, several, or that of the median rule; for other rules and options what the sampler declares, whose code
    its velocity may share.
    """
    if width is None or width.option != "bandwidth" or width.value == "he":
        return claim.kernel(jnp.asarray(x))
    h = median_bandwidth(x) if width.value == "median" else width.value
    scales = jnp.asarray(np.atleast_1d(h), float)
    return lambda x, y: jnp.sum(jnp.exp(-jnp.sum((x - y) ** 2) / (2 * scales)))


@statement(
    tier="law",
    equation="v(y) = sum_i w_i [k(x_i, y) grad log p(x_i) + grad_x k(x_i, y)]",
    targets=last(everywhere),
    cost=1.0,
    decides="dynamics",
)
def kernel_velocity(case: Case, stein: SteinVelocity, width: KernelWidth | None) -> Finding:
    """The velocity of SVGD from its kernel by automatic differentiation, at six particles of unequal weights."""
    _, _, x = six_particles(case.subject, case.target)
    kernel = kernel_of(stein, width, x)
    slopes, w = gradients_of(case.subject.row, case.target)(x), jnp.asarray(WEIGHTS)

    def velocity(y):
        value, rise = jax.vmap(jax.value_and_grad(kernel), (0, None))(jnp.asarray(x), y)
        return w @ (rise - value[:, None] * slopes)

    expected = np.asarray(jax.jit(jax.vmap(velocity))(jnp.asarray(x)))
    found = field(case.subject, case.target)(x, slopes, WEIGHTS)
    effect = float(np.abs(found - expected).max() / np.abs(expected).max())
    allowance = 1e3 * EPS
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off"),
        reason=f"largest difference {effect:.3g} of the largest velocity",
        statistic="velocity less that of the declared kernel",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-8,
    )


FIXED = {"bandwidth": 0.7, "concentration": 1.3}
"""The width in the place of a rule for it."""


def with_kernel(sampler: Any) -> Any:
    """The sampler with a kernel that does not depend on the particles. Raises NotApplicable."""
    width = sampler.claims.get(KernelWidth)
    if width is None:
        raise NotApplicable("claims no KernelWidth")
    return width.given(FIXED[width.option]) if isinstance(width.value, str) else sampler


@lru_cache(maxsize=16)
def _speeds(subject: Subject, target: Target) -> tuple[float, Callable[[jax.Array], jax.Array]]:
    """(E_p |xi(x, y)|^2 by quadrature, particles (r, M, d) -> |v(y)|^2 (r,)) for a place y, compiled."""
    sampler = subject.sampler(target)
    velocity = velocity_of(with_kernel(sampler))
    gradient = gradient_of(subject.row, target)
    place = jnp.asarray(places_in(target)[0])

    def speed(x):
        z = jnp.concatenate([x, place[None]])
        w = jnp.concatenate([jnp.full(len(x), 1 / len(x)), jnp.zeros(1)])
        return jnp.sum(velocity(z, jax.vmap(gradient)(z), w)[-1] ** 2)

    speeds = jax.jit(jax.vmap(speed))
    nodes, weights = rule_of(target)(nodes_of(target))
    return float(weights @ np.asarray(speeds(jnp.asarray(nodes)[:, None]))), speeds


@statement(
    tier="convergence",
    equation="E |v(y)|^2 = E_p |xi(x, y)|^2 / M for M draws of the target",
    targets=last(everywhere),
    cost=3.0,
    decides="law",
    samples=True,
    once=True,
)
def particle_rate(case: Case, seed: int, claim: ParticleVelocity, estimate: DensityEstimate | None) -> Finding:
    """The velocity that M independent draws of the target give a place is of the size M^-1/2, with its exact constant.

        E |v(y)|^2 = (1/M) E_p |xi(x, y)|^2

    where xi(x, y) is the velocity that one particle at x gives a place y, because E_p xi(x, y) = 0. The right side is
    by quadrature, the left side the mean over many sets of draws, for two M.
    """
    if estimate is not None:
        raise NotApplicable("an estimate of the density is not linear in the particles")
    exact, speeds = _speeds(case.subject, case.target)
    if case.target.sample is None:
        raise NotApplicable("needs exact draws")
    draw = case.target.sample
    first = max(256, int(REPLICATES * current_fraction()))

    def run(stage: int, n: int) -> Sequence[Outcome]:
        outcomes = []
        for number, count in enumerate(COUNTS):
            values = []
            key = jax.random.fold_in(jax.random.key(stage_seed(seed, stage)), number)
            for start in range(0, n, 1 << 12):
                size = min(1 << 12, n - start)
                points = jax.vmap(case.target.ravel)(draw(jax.random.fold_in(key, start), size * count))
                values.append(count * np.asarray(speeds(points.reshape(size, count, -1))))
            name = f"M E|v|^2 of {count} particles"
            outcomes.append(mean_test(np.concatenate(values), exact, name=name, unit="relative", scale=exact))
        return outcomes

    return decide_statistically(
        run,
        first_n=first,
        promised=Sensitivity(RATE, chains=REPLICATES).of(first),
        allowance_source="E_p xi = 0",
        reason=lambda o: f"{o.name} is {o.measured:.6g}, expected {o.expected:.6g}",
        detail={"exact": exact},
    )

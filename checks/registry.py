"""Every check, one row each, in the order of the tiers; and what each costs."""

from collections.abc import Callable

from checks.core.candidate import Subject
from checks.core.check import Check
from checks.core.lookup import BadInput, closest, find_target
from checks.exact_laws.transfer_operator import transfer_operator
from checks.tiers.contract import interface
from checks.tiers.convergence.convergence import bad_start, kernel_stein_discrepancy, separated_modes
from checks.tiers.generator.drift_and_diffusion import generator_of_code
from checks.tiers.generator.proposal import acceptance_limit, finite_potential, proposal_generator
from checks.tiers.generator.published_diffusion import published_diffusion
from checks.tiers.geometry.constraints import geodesic_flow, noise_is_tangent, stays_on_the_manifold
from checks.tiers.geometry.manifold_law import (
    closed_form_marginals,
    intrinsic_dimension,
    kinetic_energy,
    manifold_limit,
    riemannian_stein_discrepancy,
)
from checks.tiers.invariance.end_points import (
    chains_move,
    end_point_anderson_darling,
    end_point_ks,
    end_point_mmd,
    end_point_moments,
)
from checks.tiers.invariance.float32 import float32_law
from checks.tiers.invariance.step_size_limit import step_size_limit
from checks.tiers.invariance.stream_independence import streams_independent
from checks.tiers.law.compensation import compensated_step
from checks.tiers.law.contour import contour_force, contour_weights
from checks.tiers.law.cycles import cycle_law
from checks.tiers.law.detailed_balance import detailed_balance
from checks.tiers.law.estimator_memory import estimator_recursion
from checks.tiers.law.gaussian import (
    gaussian_limit,
    gradient_noise_limit,
    minibatch_limit,
    stability,
    stationary_covariance,
)
from checks.tiers.law.preconditioner import preconditioner_by_definition
from checks.tiers.law.reflection import mirror_at_zero
from checks.tiers.law.replica_exchange import exchange_balance, exchange_rate
from checks.tiers.law.skew_balance import skew_detailed_balance
from checks.tiers.noise.gradient_noise import estimator_memory, gradient_noise_end_points, minibatch_end_points
from checks.tiers.order.cir_transition import finite_time_moments, laplace_of_step, reads_counts
from checks.tiers.order.symplecticity import exact_without_force, force_keeps_volume
from checks.tiers.order.weak_order import defect, local_weak_order
from checks.tiers.particles.bandwidth import density_estimate, median_rule
from checks.tiers.particles.coordinates import coordinate_invariance
from checks.tiers.particles.flows import divergence_of_flow, gaussian_flow
from checks.tiers.particles.mean_field import divergence_falls, mean_field_fixed_point
from checks.tiers.particles.velocity import (
    kernel_velocity,
    particle_rate,
    permutation_equivariance,
    repulsion_balance,
    step_along_velocity,
    weighted_fixed_point,
)
from checks.tiers.recipe.complete_recipe import autodiff_recipe, completeness, symbolic_recipe
from checks.tiers.workload.trial import JOINT, LAW, LIMIT, MEAN, kernel_of, run_trial
from samplers.interface.sampler import Claims, ParticleClaims
from targets.target import Target


def where(suits: Callable[[Target], bool]) -> Callable[[Subject], tuple[str, ...]]:
    """The targets of the row that suit a check."""
    return lambda subject: tuple(name for name in subject.row.targets if suits(find_target(name)))


def informative(subject: Subject) -> tuple[str, ...]:
    """The targets that the dearer checks run on.

    Sums over data repeat a law at a higher price, and a one-dimensional Gaussian shows nothing that a correlated one
    does not. Options other than the defaults meet the last target, which is not Gaussian where the row has such a
    one; the exact laws on Gaussians are cheap and run for all.
    """
    names = where(lambda target: target.terms is None)(subject) or subject.row.targets
    several = where(lambda target: target.gaussian is not None and target.size > 1)(subject)
    if several:
        names = tuple(n for n in names if n in several or find_target(n).gaussian is None)
    return names[-1:] if subject.options else names


def planar(subject: Subject) -> tuple[str, ...]:
    """`informative`; at default options also a target of two coordinates where all of the row have one.

    One coordinate hides what is wrong with a matrix.
    """
    law = [find_target(name) for name in subject.row.targets]
    line_only = all(target.size == 1 and target.manifold.name.startswith("euclidean") for target in law)
    return (*informative(subject), *PLANE) if line_only and not subject.options else informative(subject)


def of_kind(kind: str, targets: Callable[[Subject], tuple[str, ...]]) -> Callable[[Subject], tuple[str, ...]]:
    """`targets` for samplers of a kind; one target, on which the check says why it does not apply, for the others."""

    def choose(subject: Subject) -> tuple[str, ...]:
        first = subject.row.targets[:1]
        return targets(subject) if subject.sampler(find_target(first[0])).claims.kind == kind else first

    return choose


def last(targets: Callable[[Subject], tuple[str, ...]]) -> Callable[[Subject], tuple[str, ...]]:
    """The last one of `targets`."""
    return lambda subject: targets(subject)[-1:]


def gaussian(subject: Subject) -> tuple[str, ...]:
    """The Gaussian targets; those that are sums over data only where the row has no others."""
    names = where(lambda target: target.gaussian is not None)(subject)
    return tuple(n for n in names if find_target(n).terms is None) or names


def spread(subject: Subject) -> tuple[str, ...]:
    """The Gaussian targets; rows of any dimension also meet a spectrum of 1 to 100, at default options."""
    names, rows = gaussian(subject), subject.row.targets
    any_dimension = {"gaussian-1d-scaled", "gaussian-correlated-2d"} <= set(rows)
    return (*names, "gaussian-anisotropic") if any_dimension and not subject.options else names


def several(subject: Subject) -> tuple[str, ...]:
    """The Gaussian targets of the row, a correlated one last; all of its targets where there are none."""
    return gaussian(subject) or subject.row.targets


def curved(subject: Subject) -> tuple[str, ...]:
    """The targets that are not on R^n; one target, on which the check says why it does not apply, if there are none."""
    return where(lambda target: not target.manifold.name.startswith("euclidean"))(subject) or subject.row.targets[:1]


def counting(subject: Subject) -> tuple[str, ...]:
    """The targets of a host sampler that reads counts alone; none for others."""
    names = subject.row.targets
    return names if reads_counts(subject, find_target(names[0])) else ()


def on_trial(name: str) -> Callable[[Subject], tuple[str, ...]]:
    """The posteriors of a row of the tier `workload` on which its kernel has a trial for this check."""
    return lambda subject: tuple(
        n for n in subject.row.targets if name in kernel_of(subject, find_target(n)).trials(subject.row.step_size)
    )


def particles(
    suits: Callable[[ParticleClaims], bool], targets: Callable[[Subject], tuple[str, ...]]
) -> Callable[[Subject], tuple[str, ...]]:
    """`targets` for particle methods whose claims suit the check; none for other samplers."""

    def choose(subject: Subject) -> tuple[str, ...]:
        claims = subject.sampler(find_target(subject.row.targets[0])).claims.particles
        return targets(subject) if claims is not None and suits(claims) else ()

    return choose


def claiming(
    suits: Callable[[Claims], bool], targets: Callable[[Subject], tuple[str, ...]]
) -> Callable[[Subject], tuple[str, ...]]:
    """`targets` for samplers whose claims suit the check; none for others."""
    return lambda subject: (
        targets(subject) if suits(subject.sampler(find_target(subject.row.targets[0])).claims) else ()
    )


def averaging(subject: Subject) -> tuple[str, ...]:
    """The correlated Gaussian target for samplers with a preconditioner that averages over the steps."""
    learns = hasattr(subject.sampler(find_target(subject.row.targets[0])), "averages")
    return last(several)(subject) if learns else ()


PLANE = ("gaussian-correlated-2d",)
UNIFORM = ("uniform-s2",)
curved_only = where(lambda target: target.manifold.dim < target.size)
gaussian_line = where(lambda target: target.gaussian is not None and target.size == 1)
with_data = where(lambda target: target.gaussian is not None and target.terms is not None)
curved_line = where(lambda target: target.gaussian is None and target.size == 1 and target.interval is not None)
line = where(lambda target: target.size == 1 and target.interval is not None)
everywhere = where(lambda target: True)

CHECKS: tuple[Check, ...] = (
    *interface.CHECKS,
    Check(
        "autodiff_recipe",
        "recipe",
        "Q = -Q^T, D >= 0, f = -(D + Q) grad H + Gamma, div J = J . grad H",
        autodiff_recipe,
        informative,
    ),
    Check(
        "symbolic_recipe",
        "recipe",
        "f = -(D + Q) grad H + Gamma and div J = J . grad H, proved",
        symbolic_recipe,
        informative,
        once=True,
    ),
    Check(
        "completeness",
        "recipe",
        "the Q that (f, D, H) determine is the declared one",
        completeness,
        last(informative),
        once=True,
    ),
    Check(
        "generator_of_code",
        "generator",
        "(E z' - z) / h -> f and Cov(z') / h -> 2 D as h -> 0",
        generator_of_code,
        informative,
    ),
    Check(
        "proposal_generator",
        "generator",
        "(E y - x) / t -> f and Cov(y) / t -> 2 D for the proposal y of a Metropolis kernel, t = h or (L h)^2 / 2",
        proposal_generator,
        claiming(lambda claims: claims.kind == "exact", planar),
    ),
    Check(
        "acceptance_limit",
        "generator",
        "P(accepted | x, xi) -> 1 as h -> 0",
        acceptance_limit,
        claiming(lambda claims: claims.kind == "exact", planar),
    ),
    Check(
        "published_diffusion",
        "generator",
        "Cov(z') / h -> 2 D as h -> 0 with the D of the method's paper",
        published_diffusion,
        lambda subject: informative(subject) if subject.row.diffusion else (),
    ),
    Check(
        "local_weak_order",
        "order",
        "E phi(z_h) = sum_{j <= p} h^j L^j phi / j! + O(h^(p+1))",
        local_weak_order,
        informative,
    ),
    Check(
        "defect", "order", "E_{z ~ pi} f(z_h) - pi(f) = c_1 h + c_2 h^2 + .., c_1 = .. = c_p = 0", defect, informative
    ),
    Check(
        "force_keeps_volume",
        "order",
        "|det dz' / dz| does not depend on the Hessian of U",
        force_keeps_volume,
        claiming(lambda claims: claims.shears, last(informative)),
    ),
    Check(
        "laplace_of_step",
        "order",
        "E exp(-s theta') = (1 + s c)^-a exp(-s theta e^-h / (1 + s c)), c = 1 - e^-h",
        laplace_of_step,
        counting,
        once=True,
    ),
    Check(
        "finite_time_moments",
        "order",
        "V' = e^-2h V + c^2 Var a^ + 2 E c e^-h + c^2 E a^ with minibatches, and E' = e^-h E + c E a^",
        finite_time_moments,
        counting,
        once=True,
    ),
    Check(
        "exact_without_force",
        "law",
        "z' = e^(J h) z + N(0, 2 int_0^h e^(J s) D e^(J^T s) ds) for U = 0, at every step size",
        exact_without_force,
        claiming(lambda claims: claims.free_motion, last(several)),
    ),
    Check(
        "stationary_covariance",
        "law",
        "A S A^T + N = S has the published closed form as its solution",
        stationary_covariance,
        gaussian_line,
    ),
    Check("gaussian_limit", "law", "pi_h -> N(m, T P^-1) as h -> 0, at the claimed order", gaussian_limit, spread),
    Check("stability", "law", "the spectral radius of the step is below 1 at the usual step size", stability, gaussian),
    Check(
        "gradient_noise_limit",
        "law",
        "pi_h -> pi as h -> 0 with gradient noise N(0, V), which is present",
        gradient_noise_limit,
        gaussian,
    ),
    Check(
        "compensated_step",
        "law",
        "E z' and Cov z' with gradient noise of reported covariance are those of exact gradients",
        compensated_step,
        last(several),
    ),
    Check(
        "preconditioner_by_definition",
        "law",
        "E [theta_t - theta_(t-1)] = -M_t g_t and Cov = M_t (2 B / h) M_t, M_t from all gradients so far; 2 h T G_t",
        preconditioner_by_definition,
        averaging,
    ),
    Check(
        "minibatch_limit",
        "law",
        "pi_h -> pi as h -> 0 with all minibatches enumerated",
        minibatch_limit,
        with_data,
        once=True,
    ),
    Check(
        "estimator_recursion",
        "law",
        "E z_n and Cov z_n are those of grad U_0 + (N/n) sum_S (grad U_i(x) - grad U_i(phi_i)) + sum_i grad U_i(phi_i)",
        estimator_recursion,
        with_data,
        once=True,
    ),
    Check(
        "cycle_law",
        "law",
        "m' = A m + c and S' = A S A^T + [h <= h_0] N(h) through the stages of a cyclical step size",
        cycle_law,
        claiming(lambda claims: claims.cycle is not None, gaussian),
    ),
    Check(
        "mirror_at_zero",
        "law",
        "theta' = |theta'_free|, and r' = -r'_free where theta'_free < 0",
        mirror_at_zero,
        claiming(lambda claims: "positive" in claims.spaces, everywhere),
        once=True,
    ),
    Check(
        "finite_potential",
        "law",
        "a(x, y) = 0 where U(y) is infinite or not a number",
        finite_potential,
        claiming(lambda claims: claims.kind == "exact", last(informative)),
        once=True,
    ),
    Check("detailed_balance", "law", "pi(x) k(x, y) = pi(y) k(y, x)", detailed_balance, of_kind("exact", planar)),
    Check(
        "contour_force",
        "law",
        "theta' - theta = -h tau grad [U / tau + zeta log Psi(U)] + N(0, 2 h tau)",
        contour_force,
        claiming(lambda claims: claims.contour is not None, everywhere),
    ),
    Check(
        "contour_weights",
        "law",
        "E [w' - w] = omega E w_J^zeta (e_J - w) under the flattened law, 0 where w_i ~ E w_J^zeta [J = i]",
        contour_weights,
        claiming(lambda claims: claims.contour is not None, everywhere),
    ),
    Check(
        "skew_detailed_balance",
        "law",
        "pi(z) k(z, z') = pi(R z') k(R z', R z), stochastic gradients included",
        skew_detailed_balance,
        claiming(lambda claims: claims.reversal is not None, everywhere),
    ),
    Check(
        "exchange_balance",
        "law",
        "pi(x, y) a(x, y) = pi(y, x) a(y, x) for the chance a of an exchange",
        exchange_balance,
        claiming(lambda claims: claims.exchange is not None, everywhere),
    ),
    Check(
        "exchange_rate",
        "law",
        "a(x, y) = min(1, r h) E min(1, S)",
        exchange_rate,
        claiming(lambda claims: claims.exchange is not None, everywhere),
    ),
    Check(
        "transfer_operator",
        "law",
        "pi_h P_h = pi_h has a solution that tends to pi as h -> 0",
        transfer_operator,
        last(curved_line),
        once=True,
    ),
    Check(
        "manifold_limit",
        "law",
        "pi_h P_h = pi_h on the tangent bundle has a solution that tends to pi as h -> 0",
        manifold_limit,
        curved_only,
        once=True,
    ),
    Check(
        "kinetic_energy",
        "law",
        "E |v|^2 / (m T) has its closed form at every step size for U = 0",
        kinetic_energy,
        lambda subject: UNIFORM if curved_only(subject) else (),
        once=True,
    ),
    Check(
        "mean_field_fixed_point",
        "law",
        "E_p[k grad log p + grad k] = 0 at the target",
        mean_field_fixed_point,
        of_kind("particle", line),
    ),
    Check(
        "divergence_falls",
        "law",
        "d KL(q || p) / dt = E_q[v U' - v'] < 0 away from the target",
        divergence_falls,
        of_kind("particle", line),
    ),
    Check(
        "weighted_fixed_point",
        "law",
        "E_p xi(x, y) = 0 for every y, xi(x, y) the velocity that a particle at x gives one at y",
        weighted_fixed_point,
        particles(lambda claims: not claims.smoothed, everywhere),
    ),
    Check(
        "kernel_velocity",
        "law",
        "v(y) = sum_i w_i [k(x_i, y) grad log p(x_i) + grad_x k(x_i, y)]",
        kernel_velocity,
        particles(lambda claims: claims.balanced and not claims.smoothed, last(everywhere)),
    ),
    Check(
        "coordinate_invariance",
        "law",
        "X = G^-1 grad f, f = sum_i w_i (1 / p) div(p G^-1 grad k), the same in every chart",
        coordinate_invariance,
        particles(lambda claims: not claims.smoothed and not claims.balanced, everywhere),
    ),
    Check(
        "repulsion_balance",
        "law",
        "sum_j w_j v_j = 0 without a gradient",
        repulsion_balance,
        particles(lambda claims: claims.balanced, last(everywhere)),
    ),
    Check(
        "step_along_velocity",
        "law",
        "d step(z; h) / dh = v(z) at h = 0, with weights 1/M; with AdaGrad step(z; h) - z = h v / (10^-6 + sqrt(s))",
        step_along_velocity,
        particles(lambda claims: True, last(everywhere)),
    ),
    Check(
        "median_rule",
        "law",
        "h = median |x_i - x_j|^2 / (2 log(M + 1)), kappa = log(M - 1) / (p - median tr x_i^T x_j)",
        median_rule,
        particles(lambda claims: True, last(everywhere)),
        once=True,
    ),
    Check(
        "density_estimate",
        "law",
        "v = D (grad log p - grad log q^) + Q grad log p + div Q, or (D + Q) grad log (p / q^), q^ from its definition",
        density_estimate,
        particles(lambda claims: claims.smoothed, last(everywhere)),
    ),
    Check(
        "permutation_equivariance",
        "law",
        "step(P z) = P step(z) for permutations P of the particles",
        permutation_equivariance,
        particles(lambda claims: True, last(everywhere)),
    ),
    Check(
        "gaussian_flow",
        "law",
        "dS/dt = -(D + Q) P S - S P (D - Q) + 2 D as the bandwidth goes to 0",
        gaussian_flow,
        particles(lambda claims: claims.flow is not None, gaussian),
    ),
    Check(
        "divergence_of_flow",
        "law",
        "d KL(q || p) / dt = -E_q [grad log(p / q) . D grad log(p / q)] as the bandwidth goes to 0",
        divergence_of_flow,
        particles(lambda claims: claims.flow is not None, everywhere),
    ),
    Check(
        "end_point_moments",
        "invariance",
        "E f(z_n) = pi_h(f) for means, second to fourth moments and waves f",
        end_point_moments,
        informative,
    ),
    Check("end_point_ks", "invariance", "a . z_n has the distribution function of pi_h", end_point_ks, informative),
    Check(
        "end_point_anderson_darling",
        "invariance",
        "a . z_n has the distribution function of pi_h, tails included",
        end_point_anderson_darling,
        informative,
        once=True,
    ),
    Check("end_point_mmd", "invariance", "E exp(i w . z_n) is that of the joint law pi_h", end_point_mmd, informative),
    Check(
        "step_size_limit",
        "invariance",
        "E f(z_n) -> pi(f) as h -> 0 at fixed time and everything else fixed",
        step_size_limit,
        informative,
    ),
    Check(
        "streams_independent",
        "invariance",
        "noise of chains, seeds, keys, steps and leaves is not correlated",
        streams_independent,
        interface.structured_targets,
        once=True,
    ),
    Check(
        "float32_law",
        "invariance",
        "E f(z_n) in single precision = E f(z_n) in double precision, up to round-off",
        float32_law,
        last(several),
        once=True,
    ),
    Check("chains_move", "invariance", "E (x_n - x_0)^2 > 0", chains_move, last(informative)),
    Check(
        "gradient_noise_end_points",
        "noise",
        "E f(z_n) = pi_h(f) with gradient noise N(0, V), which is present",
        gradient_noise_end_points,
        last(several),
        once=True,
    ),
    Check(
        "minibatch_end_points",
        "noise",
        "E z_n and E z_n z_n^T are those of the recursion over all minibatches",
        minibatch_end_points,
        with_data,
        once=True,
    ),
    Check(
        "estimator_memory",
        "noise",
        "E z_n and E z_n z_n^T are those of the recursion of position and table",
        estimator_memory,
        with_data,
        once=True,
    ),
    Check(
        "stays_on_the_manifold",
        "geometry",
        "c(x_n) = 0 and P(x_n) v_n = v_n up to round-off",
        stays_on_the_manifold,
        curved,
    ),
    Check(
        "geodesic_flow",
        "geometry",
        "P x'' = 0, |x'| constant, and the flow runs back",
        geodesic_flow,
        curved,
        once=True,
    ),
    Check(
        "noise_is_tangent",
        "geometry",
        "(I - P) D = 0 and rank D = dim as h -> 0",
        noise_is_tangent,
        curved,
        once=True,
    ),
    Check(
        "intrinsic_dimension",
        "geometry",
        "E |v|^2 -> dim T as h -> 0",
        intrinsic_dimension,
        curved,
    ),
    Check(
        "closed_form_marginals",
        "geometry",
        "s(x_n) has the distribution function of pi_h",
        closed_form_marginals,
        curved,
    ),
    Check(
        "riemannian_stein_discrepancy",
        "geometry",
        "E [Laplace-Beltrami k(x_n, v) + <grad log p, grad k(x_n, v)>] = 0 at the target",
        riemannian_stein_discrepancy,
        curved,
        once=True,
    ),
    Check(
        "bad_start",
        "convergence",
        "E f(z_n) from a point = E f(Z_T) of the declared dynamics + O(h^q)",
        bad_start,
        last(several),
        once=True,
    ),
    Check(
        "separated_modes",
        "convergence",
        "the weight of each mode after n steps is that of the declared dynamics at T = n h",
        separated_modes,
        last(curved_line),
        once=True,
    ),
    Check(
        "kernel_stein_discrepancy",
        "convergence",
        "E [s(z_n) k(z_n, v) + grad k(z_n, v)] = 0 at the target",
        kernel_stein_discrepancy,
        last(several),
        once=True,
    ),
    Check(LAW, "workload", "E f(z_n) is the sum or integral over the posterior", run_trial, on_trial(LAW)),
    Check(
        LIMIT, "workload", "E f(z_n) -> its sum or integral over the posterior as h -> 0", run_trial, on_trial(LIMIT)
    ),
    Check(
        MEAN,
        "workload",
        "E of a gradient or a step, over batches and latent variables, is that of all data",
        run_trial,
        on_trial(MEAN),
    ),
    Check(
        JOINT,
        "workload",
        "E g(theta_n, y_n) = E g(theta, y) under p(theta) p(y | theta)",
        run_trial,
        on_trial(JOINT),
        once=True,
    ),
    Check(
        "particle_rate",
        "convergence",
        "E |v(y)|^2 = E_p |xi(x, y)|^2 / M for M draws of the target",
        particle_rate,
        particles(lambda claims: not claims.smoothed, last(everywhere)),
        once=True,
    ),
)
"""The full registry; the error rate of a statistical check is the family-wise rate divided by its size."""

NOISE_FREE = ("stays_on_the_manifold", "geodesic_flow", "noise_is_tangent")
"""Checks of the mixed tier `geometry` that decide without an error rate."""

COSTS: dict[str, float] = {
    "shapes_and_dtypes": 0.1,
    "key_discipline": 0.2,
    "every_input_matters": 0.2,
    "every_option_matters": 1.0,
    "pack_unpack_inverse": 0.1,
    "movement": 0.1,
    "jit_vmap_loop_agree": 2.0,
    "chains_and_leaves_independent": 0.3,
    "autodiff_recipe": 0.8,
    "symbolic_recipe": 0.1,
    "completeness": 0.4,
    "generator_of_code": 0.8,
    "proposal_generator": 1.0,
    "acceptance_limit": 1.0,
    "published_diffusion": 0.3,
    "local_weak_order": 1.0,
    "defect": 1.2,
    "force_keeps_volume": 0.5,
    "laplace_of_step": 1.0,
    "finite_time_moments": 1.0,
    "exact_without_force": 0.3,
    "stationary_covariance": 0.1,
    "gaussian_limit": 0.1,
    "stability": 0.1,
    "gradient_noise_limit": 0.3,
    "mirror_at_zero": 1.0,
    "cycle_law": 0.3,
    "contour_force": 0.5,
    "contour_weights": 0.5,
    "skew_detailed_balance": 1.0,
    "exchange_balance": 1.0,
    "exchange_rate": 0.1,
    "finite_potential": 1.0,
    "detailed_balance": 0.1,
    "mean_field_fixed_point": 5.0,
    "divergence_falls": 2.5,
    "weighted_fixed_point": 1.5,
    "kernel_velocity": 1.0,
    "coordinate_invariance": 2.5,
    "repulsion_balance": 0.5,
    "permutation_equivariance": 1.0,
    "step_along_velocity": 1.0,
    "median_rule": 1.5,
    "density_estimate": 1.0,
    "gaussian_flow": 0.8,
    "divergence_of_flow": 0.4,
    "particle_rate": 3.0,
    "manifold_limit": 8.0,
    "kinetic_energy": 8.0,
    "stays_on_the_manifold": 2.0,
    "geodesic_flow": 1.0,
    "noise_is_tangent": 1.0,
    "intrinsic_dimension": 8.0,
    "closed_form_marginals": 8.0,
    "riemannian_stein_discrepancy": 6.0,
    "compensated_step": 0.1,
    "preconditioner_by_definition": 1.0,
    "minibatch_limit": 0.4,
    "estimator_recursion": 1.5,
    "transfer_operator": 1.4,
    "end_point_moments": 6.0,
    "end_point_ks": 2.0,
    "end_point_anderson_darling": 2.0,
    "end_point_mmd": 2.0,
    "step_size_limit": 5.0,
    "chains_move": 1.0,
    "streams_independent": 5.0,
    "float32_law": 6.0,
    "gradient_noise_end_points": 6.0,
    "minibatch_end_points": 6.0,
    "estimator_memory": 1.0,
    "bad_start": 6.0,
    "separated_modes": 8.0,
    "kernel_stein_discrepancy": 6.0,
    LAW: 2.0,
    LIMIT: 6.0,
    JOINT: 2.0,
    MEAN: 2.0,
}
"""Mean seconds of one run of a check over the reference samplers, compilation included: for the estimate only."""


def seconds(check: Check) -> float:
    """The stored cost of a check."""
    return COSTS.get(check.name, 2.0)


def find_check(name: str) -> Check:
    """The check of a name. Raises BadInput with the closest names."""
    for check in CHECKS:
        if check.name == name:
            return check
    raise BadInput(f"check {name}: no such check; {closest(name, tuple(c.name for c in CHECKS))}")

"""All checks, in the order of the theory: program, SDE, weak error, invariant law, gradients, what is sampled."""

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import closest
from sgmcmc_verification.checks.core.check import Check, Statement
from sgmcmc_verification.checks.tiers import (
    contract,
    convergence,
    generator,
    geometry,
    invariance,
    law,
    noise,
    order,
    particles,
    premises,
    proofs,
    recipe,
    workload,
)
from sgmcmc_verification.samplers.entry import TIERS

PROGRAM, EQUATION, WEAK_ERROR = "the program", "the SDE", "weak error"
INVARIANT, GRADIENTS, METROPOLIS = "invariant law", "stochastic gradients", "Metropolis"
SPECIAL, SAMPLED = "special methods", "sampled"

CHECKS: tuple[Check, ...] = (
    Check(
        "interface",
        PROGRAM,
        "step = jit(step) = vmap(step) = a loop; pack and unpack are inverse to each other; shapes and dtypes stay",
        "",
        (contract.shapes_and_dtypes, contract.jit_vmap_loop_agree, contract.pack_unpack_inverse),
        stands=(
            "what breaks types, shapes or jit ends the other statements in errors, not in failures, so that "
            "bugs of its kind are planted with care alone"
        ),
    ),
    Check(
        "closed_state",
        PROGRAM,
        "step = step o pack o unpack, at any time",
        "",
        (premises.closed_state, law.noise_of_successive_steps),
    ),
    Check(
        "draws",
        PROGRAM,
        "each draw is a fresh function of the key of the step",
        "",
        (
            premises.fresh_draws,
            contract.key_discipline,
            contract.chains_and_leaves_independent,
            invariance.streams_independent,
        ),
    ),
    Check(
        "inputs_used",
        PROGRAM,
        "every argument, leaf, option and datum changes the step; its increments span the space, and no more",
        "",
        (
            contract.every_input_matters,
            contract.every_option_matters,
            contract.movement,
            premises.rest_stays,
            premises.every_datum_enters,
            invariance.chains_move,
            premises.bulk_reached,
        ),
        stands=(
            "an argument, a leaf or an option that is ignored is named as such; the law tells that something "
            "is wrong, not what"
        ),
    ),
    Check(
        "branches",
        PROGRAM,
        "each side of each branch is entered, or named; far away and for small h the step is what it is in the bulk",
        "",
        (premises.branches_entered, premises.far_field, premises.step_scale),
    ),
    Check(
        "dimension",
        PROGRAM,
        "many coordinates are treated as few are",
        "",
        (premises.equal_coordinates, premises.equal_leaves),
    ),
    Check("precision", PROGRAM, "float32 = float64 to round-off", "", (premises.same_tape, invariance.float32_law)),
    Check(
        "recipe",
        EQUATION,
        "f = -(D + Q) grad H + Gamma, D >= 0, Q = -Q^T",
        "ma2015complete",
        (recipe.autodiff_recipe, recipe.symbolic_recipe, recipe.completeness),
    ),
    Check(
        "generator",
        WEAK_ERROR,
        "A_1 = L: drift and diffusion of the code, of the paper, of the proposal",
        "talay1990expansion",
        (
            proofs.generator_for_every_potential,
            generator.generator_of_code,
            generator.published_diffusion,
            generator.proposal_generator,
            geometry.noise_is_tangent,
        ),
    ),
    Check(
        "weak_order",
        WEAK_ERROR,
        "A_j = L^j / j!, j <= p",
        "milstein2004stochastic",
        (proofs.weak_order_for_every_potential, order.local_weak_order),
    ),
    Check(
        "invariant_order",
        INVARIANT,
        "integral of A_j f dpi = 0, j <= q",
        "vollmer2016exploration",
        (proofs.invariant_law_for_every_potential, order.defect),
        stands=(
            "the only statement about laws that are not Gaussian in two dimensions, and of exact kernels "
            "without a density"
        ),
    ),
    Check(
        "gaussian_law",
        INVARIANT,
        "the stationary law on a Gaussian: closed form, limit h -> 0, order, stability, free motion",
        "leimkuhler2014long",
        (
            law.stationary_covariance,
            law.gaussian_limit,
            law.stability,
            order.exact_without_force,
            law.cycle_law,
            law.epoch_law,
        ),
    ),
    Check(
        "nonlinear_law",
        INVARIANT,
        "pi_h P_h = pi_h has a solution that tends to pi as h -> 0, on a line, in a plane, on a manifold",
        "talay1990expansion",
        (law.transfer_operator, geometry.manifold_limit, geometry.kinetic_energy),
        stands=(
            "the only statement about the law that a scheme keeps at a finite step size on a target that is "
            "not Gaussian"
        ),
    ),
    Check(
        "finite_law",
        INVARIANT,
        "pi P = pi for the matrix P of a step on finitely many states, each of which is reached",
        "levin2017markov",
        (law.stationary_on_states, law.every_state_reached, law.balance_on_states, invariance.law_of_states),
    ),
    Check(
        "volume",
        INVARIANT,
        "d det(dz'/dz) / d Hess U = 0",
        "leimkuhler2004simulating",
        (order.force_keeps_volume,),
        stands="a force that changes volume cancels in every expectation to first order",
    ),
    Check(
        "gradient_noise",
        GRADIENTS,
        "pi_h -> pi with noise N(0, V) and with all minibatches; compensated noise leaves no trace",
        "vollmer2016exploration",
        (
            law.gradient_noise_limit,
            law.minibatch_limit,
            law.compensated_step,
        ),
        stands=(
            "the premise of all stochastic-gradient methods; what it sees of factors in the drift the laws "
            "without noise see too"
        ),
    ),
    Check(
        "estimator",
        GRADIENTS,
        "estimators and preconditioners with a memory are what their definitions say",
        "",
        (proofs.estimator_for_every_potential, law.estimator_recursion, law.preconditioner_by_definition),
    ),
    Check(
        "balance",
        METROPOLIS,
        "pi(z) k(z, z') = pi(R z') k(R z', R z), a rejection gives R z, the acceptance tends to 1",
        "hastings1970monte",
        (
            proofs.balance_for_every_potential,
            law.detailed_balance,
            law.skew_detailed_balance,
            law.exchange_balance,
            law.exchange_rate,
            generator.acceptance_limit,
            generator.finite_potential,
        ),
    ),
    Check(
        "manifold",
        INVARIANT,
        "constraint, geodesics and mirrors of the space",
        "liu2016stochastic",
        (geometry.stays_on_the_manifold, geometry.geodesic_flow, law.mirror_at_zero),
    ),
    Check(
        "particle_velocity",
        SPECIAL,
        "the velocity of the particles is the one of the method",
        "liu2016stein",
        (
            proofs.velocity_for_every_potential,
            particles.kernel_velocity,
            particles.step_along_velocity,
            particles.weighted_fixed_point,
            particles.coordinate_invariance,
            particles.repulsion_balance,
            particles.permutation_equivariance,
            particles.median_rule,
            particles.density_estimate,
        ),
    ),
    Check(
        "particle_law",
        SPECIAL,
        "the target is where the particles come to rest",
        "liu2019understanding",
        (
            particles.mean_field_fixed_point,
            particles.divergence_falls,
            particles.gaussian_flow,
            particles.divergence_of_flow,
            particles.particle_rate,
        ),
    ),
    Check(
        "contour",
        SPECIAL,
        "force and weights belong to the flattened law",
        "deng2020contour",
        (law.contour_force, law.contour_weights),
    ),
    Check(
        "cir_transition",
        SPECIAL,
        "the law of the CIR process after a finite time",
        "baker2018large",
        (order.laplace_of_step, order.finite_time_moments),
        stands="the exact transition law of a square-root process, on which the claims of its integrators rest",
    ),
    Check(
        "end_point_law",
        SAMPLED,
        "the end points of independent chains have the exact discrete law",
        "",
        (
            invariance.end_point_moments,
            invariance.end_point_ks,
            invariance.end_point_anderson_darling,
            invariance.end_point_mmd,
            noise.gradient_noise_end_points,
            noise.minibatch_end_points,
            noise.estimator_memory,
            geometry.closed_form_marginals,
            geometry.intrinsic_dimension,
            geometry.riemannian_stein_discrepancy,
        ),
    ),
    Check(
        "limit_of_chains",
        SAMPLED,
        "moments of chains tend to those of the target as h -> 0",
        "",
        (
            invariance.step_size_limit,
            invariance.law_of_runs,
            invariance.law_of_steps,
            invariance.law_of_several_steps,
        ),
        stands="decides what no deterministic statement reaches: draws in loops, hosts, slices, trees",
    ),
    Check(
        "far_start",
        SAMPLED,
        "chains forget where they started",
        "",
        (convergence.bad_start, convergence.separated_modes, convergence.kernel_stein_discrepancy),
        stands="the only statement about chains that start where no user knows the target",
    ),
    Check(
        "workload",
        SAMPLED,
        "kernels of topic and mixture models keep posteriors that are enumerated",
        "geweke2004getting",
        (
            workload.enumerated_law,
            workload.enumerated_limit,
            workload.unbiased_estimates,
            workload.joint_distribution,
        ),
    ),
)
"""Every check with its statements; the names of statements are unique."""

STATEMENTS: tuple[Statement, ...] = tuple(
    sorted((s for check in CHECKS for s in check.statements), key=lambda s: TIERS.index(s.tier))
)
"""All statements, tier by tier."""

PROOFS: tuple[Statement, ...] = tuple(s for s in STATEMENTS if s.stands_for)
"""Those that stand for others."""

SUCCESSORS: dict[str, str] = {}
"""Names of statements in files of results that were published before they were joined -> the present name."""


def find_check(name: str) -> Check:
    """The check of a name. Raises BadInput with the closest names."""
    for check in CHECKS:
        if check.name == name:
            return check
    raise BadInput(f"check {name}: no such check; {closest(name, tuple(c.name for c in CHECKS))}")


def find_statement(name: str) -> Statement:
    """The statement of a name, a former one included. Raises BadInput with the closest names."""
    name = SUCCESSORS.get(name, name)
    for each in STATEMENTS:
        if each.name == name:
            return each
    raise BadInput(f"statement {name}: no such statement; {closest(name, tuple(s.name for s in STATEMENTS))}")


def check_of(statement: str) -> Check | None:
    """The check that a statement of this name, a former one included, is part of; None for an unknown one."""
    name = SUCCESSORS.get(statement, statement)
    return next((check for check in CHECKS if any(s.name == name for s in check.statements)), None)

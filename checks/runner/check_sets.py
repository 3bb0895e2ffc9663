"""Check sets: the statements and obligations by which samplers are judged, frozen under the name of a year.

A repository that names a set is judged by the same statements whatever version of the suite it installs: what later
versions add is in later sets. A set is open until a release has it; afterwards it may only lose what is withdrawn from
the registry. The default is the newest one. What a newer set would add to an older one is said in each run, as text
and not as a warning of Python, which `-W error` would turn into a failure.
"""

from dataclasses import dataclass
from functools import cached_property

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import closest
from sgmcmc_verification.checks.registry import SUCCESSORS


@dataclass(frozen=True)
class CheckSet:
    """Statements and obligations under a name.

    Attributes:
        name: the year.
        statements: names of those that are run.
        obligations: names of those that can be due.
    """

    name: str
    statements: frozenset[str]
    obligations: frozenset[str]

    @cached_property
    def present_names(self) -> frozenset[str]:
        """Names that the statements have today; those of the set are from when it was frozen."""
        return frozenset(SUCCESSORS.get(name, name) for name in self.statements)

    def has(self, statement: str) -> bool:
        """True for a statement of the set, by its present name."""
        return statement in self.present_names


STATEMENTS_OF_2026 = """
    shapes_and_dtypes jit_vmap_loop_agree pack_unpack_inverse
    closed_state noise_of_successive_steps
    fresh_draws key_discipline chains_and_leaves_independent streams_independent
    every_input_matters every_option_matters movement rest_stays every_datum_enters chains_move
    bulk_reached
    branches_entered far_field step_scale
    equal_coordinates equal_leaves
    same_tape float32_law
    autodiff_recipe symbolic_recipe completeness
    generator_for_every_potential generator_of_code published_diffusion proposal_generator noise_is_tangent
    weak_order_for_every_potential local_weak_order
    invariant_law_for_every_potential defect
    stationary_covariance gaussian_limit stability exact_without_force cycle_law epoch_law
    transfer_operator manifold_limit kinetic_energy
    stationary_on_states every_state_reached balance_on_states law_of_states
    force_keeps_volume
    gradient_noise_limit minibatch_limit compensated_step
    estimator_for_every_potential estimator_recursion preconditioner_by_definition
    balance_for_every_potential detailed_balance skew_detailed_balance exchange_balance exchange_rate
    acceptance_limit finite_potential
    stays_on_the_manifold geodesic_flow mirror_at_zero
    velocity_for_every_potential kernel_velocity step_along_velocity weighted_fixed_point
    coordinate_invariance repulsion_balance permutation_equivariance median_rule density_estimate
    mean_field_fixed_point divergence_falls gaussian_flow divergence_of_flow particle_rate
    contour_force contour_weights
    laplace_of_step finite_time_moments
    end_point_moments end_point_ks end_point_anderson_darling end_point_mmd gradient_noise_end_points
    minibatch_end_points estimator_memory closed_form_marginals intrinsic_dimension
    riemannian_stein_discrepancy
    step_size_limit law_of_runs law_of_steps law_of_several_steps
    bad_start separated_modes kernel_stein_discrepancy
    enumerated_law enumerated_limit unbiased_estimates joint_distribution
"""
"""By the checks of the registry, a line or more for each."""
OBLIGATIONS_OF_2026 = """
    gaussian high-dimension line plane pytree data gradient-noise closed-state known-draws branches manifold
    boundary finite reached particles
"""

CHECK_SETS: tuple[CheckSet, ...] = (
    CheckSet("2026", frozenset(STATEMENTS_OF_2026.split()), frozenset(OBLIGATIONS_OF_2026.split())),
)
"""From the oldest to the newest."""


def newest() -> CheckSet:
    """The set that is used where none is named."""
    return CHECK_SETS[-1]


def find_set(name: str | None) -> CheckSet:
    """The set of a name; None for the newest. Raises BadInput with the closest names."""
    if name is None:
        return newest()
    for each in CHECK_SETS:
        if each.name == name:
            return each
    raise BadInput(f"--check-set {name}: no such set; {closest(name, tuple(s.name for s in CHECK_SETS))}")


def added_since(check_set: CheckSet) -> tuple[str, ...]:
    """Names of the statements that the newest set has and this one has not, in alphabetical order."""
    return tuple(sorted(newest().present_names - check_set.present_names))

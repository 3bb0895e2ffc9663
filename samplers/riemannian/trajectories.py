"""Metropolis samplers with trajectories on manifolds and in metrics: refresh, scan, test, reversal."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.embedded import EmbeddedDynamics
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Composite, HamiltonianProposal, Source
from sgmcmc_verification.samplers.interface.metropolis import accept, finite_or_reject, inner
from sgmcmc_verification.samplers.underdamped.hmc import MetropolisMixin, MetropolisState
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target

MOST_ITERATIONS = 100
"""Bound of the iterations for an implicit equation of an integrator; a step that needs more is rejected."""


class TrajectoryMixin(MetropolisMixin):
    """`step` of a sampler that has `num_steps`, `temperature`, `refresh` and `integrate`.

    refresh(key, position) -> momentum;  integrate(key, state, momentum, step_size, estimator) -> (state, momentum,
    valid): one step of a reversible map that keeps the volume, `valid` False where it could not be solved.
    """

    num_steps: int
    refresh: Callable[..., Tree]
    integrate: Callable[..., tuple[MetropolisState, Tree, jax.Array | bool]]

    def __post_init__(self) -> None:
        require(self.num_steps >= 1, "num_steps: must be at least 1", self.num_steps)
        require_positive(self, "temperature")

    def kinetic(self, position: Position, momentum: Tree) -> jax.Array:
        """|p|^2 / 2."""
        del position
        return 0.5 * inner(momentum, momentum)

    def trajectory_claims(
        self,
        source: Source,
        dynamics: Callable[[Target], Dynamics | EmbeddedDynamics],
        flat: bool,
        spaces: tuple[str, ...] = ("euclidean",),
    ) -> Claims:
        """Claims of an exact kernel; `flat` where the position is in a Euclidean space.

        `dynamics` is the Langevin equation to which the end of a trajectory belongs (`HamiltonianProposal`).
        """
        return self.exact_claims(
            source, Composite(), HamiltonianProposal(self.num_steps, dynamics), flat=flat, spaces=spaces
        )

    def trajectory(
        self, key: jax.Array, state: MetropolisState, momentum: Tree, step_size: Scalar, estimator: Estimator
    ) -> tuple[MetropolisState, Tree, jax.Array]:
        """`num_steps` steps: `(state, momentum, valid)` at the end, no accept-reject."""

        def body(
            carry: tuple[MetropolisState, Tree, jax.Array], gradient_key: jax.Array
        ) -> tuple[tuple[MetropolisState, Tree, jax.Array], None]:
            here, p, valid = carry
            here, p, fine = self.integrate(gradient_key, here, p, step_size, estimator)
            return (here, p, valid & fine), None

        keys = jax.random.split(key, self.num_steps)
        return jax.lax.scan(body, (state, momentum, jnp.asarray(True)), keys)[0]

    def step(self, key: jax.Array, state: MetropolisState, step_size: Scalar, estimator: Estimator) -> MetropolisState:
        """Take one step."""
        momentum_key, gradient_key, accept_key = jax.random.split(key, 3)
        momentum = self.refresh(momentum_key, state.position)
        end, end_momentum, valid = self.trajectory(gradient_key, state, momentum, step_size, estimator)
        before = state.potential + self.kinetic(state.position, momentum)
        after = end.potential + self.kinetic(end.position, end_momentum)
        log_ratio = finite_or_reject(end.potential, (before - after) / self.temperature)
        log_ratio = jnp.where(valid, log_ratio, -jnp.inf)
        chosen = accept(accept_key, log_ratio, end._replace(estate=()), state._replace(estate=()))
        return MetropolisState(chosen.position, chosen.potential, chosen.gradient, end.estate)


def agree(a: jax.Array, b: jax.Array) -> jax.Array:
    """True where two vectors are the same up to sqrt(eps) of their size: a solution found again, not another one.

    Round-off, and what an iteration stopped at round-off leaves, are eps times a moderate condition number; two
    solutions of one equation of an integrator differ by O(1).
    """
    size = 1 + jnp.max(jnp.abs(a))
    return jnp.max(jnp.abs(a - b)) <= jnp.sqrt(jnp.finfo(a.dtype).eps) * size  # False for NaN


def solve(
    update: Callable[[jax.Array], jax.Array], start: jax.Array, most: int = MOST_ITERATIONS
) -> tuple[jax.Array, jax.Array]:
    """x = update(x) by iteration, until a change is of the size of the round-off or no longer halves near it.

    Args:
        update: x (n,) -> (n,), a contraction (or Newton's map).
        start: (n,).
        most: bound of the number of iterations.

    Returns:
        x, and True if it converged. Where it did not, x is of no use.
    """
    eps = jnp.finfo(start.dtype).eps

    def size(x: jax.Array) -> jax.Array:
        return 1 + jnp.max(jnp.abs(x))

    def unfinished(carry: tuple) -> jax.Array:
        x, change, last, count = carry
        settled = change <= 4 * eps * size(x)
        stalled = (change <= 1e3 * eps * size(x)) & (change > 0.5 * last)  # round-off is all that is left
        return ~(settled | stalled) & (count < most) & jnp.isfinite(change)

    def iterate(carry: tuple) -> tuple:
        x, change, _, count = carry
        new = update(x)
        return new, jnp.max(jnp.abs(new - x)), change, count + 1

    infinite = jnp.asarray(jnp.inf, start.dtype)
    first = update(start)
    carry = (first, jnp.max(jnp.abs(first - start)), infinite, 1)
    x, change, _, _ = jax.lax.while_loop(unfinished, iterate, carry)
    return x, jnp.isfinite(change) & (change <= 1e3 * eps * size(x))

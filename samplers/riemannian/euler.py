"""A sampler from any H, D and Q: the complete recipe, discretised by Euler."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.entry import EXPLICIT, FLAT, PLANE, TEMPERATURES, Row
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.estimates import CompensationMixin
from sgmcmc_verification.samplers.interface.from_step import PointMixin
from sgmcmc_verification.samplers.numerics.matrix_sqrt import positive_root
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.riemannian.metrics import NonHessian2D
from sgmcmc_verification.samplers.riemannian.sgrhmc import SGRHMC
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target


class AugmentedPoint(NamedTuple):
    """The full variable z: the position and the auxiliary coordinates (k,), in the order of the dynamics."""

    position: Position
    auxiliary: jax.Array


class RecipeState(NamedTuple):
    """Position, auxiliary coordinates (k,) and the estimator's own state."""

    position: Position
    auxiliary: jax.Array
    estate: EstimatorState


@dataclass(frozen=True, eq=False)
class Recipe(CompensationMixin, PointMixin):
    """Euler's method on dz = f dt + sqrt(2 D) dW for any H, D, Q.

        z' = z + h f~(z) + N(0, 2 h D - h^2 B^),   f~ = -(D + Q) grad~ H + Gamma,
        B^ = J V^ J^T,   J = d f~ / d (grad~ U)

    with B^ = 0 unless `compensate`. grad~ H is grad H with grad U replaced by its estimate: H is evaluated for a
    target whose potential is the linear function with the estimated gradient, so that all that is assumed of H is
    that it is linear in `target.potential` (it may be U / T plus anything) and reaches U in no other way. No exact
    gradient is computed. D and Q are those of the true target, so that a metric may depend on U.

    Source: ma2015complete, equations (6) and (9). Differs from the source in:
        1. the sign of Gamma, misprinted in both equations (theorem 1 has the plus);
        2. B^ is written with the Jacobian J, which is -(D + Q)_{.t} (the columns of the position) when H = U + ...;
           for H = U / T + ... it holds the factor 1 / T;
        3. where 2 D - h B^ is not positive semidefinite, its negative eigenvalues are set to zero.

    Args:
        dynamics: target -> H, D, Q; the position comes first in z. D and Q must not be (re)estimated.
        target: the law.
        temperature: T > 0, what `dynamics` builds in (for the claims only; the step does not use it).
        compensate: subtract B^ from the injected noise; needs an estimator that returns V^.
        auxiliary: `key -> (k,)`, the start of the auxiliary coordinates; default: zeros.

    Error: weak order 1 and invariant law O(h), for exact gradients or compensated noise. The matrices are dense and
    Gamma comes from the Jacobian of D + Q: meant for z of a few coordinates.

    Raises:
        ValueError: if `temperature` is not positive, or the dynamics is not that of a position of the target's size.
    """

    dynamics: Callable[[Target], Dynamics]
    target: Target
    temperature: float = 1.0
    compensate: bool = False
    auxiliary: Callable[[jax.Array], jax.Array] | None = None

    backend = "jax"
    point = AugmentedPoint
    state = RecipeState

    def __post_init__(self) -> None:
        require_positive(self, "temperature")
        model = self.dynamics(self.target)
        require(model.size == self.target.size, f"dynamics: its position has not size {self.target.size}", model.size)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("ma2015complete", "equations (6) and (9)"),
            StationaryLaw(order=1, temperature=self.temperature),
            Diffusion(self.dynamics, weak_order=1),
            conditions=("exact gradient or compensated noise",),
        )

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> RecipeState:
        """Start a chain at a position."""
        auxiliary_key, estimator_key = jax.random.split(key)
        model = self.dynamics(self.target)
        dtype = ravel_pytree(position)[0].dtype
        zeros = jnp.zeros(model.dim - model.size, dtype)
        auxiliary = zeros if self.auxiliary is None else self.auxiliary(auxiliary_key).astype(dtype)
        return RecipeState(position, auxiliary, estimator.init(estimator_key, position))

    def drift(self, z: jax.Array, gradient: jax.Array, target: Target | None = None) -> jax.Array:
        """f~(z) with grad U replaced by `gradient` (size,)."""
        target = target or self.target
        model = self.dynamics(target)
        linear = dataclasses.replace(target, potential=lambda x: gradient @ ravel_pytree(x)[0])
        slope = jax.grad(self.dynamics(linear).H)(z)
        return -(model.D(z) + model.Q(z)) @ slope + model.gamma(z)

    def step(self, key: jax.Array, state: RecipeState, step_size: Scalar, estimator: Estimator) -> RecipeState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        h = step_size
        theta, unravel = ravel_pytree(state.position)
        z = jnp.concatenate([theta, state.auxiliary])
        # the example fixes the dtype that the target ravels to: take that of this chain
        target = dataclasses.replace(self.target, example=state.position)
        model = self.dynamics(target)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        gradient = ravel_pytree(estimate.gradient)[0]
        white = normal_like(noise_key, z)
        if self.compensate:
            # the drift is affine in the estimated gradient, whatever the factor of U in H is (1 / T, as a rule)
            columns = jax.jacfwd(lambda g: self.drift(z, g, target))(gradient)
            noise = positive_root(2 * model.D(z) - h * columns @ estimate.covariance @ columns.T) @ white
        else:
            noise = jnp.sqrt(2) * (positive_root(model.D(z)) @ white)
        z = z + h * self.drift(z, gradient, target) + jnp.sqrt(h) * noise
        return RecipeState(unravel(z[: model.size]), z[model.size :], estate)


def _momentum_law(temperature: float, size: int):
    """A start of the momentum from its law."""
    return lambda key: jnp.sqrt(temperature) * jax.random.normal(key, (size,))


def _recipe_sghmc(target: Target, friction: float = 1.0, temperature: float = 1.0) -> Recipe:
    """Euler's method on the dynamics of SGHMC."""
    model = SGHMC(friction=friction, temperature=temperature).dynamics
    return Recipe(model, target, temperature, auxiliary=_momentum_law(temperature, target.size))


def _recipe_sgrhmc(target: Target, temperature: float = 1.0) -> Recipe:
    """Euler's method on the dynamics of SGRHMC with a metric that is not a Hessian."""
    if target.size != 2:
        raise ValueError(f"target: the metric is for 2 coordinates, {target.name} has {target.size}")
    model = SGRHMC(NonHessian2D(), temperature=temperature).dynamics
    return Recipe(model, target, temperature, auxiliary=_momentum_law(temperature, 2))


ENTRIES: tuple[Row, ...] = (
    Row(
        "recipe-sghmc",
        _recipe_sghmc,
        targets=FLAT[:4],
        variants=EXPLICIT,
        step_size=0.05,
        step_power=0.5,
        diffusion=published.UNDERDAMPED,
    ),
    Row(
        "recipe-sgrhmc",
        _recipe_sgrhmc,
        targets=PLANE,
        variants=TEMPERATURES,
        step_size=0.05,
        step_power=0.5,
        diffusion=published.underdamped(published.non_hessian),
    ),
)

"""Any dynamics (H, D, Q) as a deterministic flow of particles."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, coordinate_names, row_divergence
from sgmcmc_verification.samplers.entry import PLANE, Row
from sgmcmc_verification.samplers.interface.aliases import (
    Builder,
    Estimator,
    EstimatorState,
    Position,
    Scalar,
    State,
    Tree,
)
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    DensityEstimate,
    KernelWidth,
    MarginalFlow,
    ParticleLaw,
    ParticleVelocity,
    Source,
)
from sgmcmc_verification.samplers.particles.common import (
    BANDWIDTHS,
    ParticleMixin,
    estimates,
    flatten,
    particle_row,
    unflatten,
    uniform_weights,
)
from sgmcmc_verification.samplers.particles.density_gradients import DENSITIES, RIDGE, Density, density_gradient
from sgmcmc_verification.samplers.particles.kernels import (
    Bandwidth,
    bandwidths_of,
    carried_width,
    first_bandwidth,
    require_bandwidth,
)
from sgmcmc_verification.samplers.riemannian.euler import AugmentedPoint
from sgmcmc_verification.samplers.riemannian.metrics import NonHessian2D
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target

Form = Literal["det", "fgh"]


class FlowState(NamedTuple):
    """Particles (leading axis M), their auxiliary coordinates (M, k), what the bandwidth rule carries for the position
    and for the auxiliaries (2,), estimators' states.
    """

    position: Position
    auxiliary: jax.Array
    bandwidth: jax.Array
    estate: EstimatorState


class FlowMixin(ParticleMixin):
    """A flow of particles z = (theta, auxiliaries) from `field`, whose densities are estimated block by block.

    `field(z (M, n), gradients (M, d), score (M, n))` is the velocity, `score` the estimate of grad log q. The position
    and the auxiliaries each have a kernel density estimate and a bandwidth of their own, which is the density of z if
    they are independent, as they are under the target; `joint=True` has one estimate in all of z.
    """

    density: Density
    ridge: float
    joint: bool
    field: Callable[..., jax.Array]

    def score(self, z: jax.Array, size: int, weights: jax.Array, last: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(grad log q^ (M, n), bandwidths (2,)) for particles z whose first `size` coordinates are the position."""
        if self.joint or z.shape[1] == size:
            (h,), carried = bandwidths_of(self.bandwidth, z, last[0])
            return density_gradient(self.density, z, weights, h, self.ridge), jnp.stack([carried, last[1]])
        parts, carried = [], []
        for block, number in ((z[:, :size], last[0]), (z[:, size:], last[1])):
            (h,), kept = bandwidths_of(self.bandwidth, block, number)
            parts.append(density_gradient(self.density, block, weights, h, self.ridge))
            carried.append(kept)
        return jnp.concatenate(parts, axis=1), jnp.stack(carried)

    def starts(self, z: jax.Array, size: int) -> jax.Array:
        """First bandwidths (2,) of `score`."""
        whole = self.joint or z.shape[1] == size
        blocks = (z, z) if whole else (z[:, :size], z[:, size:])
        return jnp.stack([first_bandwidth(self.bandwidth, block) for block in blocks])

    def velocity(self, particles: jax.Array, gradients: jax.Array, weights: jax.Array) -> jax.Array:
        """The velocity (M, n) of particles z (M, n) with weights (M,), given grad U (M, d) at their positions."""
        size = gradients.shape[1]
        score, _ = self.score(particles, size, weights, self.starts(particles, size))
        return self.field(particles, gradients, score)

    def draw(self, key: jax.Array, count: int, size: int, dtype: jax.typing.DTypeLike) -> jax.Array:
        """The auxiliaries (M, k) that a run starts with."""
        raise NotImplementedError

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> State:
        """Start a chain at a position."""
        auxiliary_key, estimator_key = jax.random.split(key)
        rows = flatten(position)
        auxiliary = self.draw(auxiliary_key, rows.shape[0], rows.shape[1], rows.dtype)
        return self._state(position, auxiliary, estimator_key, estimator)

    def _state(self, position: Position, auxiliary: jax.Array, key: jax.Array, estimator: Estimator) -> FlowState:
        estate = jax.vmap(lambda x: estimator.init(key, x))(position)
        z = jnp.concatenate([flatten(position), auxiliary], axis=1)
        return FlowState(position, auxiliary, self.starts(z, z.shape[1] - auxiliary.shape[1]), estate)

    def step(self, key: jax.Array, state: State, step_size: Scalar, estimator: Estimator) -> State:
        """Take one step."""
        gradients, estate = estimates(estimator, key, state.estate, state.position)
        rows = flatten(state.position)
        size = rows.shape[1]
        z = jnp.concatenate([rows, state.auxiliary], axis=1)
        score, carried = self.score(z, size, uniform_weights(rows), state.bandwidth)
        z = z + step_size * self.field(z, gradients, score)
        return FlowState(unflatten(state.position)(z[:, :size]), z[:, size:], carried, estate)

    def unpack(self, state: State) -> Tree:
        """Full variable z of a state."""
        if state.auxiliary.shape[1] == 0:
            return state.position
        return AugmentedPoint(state.position, state.auxiliary)

    def pack(self, key: jax.Array, z: Tree, estimator: Estimator) -> State:
        """State with the full variable z; caches are computed anew."""
        if isinstance(z, AugmentedPoint):
            return self._state(z.position, z.auxiliary, key, estimator)
        return self._state(z, jnp.zeros((flatten(z).shape[0], 0), flatten(z).dtype), key, estimator)


def require_flow(form: str, density: str, bandwidth: Bandwidth, ridge: float) -> None:
    """Raise ValueError unless the options of a flow are in their ranges."""
    require(form in ("det", "fgh"), "form: must be det or fgh", form)
    require(density in DENSITIES, f"density: must be one of {', '.join(DENSITIES)}", density)
    require_bandwidth(bandwidth, several=False)
    require(ridge > 0, "ridge: must be positive", ridge)


@dataclass(frozen=True, eq=False)
class ParticleFlow(FlowMixin):
    """Particles that have the marginals of dz = f dt + sqrt(2 D) dW for any H, D, Q, without noise, p = exp(-H).

        det:  dz/dt = D grad log(p / q) + Q grad log p + div Q,   (div Q)_i = sum_j d_j Q_ij
        fgh:  dz/dt = (D + Q) grad log(p / q)

    with an estimate for grad log q, by Euler's method. They differ by a field that leaves q as it is. grad U in grad H
    is replaced by its estimate as in `samplers.riemannian.euler.Recipe`; D and Q are those of the true target.

    Source: liu2019understanding, lemma 1 (det) and theorem 5 (fgh).

    Args:
        dynamics: target -> H, D, Q; the position comes first in z.
        target: the law.
        form: `"det"` or `"fgh"`.
        density: estimate of grad log q (`samplers.particles.density_gradients`).
        bandwidth: of the estimate, a squared length, `"median"` or `"he"`.
        joint: one estimate in all of z, rather than one for the position and one for the auxiliaries.
        ridge: of `"gfsf"`.
        auxiliary: `key -> (k,)`, the start of the auxiliary coordinates of a particle; default: zeros.

    Error: the target is a fixed point as M -> infinity and then h -> 0 for the bandwidth h; O(step size).

    Raises:
        ValueError: if an argument is out of range, or the dynamics is not that of a position of the target's size.
    """

    dynamics: Callable[[Target], Dynamics]
    target: Target
    form: Form = "det"
    density: Density = "blob"
    bandwidth: Bandwidth = "median"
    joint: bool = False
    ridge: float = RIDGE
    auxiliary: Callable[[jax.Array], jax.Array] | None = None

    def __post_init__(self) -> None:
        require_flow(self.form, self.density, self.bandwidth, self.ridge)
        size = self.dynamics(self.target).size
        require(size == self.target.size, f"dynamics: its position has not size {self.target.size}", size)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        where = "lemma 1" if self.form == "det" else "theorem 5"
        return Claims(
            Source("liu2019understanding", where),
            ParticleLaw(),
            carried_width(self.bandwidth),
            ParticleVelocity(self.velocity),
            DensityEstimate(self, self.form, self.joint),
            KernelWidth(self, "bandwidth"),
            MarginalFlow(self.dynamics),
            conditions=("infinitely many particles", "bandwidth to zero"),
        )

    def draw(self, key: jax.Array, count: int, size: int, dtype: jax.typing.DTypeLike) -> jax.Array:
        """Auxiliaries (M, k) from `auxiliary`, or zeros."""
        extra = self.dynamics(self.target).dim - size
        if self.auxiliary is None:
            return jnp.zeros((count, extra), dtype)
        return jax.vmap(self.auxiliary)(jax.random.split(key, count)).astype(dtype)

    def field(self, z: jax.Array, gradients: jax.Array, score: jax.Array) -> jax.Array:
        """dz/dt (M, n)."""

        def one(point: jax.Array, gradient: jax.Array, own: jax.Array) -> jax.Array:
            target = dataclasses.replace(self.target, example=self.target.unravel(point[: self.target.size]))
            model = self.dynamics(target)
            linear = dataclasses.replace(target, potential=lambda x: gradient @ target.ravel(x))
            slope = jax.grad(self.dynamics(linear).H)(point)  # -grad log p
            D, Q = model.D(point), model.Q(point)
            if self.form == "fgh":
                return -(D + Q) @ (slope + own)
            return -D @ (slope + own) - Q @ slope + row_divergence(model.Q, point)

        return jax.vmap(one)(z, gradients, score)


def irreversible(target: Target) -> Dynamics:
    """H = U; D = G^-1 of `NonHessian2D` and Q = q J, q = 1 + sin(x + y / 2), depend on the position."""
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    q = lambda z: 1.0 + jnp.sin(z[0] + 0.5 * z[1])
    return Dynamics(
        target.flat_potential,
        NonHessian2D().inverse,
        lambda z: q(z) * jnp.asarray(turn, z.dtype),
        coordinate_names(2),
        2,
    )


def as_flow(dynamics: Callable[[Target], Dynamics], size: int | None = None, **fixed: Any) -> Builder:
    """A builder for the flow of particles of an SDE; `size` where the dynamics needs that many coordinates."""

    def build(target: Target, **options: Any):
        if size is not None and target.size != size:
            raise ValueError(f"target: the dynamics is for {size} coordinates, {target.name} has {target.size}")
        extra = dynamics(target).dim - target.size
        start = (lambda key: jax.random.normal(key, (extra,))) if extra else None
        return ParticleFlow(dynamics, target, auxiliary=start, **fixed, **options)

    return build


ENTRIES: tuple[Row, ...] = (
    particle_row("flow-det", as_flow(irreversible, size=2), PLANE, *BANDWIDTHS),
    particle_row("flow-fgh", as_flow(irreversible, size=2, form="fgh"), PLANE, *BANDWIDTHS),
)

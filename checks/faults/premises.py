"""Planted bugs where laws do not look: far away, at rare draws and late times, in many dimensions, in later leaves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.checks.faults.streams import CountedState, drawing
from sgmcmc_verification.samplers.estimators.altered import Altered
from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.overdamped.leimkuhler_matthews import LeimkuhlerMatthews
from sgmcmc_verification.samplers.overdamped.mala import MALA
from sgmcmc_verification.samplers.overdamped.sgld import SGLD, SGLDState
from sgmcmc_verification.targets.target import DataTerms, Target


def euler(
    drift: Callable[[jax.Array], jax.Array] = lambda g: g,
    noise: Callable[[jax.Array], jax.Array] = lambda e: e,
    least_variance: float = 0.0,
) -> type[SGLD]:
    """SGLD on flat positions with a function of the gradient and of the white noise, whose variance has a floor."""

    @dataclass(frozen=True)
    class Planted(SGLD):
        def step(self, key, state, step_size, estimator):
            gradient_key, noise_key = jax.random.split(key)
            estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
            x, unravel = ravel_pytree(state.position)
            g = drift(ravel_pytree(estimate.gradient)[0])
            e = noise(ravel_pytree(normal_like(noise_key, state.position))[0])
            scale = jnp.sqrt(jnp.maximum(2 * self.temperature * step_size, least_variance)).astype(e.dtype)
            return SGLDState(unravel(x - step_size * g + scale * e), estate)

    return Planted


def later_leaves_halved(key, tree):
    """Half of the variance in all leaves but the first."""
    leaves, structure = jax.tree.flatten(normal_like(key, tree))
    return jax.tree.unflatten(structure, [leaves[0], *(jnp.sqrt(0.5).astype(n.dtype) * n for n in leaves[1:])])


def one_row_for_all(key, tree):
    """Noise of shape x.shape[-1:], which broadcasting gives to every row."""
    row = jax.tree.map(lambda x: x.reshape(-1, *x.shape[-1:])[0], tree)
    return jax.tree.map(lambda n, x: jnp.broadcast_to(n, x.shape), normal_like(key, row), tree)


def no_tensors(key, tree):
    """No noise for leaves with more than two axes."""
    return jax.tree.map(lambda n: 0 * n if n.ndim > 2 else n, normal_like(key, tree))


def halved_in_single(key, tree):
    """Half of the noise in single precision."""
    return jax.tree.map(lambda n: 0.5 * n if n.dtype == jnp.float32 else n, normal_like(key, tree))


@jax.jit
def _normal(noise):
    """Half of a draw, under the name that the draws of JAX have in a program."""
    return 0.5 * noise


@dataclass(frozen=True)
class ScheduleInside(SGLD):
    """SGLD whose n-th step has the size h (1 + n / 1000)^(-1/3)."""

    def init(self, key, position, estimator):
        return CountedState(position, estimator.init(key, position), jnp.zeros((), jnp.int32))

    def step(self, key, state: Any, step_size, estimator):
        smaller = step_size * (1 + 1e-3 * state.kept.astype(jnp.result_type(step_size))) ** (-1 / 3)
        after = super().step(key, SGLDState(state.position, state.estate), smaller, estimator)
        return CountedState(after.position, after.estate, state.kept + 1)


@dataclass(frozen=True)
class CoolsDown(SGLD):
    """SGLD without noise in the last 10,000 of every 50,000 steps."""

    def init(self, key, position, estimator):
        return CountedState(position, estimator.init(key, position), jnp.zeros((), jnp.int32))

    def step(self, key, state: Any, step_size, estimator):
        still = state.position, estimator.estimate(jax.random.split(key)[0], state.estate, state.position)[0].gradient
        after = super().step(key, SGLDState(state.position, state.estate), step_size, estimator)
        cool = state.kept % 50_000 >= 40_000
        position = jax.tree.map(lambda y, x, g: jnp.where(cool, x - step_size * g, y), after.position, *still)
        return CountedState(position, after.estate, state.kept + 1)


@dataclass(frozen=True)
class OwnMinibatches(SGLD):
    """SGLD whose gradients are those of an estimator of its own."""

    own: Any = None

    def init(self, key, position, estimator):
        return super().init(key, position, self.own or estimator)

    def step(self, key, state, step_size, estimator):
        return super().step(key, state, step_size, self.own or estimator)


def of_the_first(count: int) -> Callable[..., SGLD]:
    """SGLD with minibatches of the first data alone, weighted as if they were all."""

    def build(target: Target, **options: Any) -> SGLD:
        terms = target.terms
        if terms is None:
            return SGLD(**options)
        few = min(count, terms.size)
        datum = lambda x, row: terms.size / few * terms.datum(x, row)
        data = jax.tree.map(lambda a: a[:few], terms.data)
        return OwnMinibatches(**options, own=Minibatch(DataTerms(terms.prior, datum, data, few), 2))

    return build


def all_but_the_last(target: Target, **options: Any) -> SGLD:
    """SGLD with minibatches of eight of all data but the last, and with all where they are no more."""
    terms, few = target.terms, 8
    if terms is None or terms.size <= few:
        return SGLD(**options)
    datum = lambda x, row: terms.size / (terms.size - 1) * terms.datum(x, row)
    data = jax.tree.map(lambda a: a[:-1], terms.data)
    return OwnMinibatches(**options, own=Minibatch(DataTerms(terms.prior, datum, data, terms.size - 1), few))


def reads_arrays_apart(target: Target, **options: Any) -> SGLD:
    """SGLD with minibatches of data whose arrays were shuffled one by one."""
    terms = target.terms
    if terms is None:
        return SGLD(**options)
    leaves, structure = jax.tree.flatten(terms.data)
    orders = [np.random.default_rng(i).permutation(terms.size) for i in range(len(leaves))]
    shuffled = structure.unflatten([a[order] for a, order in zip(leaves, orders, strict=True)])
    return OwnMinibatches(**options, own=Minibatch(DataTerms(terms.prior, terms.datum, shuffled, terms.size), 2))


@dataclass(frozen=True)
class DropsEstimatorState(SGLD):
    """The state of the estimator stays that of the start."""

    def step(self, key, state, step_size, estimator):
        return super().step(key, state, step_size, estimator)._replace(estate=state.estate)


@dataclass(frozen=True)
class KeepsRejectedGradient(MALA):
    """The gradient of the last proposal is kept, accepted or not."""

    def step(self, key, state, step_size, estimator):
        seen = []
        noting = Altered(estimator, lambda estimate, _: seen.append(estimate) or estimate)
        after = super().step(key, state, step_size, noting)
        return after._replace(gradient=seen[-1].gradient)


class Counted(NamedTuple):
    """A state and the number of its step."""

    inner: Any
    count: Any


@dataclass(frozen=True)
class CarriesACount(LeimkuhlerMatthews):
    """Leimkuhler-Matthews with half of each draw from step 2000 on; that it carries state is declared anyway."""

    def step(self, key, state: Any, step_size, estimator):
        after = super().step(key, state.inner, step_size, estimator)
        share = jnp.where(state.count < 2000, 1.0, 0.5)
        noise = jax.tree.map(lambda n: share.astype(n.dtype) * n, after.noise)
        return Counted(after._replace(noise=noise), state.count + 1)

    def position(self, state: Any):
        return super().position(state.inner)

    def unpack(self, state: Any):
        return super().unpack(state.inner)

    def pack(self, key, z, estimator) -> Any:
        return Counted(super().pack(key, z, estimator), jnp.zeros((), jnp.int32))


LIMIT = "pi_h -> pi as h -> 0"
PLANE = ("gaussian-correlated-2d", "double-well")
ANY = ("gaussian-1d-scaled", "gaussian-correlated-2d")
"""Targets of a row that runs in any dimension."""

DEFECTS: tuple[Defect, ...] = (
    planted(
        "sgld-noise-clipped",
        "sgld",
        euler(noise=lambda e: jnp.clip(e, -4, 4)),
        "normals are clipped at 4 sigma, which one draw in 16,000 reaches and no node of a rule does",
        Kill("branches_entered", "gaussian-correlated-2d", "each side of a branch is entered and is the same step"),
        "range",
        targets=PLANE,
        diagnosis=r"min at .*premises\.py",
    ),
    planted(
        "sgld-gradient-norm-clipped",
        "sgld",
        euler(drift=lambda g: g * jnp.minimum(1, 50 / jnp.maximum(jnp.linalg.norm(g), 1e-30)).astype(g.dtype)),
        "gradients are scaled down to a norm of 50, which those of the bulk do not have",
        Kill("far_field", "gaussian-correlated-2d", "the step is the same polynomial in the bulk and far from it"),
        "range",
        targets=PLANE,
        diagnosis=r"from 3 standard deviations on",
    ),
    planted(
        "sgld-noise-floor",
        "sgld",
        euler(least_variance=1e-7),
        "the variance of the noise is at least 1e-7: at smaller steps there is noise without drift",
        Kill("step_scale", "gaussian-correlated-2d", "noise ~ h^1/2 as h -> 0"),
        "range",
        targets=PLANE[:1],
        diagnosis=r"h\^0\.500 above a step size",
    ),
    planted(
        "sgld-noise-in-tiles",
        "sgld",
        euler(noise=lambda e: jnp.resize(e[:1024], e.shape)),
        "coordinate 1024 and those that follow get the draws of the first ones once more",
        Kill("equal_coordinates", "gaussian-correlated-2d", "many coordinates are treated as few are"),
        "dimension",
        "streams",
        targets=PLANE,
        diagnosis=r"of 70001 coordinates",
    ),
    planted(
        "sgld-noise-in-ten",
        "sgld",
        euler(noise=lambda e: jnp.where(jnp.arange(e.size) < 10, e, 0)),
        "only the first ten coordinates have noise",
        Kill("equal_coordinates", "gaussian-correlated-2d", "17 coordinates are treated as 5 are"),
        "dimension",
        targets=PLANE,
        diagnosis=r"of 17 coordinates",
    ),
    planted(
        "sgld-noise-halved-in-three",
        "sgld",
        euler(noise=lambda e: e * np.sqrt(0.5 if e.size in (3, 4) else 1.0).astype(e.dtype)),
        "half of the variance in three and four coordinates, all of it in one, two and more",
        Kill("equal_coordinates", "gaussian-correlated-2d", "3 coordinates are treated as 5 are"),
        "dimension",
        targets=PLANE,
        diagnosis=r"when there are 3 of them",
    ),
    planted(
        "sgld-noise-in-full-blocks",
        "sgld",
        euler(noise=lambda e: jnp.where(jnp.arange(e.size) < max(e.size // 10_000 * 10_000, 10_000), e, 0)),
        "the noise is drawn in blocks of 10,000, a last block that is not full gets none",
        Kill("equal_coordinates", "gaussian-correlated-2d", "70,001 coordinates are treated as few are"),
        "dimension",
        targets=PLANE,
        diagnosis=r"of 70001 coordinates",
    ),
    planted(
        "sgld-tensors-without-noise",
        "sgld",
        drawing(no_tensors),
        "leaves with more than two axes get no noise",
        Kill("gaussian_limit", "gaussian-network", LIMIT),
        "leaves",
        targets=ANY,
    ),
    planted(
        "sgld-later-leaves-halved",
        "sgld",
        drawing(later_leaves_halved),
        "the variance of the noise is h in all leaves but the first, where it is 2 h",
        Kill("gaussian_limit", "gaussian-network", LIMIT),
        "leaves",
        targets=ANY,
    ),
    planted(
        "sgld-rows-share-noise",
        "sgld",
        drawing(one_row_for_all),
        "the noise of a matrix has the shape of one row, which all rows share",
        Kill("gaussian_limit", "gaussian-network", LIMIT),
        "leaves",
        "streams",
        targets=ANY,
    ),
    planted(
        "sgld-noise-halves-in-single",
        "sgld",
        drawing(halved_in_single),
        "half of the noise in single precision, all of it in double precision",
        Kill("same_tape", "double-well", "z_t in float32 = z_t in float64 at the same draws"),
        "precision",
        targets=PLANE,
        diagnosis=r"float32 and float64 differ",
    ),
    planted(
        "sgld-draw-by-name",
        "sgld",
        drawing(lambda key, tree: jax.tree.map(_normal, normal_like(key, tree))),
        "half of the noise, by a function that has the name of JAX's draw of normals",
        Kill("gaussian_limit", "gaussian-correlated-2d", LIMIT),
        "variance",
        targets=PLANE,
        diagnosis=r"variance of the noise has the factor 0\.25",
    ),
    planted(
        "sgld-schedule-inside",
        "sgld",
        ScheduleInside,
        "the n-th step has the size h (1 + n / 1000)^(-1/3), by a count that the state hides",
        Kill("closed_state", "double-well", "step(key, state) = step(key, pack(unpack(state)))"),
        "state",
        targets=PLANE,
        diagnosis=r"from step \d+",
    ),
    planted(
        "sgld-cools-down",
        "sgld",
        CoolsDown,
        "no noise in the last 10,000 of every 50,000 steps, by a count that the state hides",
        Kill("closed_state", "double-well", "step(key, state) = step(key, pack(unpack(state)))"),
        "state",
        targets=PLANE,
        diagnosis=r"put forward by \d+ changes the step",
    ),
    planted(
        "sgld-of-the-first-hundred",
        "sgld",
        of_the_first(100),
        "minibatches of the first hundred data, however many there are: right for up to a hundred",
        Kill("every_datum_enters", "tiny-gaussian-data", "every block of many data changes the step"),
        "data",
    ),
    planted(
        "sgld-leaves-the-last-datum-out",
        "sgld",
        all_but_the_last,
        "the last datum is in no minibatch, and each of the others in one more often for it",
        Kill("every_datum_enters", "tiny-gaussian-data", "every block of many data changes the step"),
        "data",
    ),
    planted(
        "sgld-reads-arrays-apart",
        "sgld",
        reads_arrays_apart,
        "each array of the data has a permutation of its own: the label of a feature is that of another row",
        Kill("every_datum_enters", "tiny-gaussian-data", "every block of many data changes the step"),
        "data",
    ),
    planted(
        "sgld-drops-estimator-state",
        "sgld",
        DropsEstimatorState,
        "every step gives the estimator its first state: one that goes through the data in epochs stays at the first",
        Kill("every_input_matters", "gaussian-pytree", "the estimate depends on the state that the last one returned"),
        "state",
        "gradient-noise",
    ),
    planted(
        "leimkuhler-matthews-carries-a-count",
        "leimkuhler-matthews",
        CarriesACount,
        "half of each draw from step 2000 on, by a count that is carried beside the draw",
        Kill("closed_state", "double-well", "what goes on by itself does not matter"),
        "state",
        targets=PLANE,
        diagnosis=r"set back to its value at the start",
    ),
    planted(
        "mala-keeps-rejected-gradient",
        "mala",
        KeepsRejectedGradient,
        "the gradient of a rejected proposal is that of the next proposal and its density",
        Kill("closed_state", "double-well", "step(key, state) = step(key, pack(unpack(state)))"),
        "metropolis",
        "state",
        targets=PLANE,
        diagnosis=r"from step \d+",
    ),
)

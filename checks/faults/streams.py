"""Planted bugs of random streams and of precision."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.dynamics.underdamped import MomentumState
from sgmcmc_verification.samplers.entry import known_noise
from sgmcmc_verification.samplers.numerics.noise import injected_noise
from sgmcmc_verification.samplers.overdamped.sgld import SGLD, SGLDState
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC


def drawing(draw) -> type[SGLD]:
    """SGLD whose white noise is draw(key, position)."""

    @dataclass(frozen=True)
    class Planted(SGLD):
        def step(self, key, state, step_size, estimator):
            gradient_key, noise_key = jax.random.split(key)
            estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
            noise = draw(noise_key, state.position)
            scale = jnp.sqrt(2 * self.temperature * step_size)
            move = lambda x, g, n: x - step_size * g + scale.astype(n.dtype) * n
            return SGLDState(jax.tree.map(move, state.position, estimate.gradient, noise), estate)

    return Planted


def one_key_for_all(key, tree):
    """The same key for every leaf."""
    return jax.tree.map(lambda leaf: jax.random.normal(key, jnp.shape(leaf), jnp.result_type(leaf)), tree)


def constant_key(key, tree):
    """A key of its own, the same in every step."""
    del key
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(jax.random.key(0), len(leaves))
    draws = [jax.random.normal(k, jnp.shape(x), jnp.result_type(x)) for k, x in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, draws)


def from_the_host(key, tree):
    """NumPy's generator: drawn once, when the step is traced, and a constant of the compiled step."""
    generator = np.random.default_rng()
    del key
    return jax.tree.map(
        lambda leaf: jnp.asarray(generator.standard_normal(jnp.shape(leaf)), jnp.result_type(leaf)), tree
    )


@dataclass(frozen=True)
class NoiseSharesGradientKey(SGLD):
    """The injected noise and the estimator use the same key."""

    def step(self, key, state, step_size, estimator):
        estimate, estate = estimator.estimate(key, state.estate, state.position)
        leaf_noise = one_key_for_all(key, state.position)
        scale = jnp.sqrt(2 * self.temperature * step_size)
        move = lambda x, g, n: x - step_size * g + scale * n
        return SGLDState(jax.tree.map(move, state.position, estimate.gradient, leaf_noise), estate)


def moved_key(key, change):
    """The key whose raw words are change(last word)."""
    data = jax.random.key_data(key)
    return jax.random.wrap_key_data(data.at[-1].set(change(data[-1])))


def raw_keys(change) -> type[SGLD]:
    """SGLD whose leaf i draws from the raw words of its own key, the last of them changed by change(word, i)."""

    @dataclass(frozen=True)
    class Planted(SGLD):
        def step(self, key, state, step_size, estimator):
            estimate, estate = estimator.estimate(jax.random.fold_in(key, 0), state.estate, state.position)
            scale = jnp.sqrt(2 * self.temperature * step_size)
            leaves, structure = jax.tree.flatten(state.position)
            moved = []
            for i, (x, g) in enumerate(zip(leaves, jax.tree.leaves(estimate.gradient), strict=True)):
                own = moved_key(key, lambda word, i=i: change(word, jnp.uint32(i)))
                noise = jax.random.normal(own, jnp.shape(x), jnp.result_type(x))
                moved.append(x - step_size * g + scale.astype(noise.dtype) * noise)
            return SGLDState(jax.tree.unflatten(structure, moved), estate)

    return Planted


class CountedState(NamedTuple):
    """Position, estimator's state, and what is kept beside them."""

    position: Any
    estate: Any
    kept: Any


@dataclass(frozen=True)
class NoiseHalves(SGLD):
    """SGLD whose noise is halved from step 500 on."""

    def init(self, key, position, estimator):
        return CountedState(position, estimator.init(key, position), jnp.zeros((), jnp.int32))

    def step(self, key, state: Any, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        factor = jnp.where(state.kept < 500, 1.0, 0.5)
        noise = injected_noise(noise_key, state.position, 2 * self.temperature * step_size)
        move = lambda x, g, n: x - step_size * g + factor.astype(n.dtype) * n
        return CountedState(jax.tree.map(move, state.position, estimate.gradient, noise), estate, state.kept + 1)


@dataclass(frozen=True)
class HiddenAverage(SGLD):
    """SGLD preconditioned by an average of squared gradients that `unpack` does not show and `pack` begins anew."""

    def init(self, key, position, estimator):
        ones = jax.tree.map(jnp.ones_like, position)
        return CountedState(position, estimator.init(key, position), ones)

    def step(self, key, state: Any, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        mean = jax.tree.map(lambda v, g: 0.9 * v + 0.1 * g * g, state.kept, estimate.gradient)
        noise = injected_noise(noise_key, state.position, 2 * self.temperature * step_size)
        scale = jax.tree.map(lambda v: 1 / (1 + jnp.sqrt(v)), mean)
        move = lambda x, g, n, a: x - step_size * a * g + jnp.sqrt(a) * n
        return CountedState(jax.tree.map(move, state.position, estimate.gradient, noise, scale), estate, mean)


def one_constant_key(key, tree):
    """The first coordinate of each leaf draws from a key of its own, the same in every step."""
    noise = injected_noise(key, tree, 1.0)
    same = jax.random.normal(jax.random.key(17))
    return jax.tree.map(lambda n: jnp.ravel(n).at[0].set(same.astype(n.dtype)).reshape(n.shape), noise)


def halved(x):
    """x to the precision of bfloat16 where it is of single precision; in double precision it is kept."""
    # a conversion there and back is optimised away
    return jax.lax.reduce_precision(x, 8, 7) if x.dtype == jnp.float32 else x


@dataclass(frozen=True)
class DriftInHalf(SGLD):
    """x - h grad U is rounded to bfloat16 before the noise is added: the drift of a small step is lost."""

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        noise = injected_noise(noise_key, state.position, 2 * self.temperature * step_size)
        move = lambda x, g, n: halved(halved(x) - step_size * g) + n
        return SGLDState(jax.tree.map(move, state.position, estimate.gradient, noise), estate)


@dataclass(frozen=True)
class FrictionInHalf(SGHMC):
    """The factor 1 - h C is computed in bfloat16: it is 1 below half a unit in the last place."""

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        h, C = step_size, self.friction
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        noise = injected_noise(noise_key, state.momentum, 2 * C * self.temperature * h)
        decay = halved(jnp.asarray(1 - h * C))
        r = jax.tree.map(lambda b, g, n: decay * b - h * g + n, state.momentum, estimate.gradient, noise)
        return MomentumState(jax.tree.map(lambda a, b: a + h * b, state.position, r), r, estate)


@dataclass(frozen=True)
class Promotes(SGLD):
    """A constant array of double precision in the update."""

    def step(self, key, state, step_size, estimator):
        after = super().step(key, state, step_size, estimator)
        one = jnp.ones((), jnp.float64)
        return SGLDState(jax.tree.map(lambda x: one * x, after.position), after.estate)


INDEPENDENT = "noise of chains, seeds, keys, steps and leaves is not correlated"
SINGLE = "E f(z_n) in single precision = E f(z_n) in double precision, up to round-off"

DEFECTS: tuple[Defect, ...] = (
    planted(
        "sgld-leaves-share-a-key",
        "sgld",
        drawing(one_key_for_all),
        "leaves of equal shape get the same draws",
        Kill("chains_and_leaves_independent", "gaussian-pytree", "noise of different leaves is not the same draw"),
        "streams",
        source="jax-ml/jax#14597",
        targets=("gaussian-1d-scaled",),
    ),
    planted(
        "sgld-key-ignored",
        "sgld",
        drawing(constant_key),
        "every step draws from key 0",
        Kill("key_discipline", "gaussian-pytree", "the key decides the result"),
        "streams",
        "state",
        source="biosustain/Maud#51",
        targets=("gaussian-1d-scaled",),
    ),
    planted(
        "sgld-noise-of-the-trace",
        "sgld",
        drawing(from_the_host),
        "the noise is drawn by NumPy when the step is traced: a constant of the compiled step",
        Kill("jit_vmap_loop_agree", "gaussian-pytree", "step = jit(step)"),
        "streams",
        targets=("gaussian-1d-scaled",),
    ),
    planted(
        "sgld-noise-shares-gradient-key",
        "sgld-compensated",
        NoiseSharesGradientKey,
        "the estimator's noise and the injected noise are the same draw",
        Kill("key_discipline", "gaussian-pytree", "a key is consumed once"),
        "streams",
        "gradient-noise",
        targets=("gaussian-1d-scaled",),
        estimator=known_noise,
    ),
    planted(
        "sgld-neighbouring-keys",
        "sgld",
        raw_keys(lambda word, i: (word & ~jnp.uint32(1)) ^ (i << 20)),
        "the last bit of a key is lost: the keys s and s + 1 give the same draws",
        Kill("streams_independent", "gaussian-pytree", INDEPENDENT),
        "streams",
        targets=("gaussian-1d-scaled",),
    ),
    planted(
        "sgld-leaf-keys-by-addition",
        "sgld",
        raw_keys(lambda word, i: word + i),
        "leaf i draws from the key s + i: what leaf i + 1 draws, leaf i draws from the next key",
        Kill("streams_independent", "gaussian-pytree", INDEPENDENT),
        "streams",
        targets=("gaussian-1d-scaled",),
    ),
    planted(
        "sgld-noise-halves",
        "sgld",
        NoiseHalves,
        "the noise is halved from step 500 on, which a count in the state decides",
        Kill("closed_state", "double-well", "step(key, state) = step(key, pack(unpack(state)))"),
        "state",
        diagnosis=r"from step 501",
    ),
    planted(
        "sgld-hidden-average",
        "sgld",
        HiddenAverage,
        "a preconditioner without Gamma from an average that unpack does not show and pack begins anew",
        Kill("closed_state", "double-well", "step(key, state) = step(key, pack(unpack(state)))"),
        "state",
        diagnosis=r"the state holds more than unpack shows",
    ),
    planted(
        "sgld-one-constant-key",
        "sgld",
        drawing(one_constant_key),
        "one coordinate draws from a key that is the same in every step",
        Kill("fresh_draws", "double-well", "each draw consumes a key of its own"),
        "streams",
        diagnosis=r"normal draw .* is (repeated|the same for different keys)",
    ),
    planted(
        "sgld-drift-in-half",
        "sgld",
        DriftInHalf,
        "x - h grad U of single precision in bfloat16, which loses a drift of less than half a unit",
        Kill("same_tape", "gaussian-1d-scaled", "z_t in float32 = z_t in float64 at the same draws"),
        "precision",
    ),
    planted(
        "sghmc-friction-in-half",
        "sghmc",
        FrictionInHalf,
        "1 - h C in bfloat16: no friction at all in small steps",
        Kill("float32_law", "gaussian-1d-scaled", SINGLE),
        "precision",
    ),
    planted(
        "sgld-promotes-to-double",
        "sgld",
        Promotes,
        "a constant of double precision turns positions of single precision into double",
        Kill("shapes_and_dtypes", "gaussian-1d-scaled", "step keeps the dtype"),
        "precision",
    ),
)

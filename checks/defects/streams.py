"""Planted bugs of random streams and of dtypes."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from checks.defects.defect import Defect, Kill, planted
from samplers.registry import known_noise
from samplers.sgld import SGLD, SGLDState


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


@dataclass(frozen=True)
class Promotes(SGLD):
    """A constant array of double precision in the update."""

    def step(self, key, state, step_size, estimator):
        after = super().step(key, state, step_size, estimator)
        one = jnp.ones((), jnp.float64)
        return SGLDState(jax.tree.map(lambda x: one * x, after.position), after.estate)


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
        "sgld-promotes-to-double",
        "sgld",
        Promotes,
        "a constant of double precision turns positions of single precision into double",
        Kill("shapes_and_dtypes", "gaussian-1d-scaled", "step keeps the dtype"),
        "precision",
    ),
)

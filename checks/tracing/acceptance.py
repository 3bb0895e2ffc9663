"""The uniform of an accept step: a step that it decides either way, and the share of its values that accept."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.tracing.noise_tape import Noise
from sgmcmc_verification.checks.tracing.step_map import JaxStep


def decided(step: JaxStep, z: Any, normals: Any, integers: Any, share: Any, h: Any) -> jax.Array:
    """z' of a step of size h whose uniform lies a share of the way from what accepts (0) to what rejects (1)."""
    accept, reject = step.accepting
    uniform = jnp.reshape(accept + share * (reject - accept), (1,))
    return step.program(Noise(normals, uniform, integers), z, h)[0]


def accepted_share(accepts: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Largest share in [0, 1] at which `accepts` is true, up to which it is: by 60 bisections."""

    def halve(bounds: tuple[jax.Array, jax.Array], _: None) -> tuple[tuple[jax.Array, jax.Array], None]:
        low, high = bounds
        middle = 0.5 * (low + high)
        accepted = accepts(middle)
        return (jnp.where(accepted, middle, low), jnp.where(accepted, high, middle)), None

    (low, high), _ = jax.lax.scan(halve, (jnp.zeros(()), jnp.ones(())), None, length=60)
    return 0.5 * (low + high)

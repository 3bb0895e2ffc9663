"""Ends of one step from many states, with many values of its normal draws, at one size of the step."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.programs.trees import placed
from sgmcmc_verification.checks.tracing.host_branching import ScriptedGenerator, Unintercepted
from sgmcmc_verification.checks.tracing.noise_tape import Noise
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep

Ends = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""States (P, n) and normals (P, k) -> (z', position') (P, n + d)."""


def quiet(step: JaxStep, extreme: bool = False) -> Callable[[jax.Array], Noise]:
    """Normals -> these; integers are the first of their values, uniforms accept a proposal and exchange no chains.

    A uniform of 2^-53, whose logarithm is -37, accepts what is not very unlikely; with `extreme` it is 0.
    """
    accept = 1.0 if step.exchanging else step.accepting[0] if step.program.count("uniform") == 1 else 0.0
    accept = round(accept) if extreme else accept
    uniforms = placed(np.full(step.program.count("uniform"), float(accept)))
    integers = placed(np.zeros(step.program.count("integer"), int))
    return lambda normals: Noise(normals, uniforms, integers)


def normals_of(step: JaxStep | HostStep) -> int:
    """Number of normals that a step draws. Raises NotApplicable for a host step that draws something else."""
    if isinstance(step, JaxStep):
        return step.noise_size
    counter = ScriptedGenerator(np.zeros(0))
    try:
        step.once(counter, step.template.flat, 1e-3)
    except Unintercepted as error:
        raise OutOfReach(f"the step draws from a law that is not normal: {error}") from None
    return counter.used


def ends_of(step: JaxStep | HostStep, h: float, extreme: bool = False) -> Ends:
    """The ends of steps of size h; all draws but the normals are those of `quiet`."""
    if isinstance(step, HostStep):

        def host(states: np.ndarray, normals: np.ndarray) -> np.ndarray:
            pairs = zip(states, normals, strict=True)
            return np.stack([np.concatenate(step.once(ScriptedGenerator(e), z, h)) for z, e in pairs])

        return host
    noise = quiet(step, extreme)
    one = lambda z, e: jnp.concatenate(step.program(noise(e), z, jnp.asarray(h)))
    many = jax.jit(jax.vmap(one))
    return lambda states, normals: np.asarray(many(states, normals))

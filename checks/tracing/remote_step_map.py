"""The one-step map of a sampler that another process holds, as a program like those of the noise tape.

The counterpart of `checks.tracing.noise_tape` for samplers with a method `one_step` (a bridge to another environment):
a step is a batch of numbers out, a batch of numbers back, and every check that needs no more than that runs on it.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.tracing.noise_tape import Noise, Program, record
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.capabilities import NoisyEstimator
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True, eq=False)
class MappedProgram:
    """(noise, z, h) -> (z', position'), the library's step with its draws given; stands in for `Program`.

    The draws of the library come first on the tape, then those of the estimator, whose gradient noise
    eta = estimate - grad U at the position enters the step as data.

    Attributes:
        sampler: has `one_step` and `loaded`.
        size: of the position; it comes first in z.
        eta: the estimator's noise as a program of the flat position, or None for exact gradients.
    """

    sampler: Any
    size: int
    eta: Program | None

    @property
    def unintercepted(self) -> tuple[str, ...]:
        """Names of draws that cannot be given."""
        return (*self.sampler.loaded.escaped, *(self.eta.unintercepted if self.eta else ()))

    @property
    def ranges(self) -> tuple[int, ...]:
        """The number of values of each integer."""
        return (*self.sampler.loaded.ranges, *(self.eta.ranges if self.eta else ()))

    def _own(self) -> tuple[int, int, int]:
        held = self.sampler.loaded
        return held.normals, held.uniforms, len(held.ranges)

    def count(self, kind: str) -> int:
        """Number of draws of one kind that are given."""
        own = dict(zip(("normal", "uniform", "integer"), self._own(), strict=True))
        return own[kind] + (self.eta.count(kind) if self.eta else 0)  # pyright: ignore[reportArgumentType]

    def __call__(self, noise: Noise, z, h):
        """Full variable and position after one step at given noise."""
        own = self._own()
        mine = [jnp.asarray(part)[:n] for part, n in zip(noise, own, strict=True)]
        rest = Noise(*(jnp.asarray(part)[n:] for part, n in zip(noise, own, strict=True)))
        eta = self.eta(rest, z[: self.size]) if self.eta else jnp.zeros(self.size)
        shape = jax.ShapeDtypeStruct(z.shape, jnp.result_type(float))
        new = jax.pure_callback(self._evaluate, shape, z, *mine, eta, h, vmap_method="broadcast_all")
        return new, new[: self.size]

    def _evaluate(self, z, normals, uniforms, integers, eta, h):
        """All of a batch at once; h does not vary in it."""
        batch = np.shape(z)[:-1]
        flat = lambda a, kind: np.asarray(a, kind).reshape(-1, np.shape(a)[-1])
        rows = int(np.prod(batch, dtype=int))
        columns = [flat(a, np.float64) if np.shape(a)[-1] else np.zeros((rows, 0)) for a in (z, normals, uniforms)]
        whole = flat(integers, np.int32) if np.shape(integers)[-1] else np.zeros((rows, 0), np.int32)
        sizes = np.unique(np.asarray(h))
        if len(sizes) != 1:
            raise ValueError("step_size: must be the same for a whole batch of a mapped step")
        return self.sampler.one_step(*columns, whole, flat(eta, np.float64), float(sizes[0])).reshape(np.shape(z))


@dataclass(frozen=True, eq=False)
class MappedRecursion:
    """The same as a recursion in z alone: stands in for the program of the whole state."""

    program: MappedProgram

    def __getattr__(self, name):
        return getattr(self.program, name)

    def __call__(self, noise: Noise, z, h):
        """Full variable after one step at given noise."""
        return self.program(noise, z, h)[0]


def mapped_program(target: Target, sampler: Any, estimator: Any) -> MappedProgram:
    """The one-step map of `sampler` with the gradients of `estimator`, which must have no state of its own."""
    if type(estimator) in (Exact, HostExact):
        return MappedProgram(sampler, target.size, None)
    if isinstance(estimator, NoisyEstimator):  # also one of the host, whose own draws cannot be traced
        estimator = KnownNoise(target, estimator.covariance)
    if jax.tree.leaves(estimator.init(jax.random.key(0), target.example)):
        raise NotImplementedError("the map of another process with an estimator that has a state of its own")

    def eta(x):
        position = target.unravel(x)
        estimate = estimator.estimate(jax.random.key(0), (), position)[0].gradient
        return ravel_pytree(estimate)[0] - ravel_pytree(jax.grad(target.potential)(position))[0]

    return MappedProgram(sampler, target.size, record(eta, jnp.asarray(ravel_pytree(target.example)[0])))

"""A first position for a sampler on a target, and the state of a chain that begins there."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.programs.evaluation import evaluated
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import Claims, ParticleLaw
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.trees import Key, Position, State
from sgmcmc_verification.targets.target import Target


def of_particles(sampler: Any) -> bool:
    """True if a sampler claims to move particles; a stranger's sampler may have no claims yet."""
    claims = getattr(sampler, "claims", None)
    return isinstance(claims, Claims) and ParticleLaw in claims


def start_position(sampler: Any, target: Target) -> Any:
    """A position that `init` takes: the example of the target, or six particles around it for a particle method."""
    if not of_particles(sampler):
        return target.example
    manifold = target.manifold
    if not manifold.is_linear:
        # along geodesics of the example, so that the constraint holds
        along = [
            jax.tree.map(
                lambda x, i=i: jnp.cos(i + jnp.arange(x.size)).reshape(x.shape).astype(x.dtype), target.example
            )
            for i in range(6)
        ]
        ends = [
            manifold.geodesic(target.example, manifold.tangent(target.example, u), 0.3 * i)[0]
            for i, u in enumerate(along)
        ]
        return jax.tree.map(lambda *x: jnp.stack(x), *map(manifold.project_roundoff, ends))
    spread = lambda x: jnp.stack([x * (1 + 0.1 * i) + 0.2 * i for i in range(6)]).astype(jnp.result_type(x))
    return jax.tree.map(spread, target.example)


def program_of_first_step(sampler: Sampler, estimator: Estimator, position: Position, h: float) -> core.ClosedJaxpr:
    """The program from a key and a position to the state after `init` and one step.

    Raises whatever `init` or `step` raises.
    """
    one = lambda key, x: sampler.step(key, sampler.init(key, x, estimator), h, estimator)
    return jax.make_jaxpr(one)(jax.random.key(0), position)


def start_state(
    sampler: Sampler, key: Key, position: Position, estimator: Estimator, init: Callable[..., State] | None = None
) -> State:
    """`sampler.init(key, position, estimator)`, without a compilation for each of its operations where it is on JAX.

    Raises whatever `init` raises. `init` is the function of a key and a position where it is evaluated already.
    """
    begin = lambda key, position: sampler.init(key, position, estimator)
    return begin(key, position) if on_host(sampler) else in_one_program(begin, key, position, program=init)


def in_one_program(function: Callable[..., Any], *args: Any, program: Callable[..., Any] | None = None) -> Any:
    """`function(*args)`, without a compilation for each of its operations where it can be traced.

    Raises whatever the function raises: one that cannot be traced may run all the same. `program` is the same function
    where it is evaluated already.
    """
    try:
        return (program or evaluated(function))(*args)
    except RAISED:
        return function(*args)

"""The first state of a chain, by one program instead of one for each operation of `init`."""

import jax
from jax.extend import core

from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.trees import Key, Position, State

FEW = 2
"""Operations that are run one by one: to compile them together costs more."""


def first_state(sampler: Sampler, key: Key, position: Position, estimator: Estimator) -> State:
    """`sampler.init(key, position, estimator)`, compiled if it can be traced; raises whatever `init` raises.

    The leaves of a state that is compiled are arrays, as they are after the first step that is compiled.
    """
    init = lambda key: sampler.init(key, position, estimator)
    if on_host(sampler):
        return init(key)
    try:
        program, shape = jax.make_jaxpr(init, return_shape=True)(key)
    except Exception:  # it may run all the same: `init` need not be traceable
        return init(key)
    if len(program.eqns) <= FEW:
        return init(key)
    return jax.tree.unflatten(jax.tree.structure(shape), jax.jit(core.jaxpr_as_fun(program))(key))

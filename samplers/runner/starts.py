"""Initial positions of the chains of a run."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.interface.capabilities import TargetEstimator
from sgmcmc_verification.samplers.interface.sampler import Estimator, Position
from sgmcmc_verification.samplers.runner.config import RunConfig
from sgmcmc_verification.samplers.validation import require


def initial_positions(estimator: Estimator, config: RunConfig) -> Position:
    """Initial position of each chain, with a leading chain axis.

    Args:
        estimator: gives the example of its target, if it has one, where the configuration has no position.
        config: position, positions, number of chains.

    Raises:
        ValueError: if the positions do not fit the target or the number of chains, or are not finite.
    """
    position, positions = config.position, config.positions
    if position is not None and positions is not None:
        raise ValueError("positions: give either `position`, for all chains, or `positions`, one per chain")
    example = estimator.target.example if isinstance(estimator, TargetEstimator) else None
    if positions is None:
        name = "position"
        position = example if position is None else position
        if position is None:
            raise ValueError("position: the estimator has no example position; give `position` or `positions`")
        _check_position(name, position, example, 0)
        chains = config.num_chains or 1
        positions = jax.tree.map(lambda a: jnp.broadcast_to(jnp.asarray(a), (chains, *jnp.shape(a))), position)
    else:
        name = "positions"
        _check_position(name, positions, example, 1)
        chains = _check_chains(positions, config.num_chains)
        positions = jax.tree.map(jnp.asarray, positions)
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(positions)):
        raise ValueError(f"{name}: holds a number that is not finite; start every chain at a finite position")
    first = config.first_chain
    require(first <= 2**32 - chains, f"first_chain: must be at most {2**32 - chains}", first)
    return positions


def _check_chains(positions: Position, num_chains: int | None) -> int:
    """The number of chains of these positions."""
    sizes = {jnp.shape(leaf)[0] for leaf in jax.tree.leaves(positions)}
    require(len(sizes) == 1, "positions: all leaves need the same leading chain axis", sorted(sizes))
    chains = sizes.pop()
    require(chains >= 1, "positions: needs at least one chain", chains)
    if num_chains not in (None, chains):
        raise ValueError(f"num_chains: is {num_chains}, but `positions` has a leading chain axis of {chains}")
    return chains


def _check_position(name: str, value: Position, example: Position | None, extra: int) -> None:
    """Check structure, dtype and shape of a position with `extra` leading axes."""
    leaves = jax.tree.leaves(value)
    if not leaves:
        raise ValueError(f"{name}: has no numbers; give a pytree of float arrays")
    for leaf in leaves:
        floating = hasattr(leaf, "dtype") or isinstance(leaf, float)
        if not floating or not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            raise ValueError(f"{name}: must be a pytree of float arrays, got a leaf {leaf!r}")
        if jnp.ndim(leaf) < extra:
            raise ValueError(f"{name}: every leaf needs a leading chain axis, got shape {jnp.shape(leaf)}")
    if example is None:
        return
    if jax.tree.structure(value) != jax.tree.structure(example):
        expected = jax.tree.structure(example)
        raise ValueError(f"{name}: must have the structure {expected}, got {jax.tree.structure(value)}")
    for leaf, like in zip(leaves, jax.tree.leaves(example), strict=True):
        if jnp.shape(leaf)[extra:] != jnp.shape(like):
            chain = "a leading chain axis and " if extra else ""
            raise ValueError(f"{name}: must have {chain}the shape {jnp.shape(like)}, got {jnp.shape(leaf)}")

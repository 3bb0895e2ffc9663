"""One run on several processes, of one machine or of many, by `jax.distributed`.

    jax.distributed.initialize("HOST:PORT", num_processes=2, process_id=RANK)    # RANK is 0 on one, 1 on the other
    run_on_processes(SGLD(), target, jax.random.key(0), step_size=0.1, num_steps=10_000, num_chains=4000)

Every process calls it with the same arguments, takes its part of the chains, and shares these out to its own devices
as `samplers.run.run` does. The chains have nothing to say to each other: only what is returned is exchanged. A chain
has the same random numbers as in a run on one process, and the same samples. The processes need the same number of
devices each (JAX gathers no others).
"""

import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from sgmcmc_verification.samplers.interface.aliases import Tree
from sgmcmc_verification.samplers.interface.sampler import Estimator, Position, Sampler
from sgmcmc_verification.samplers.runner.digests import is_key
from sgmcmc_verification.samplers.runner.run import Run, run
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target


def run_on_processes(
    sampler: Sampler,
    problem: Target | Estimator,
    key: jax.Array,
    *,
    num_chains: int,
    positions: Position | None = None,
    checkpoint: str | os.PathLike | None = None,
    **options: Any,
) -> Run:
    """A run whose chains are shared out to all processes; each returns the whole of it.

    Args:
        sampler: see `samplers.run.run`; one that JAX runs.
        problem: see there.
        key: see there.
        num_chains: of all processes together; a multiple of their number, with two chains or more each, since a
            single chain is compiled without an axis of chains, to another rounding.
        positions: where each chain starts, of all of them.
        checkpoint: each process writes this name with its number at the end, so that the folder may be shared; a run
            is resumed on the same number of processes.
        options: other fields of `samplers.runner.config.RunConfig`.

    Returns:
        The `Run` of all chains, in order, as NumPy arrays (keys stay keys).

    Raises:
        ValueError: if an argument does not fit.
    """
    count, rank = jax.process_count(), jax.process_index()
    require(sampler.backend == "jax", "sampler: must be one that JAX runs", sampler.backend)
    whole = isinstance(num_chains, int | np.integer) and not isinstance(num_chains, bool)
    fits = whole and (count == 1 or (num_chains % count == 0 and num_chains >= 2 * count))
    require(fits, f"num_chains: must be a multiple of the {count} processes, two or more for each", num_chains)
    share = num_chains // count
    first = rank * share
    if positions is not None:
        sizes = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(positions)}
        require(sizes == {(num_chains,)}, f"positions: need a leading axis of {num_chains} chains", sizes)
        positions = jax.tree.map(lambda a: a[first : first + share], positions)
    file = None if checkpoint is None else f"{os.fspath(checkpoint)}.{rank}"
    part = {"num_chains": share, "first_chain": first, "positions": positions, "checkpoint": file}
    mine = run(sampler, problem, key, **part, **options)
    if count == 1:
        return mine
    return Run(
        samples=_everywhere(mine.samples),
        weights=mine.weights,
        state=_everywhere(mine.state),
        position=_everywhere(mine.position),
        nonfinite=_everywhere(mine.nonfinite),
        steps=mine.steps,
        averages=_everywhere(mine.averages),
    )


def _everywhere(tree: Tree) -> Tree:
    """The parts of all processes, one after the other on the leading axis."""

    def gathered(leaf):
        array = np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        whole = np.asarray(multihost_utils.process_allgather(array, tiled=True))
        return jax.random.wrap_key_data(jnp.asarray(whole), impl=jax.random.key_impl(leaf)) if is_key(leaf) else whole

    return jax.tree.map(gathered, tree)

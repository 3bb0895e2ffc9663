"""Chains of a JAX sampler: their states and running averages, moved by the compiled loop on all devices.

`samplers.runner.host.HostEngine` has the same methods for samplers that Python runs.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from sgmcmc_verification.samplers.interface.aliases import Tree
from sgmcmc_verification.samplers.interface.sampler import Position, State
from sgmcmc_verification.samplers.runner.compiled import (
    Carry,
    Devices,
    Kernel,
    Layout,
    Program,
    Stretch,
    avals_of,
    cached,
    carry_specs,
    chain_first,
    chain_last,
    chain_mesh,
    program,
)
from sgmcmc_verification.samplers.runner.config import Setup
from sgmcmc_verification.samplers.runner.digests import digest, digest_arrays, is_key
from sgmcmc_verification.samplers.runner.schedules import Constant, draw_weights, step_sizes


def devices_for(chains: int) -> Devices:
    """As many of this process's devices as share the chains evenly, with at least two chains each.

    A single chain of a device would be compiled without an axis of chains, to another rounding.
    """
    local = jax.local_devices()
    count = max(n for n in range(1, len(local) + 1) if n == 1 or (chains % n == 0 and chains >= 2 * n))
    return tuple(local[:count])


@functools.lru_cache(maxsize=16)
def _beginning(kernel: Kernel) -> Callable[[jax.Array, Position], tuple[State, Tree, jax.Array | None]]:
    """Compiled: initial states, chains last, zeros like the collected values, and which gradients are finite."""

    def begin(keys, positions):
        keys = jax.vmap(jax.random.fold_in, (0, None))(keys, 0)
        states = jax.vmap(kernel.init)(keys, positions)
        values = jax.vmap(kernel.value)(states)
        finite = None
        if "gradient" in kernel.sampler.needs:
            estimator = kernel.estimator
            estates = jax.vmap(estimator.init)(keys, positions)
            gradients = jax.vmap(lambda k, e, x: estimator.estimate(k, e, x)[0].gradient)(keys, estates, positions)
            finite = finite_chains(gradients)
        return chain_last(states), chain_last(jax.tree.map(jnp.zeros_like, values)), finite

    return jax.jit(begin)


def finite_chains(tree: Tree) -> jax.Array:
    """Boolean array (chains,): all numbers of a chain are finite; leading chain axis."""
    leaves = [a for a in jax.tree.leaves(tree) if jnp.issubdtype(a.dtype, jnp.inexact)]
    checks = [jnp.all(jnp.isfinite(a), axis=tuple(range(1, a.ndim))) for a in leaves]
    return functools.reduce(jnp.logical_and, checks)


class JaxEngine:
    """Chains of a sampler with `backend == "jax"`, batched on the last axis of every array.

    The last axis is the one that a CPU runs through vector registers: with a thousand chains of ten coordinates the
    other order is several times slower. All devices of this process take part (`devices_for`).
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        s = setup
        self.dtype = jnp.result_type(*jax.tree.leaves(s.positions))
        numbers = jnp.uint32(s.config.first_chain) + jnp.arange(s.chains, dtype=jnp.uint32)
        self.keys = jax.vmap(jax.random.fold_in, (None, 0))(s.key, numbers)

        kernel = Kernel(s.sampler, s.estimator, s.config.collected)
        state, average, finite = cached(_beginning, kernel)(self.keys, s.positions)
        bad = 0 if finite is None else int(np.sum(~np.asarray(finite)))
        if bad:
            raise ValueError(
                f"positions: the gradient is not finite at the initial position of {bad} of {s.chains} chains; "
                "start inside the support of the target and check its data for NaN"
            )
        self.structure = jax.tree.structure(average)
        self.devices = devices_for(s.chains)
        averaged = s.config.averaged
        self.carry = self._placed(Carry(state, average if averaged else None, jnp.zeros((), self.dtype)))
        constant = isinstance(s.config.schedule, Constant)
        layout = Layout(
            s.chains, self.devices, s.config.thin, s.config.block_size, s.config.hoisted, constant, averaged
        )
        self.program: Program = cached(program, kernel, layout, avals_of(self.keys, state, self.dtype))

    def _placed(self, carry: Carry) -> Carry:
        """Every chain on its device."""
        if len(self.devices) == 1:
            return carry
        mesh = chain_mesh(self.devices)
        return jax.tree.map(lambda a, spec: jax.device_put(a, NamedSharding(mesh, spec)), carry, carry_specs(carry))

    def _segment(self, start: int, steps: int, draws: int) -> Tree:
        schedule, thin = self.setup.config.schedule, self.setup.config.thin
        count = draws * thin or steps
        if isinstance(schedule, Constant):
            h = jnp.asarray(schedule.step_size, self.dtype)
        else:
            h = jnp.asarray(step_sizes(schedule, np.arange(start, start + count)), self.dtype)
        weights = draw_weights(schedule, start + thin * np.arange(1, draws + 1))
        first = jnp.asarray(start + 1, jnp.uint32)  # the key of `init` has number 0
        stretch = Stretch(first, jnp.asarray(count, jnp.int32), h, jnp.asarray(weights, self.dtype))
        self.carry, samples = self.program.segment(self.program.parts.consts, self.keys, self.carry, stretch)
        return samples

    def advance(self, start: int, steps: int) -> None:
        """Take steps number start, start + 1, ... and keep nothing."""
        self._segment(start, steps, 0)

    def draw(self, start: int, draws: int) -> Tree:
        """Take draws * thin steps; return the collected values, axes (chain, draw, ...), None if averaged."""
        return self._segment(start, 0, draws)

    def state(self) -> State:
        """The states, leading chain axis."""
        return chain_first(self.carry.state)

    def position(self) -> Position:
        """The positions, leading chain axis."""
        return jax.vmap(self.setup.sampler.position)(self.state())

    def averages(self) -> Tree:
        """The weighted averages of the collected values, leading chain axis."""
        return chain_first(self.carry.average)

    def finite(self) -> np.ndarray:
        """Boolean array (chains,): the position of a chain is finite."""
        return np.asarray(finite_chains(self.position()))

    def identity(self) -> dict[str, str]:
        """Digests of all that determines the samples."""
        s = self.setup
        collect = jax.make_jaxpr(s.config.collected)(jax.tree.map(lambda a: a[0], s.positions))
        return {
            "sampler and target": digest(self.program.parts.jaxpr),
            "data": digest_arrays(self.program.parts.consts),
            "collect": digest(collect),
            "key": f"{jax.random.key_impl(s.key)} {digest_arrays(s.key)}",
            "positions": digest_arrays(s.positions),
        }

    def dump(self) -> list[np.ndarray]:
        """The chains as arrays."""
        return [np.asarray(jax.random.key_data(a) if is_key(a) else a) for a in jax.tree.leaves(self.carry)]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Inverse of `dump`; takes its arrays off the front of the list."""
        leaves, structure = jax.tree.flatten(self.carry)
        mine, arrays[:] = arrays[: len(leaves)], arrays[len(leaves) :]
        wrap = lambda old, new: (
            jax.random.wrap_key_data(jnp.asarray(new), impl=jax.random.key_impl(old))
            if is_key(old)
            else jnp.asarray(new)
        )
        carry = jax.tree.unflatten(structure, [wrap(a, b) for a, b in zip(leaves, mine, strict=True)])
        self.carry = self._placed(carry)

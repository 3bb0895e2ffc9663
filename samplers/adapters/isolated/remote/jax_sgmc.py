"""JaxSGMC behind the bridge: its integrators and solvers, in the units of the suite. Runs in its own environment.

Integrators and solvers are the library's, put together as its module `alias` does. Data reach them through a
`batch_fn` and a `full_data_map` of this file (the library's need host callbacks): one datum eta with log-likelihood
-U(theta) - eta . theta, so that gradients are exact but for eta and full potentials exact. The step size h is the
library's `step_size` throughout. A temperature goes where the library's schedules put it.

    kernel              z
    sgld                theta
    sgld_rms            theta, v
    re_sgld             theta of the cold and of the hot chain
    sghmc               theta (a full refresh each step)
    obabo, sggmc        theta, r
    amagold             theta, r
"""

import importlib
from collections.abc import Callable
from importlib import metadata
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

Options = dict[str, Any]
Law = Any
"""The `Law` of the worker, which is a program of its own and cannot be imported."""
State = Any
"""An object of the library: a state, a schedule."""
Tree = Any
"""A pytree of arrays like a position."""
Z = tuple[jax.Array, ...]
"""The full variable: arrays like the flat position, or scalars."""


def module(name: str) -> ModuleType:
    """Import a module of the library."""
    return importlib.import_module(f"jax_sgmc.{name}")


def versions() -> dict[str, str]:
    """The library's version; imports it."""
    module("alias")
    return {"jax-sgmc": metadata.version("jax-sgmc")}


class Kernel:
    """A solver; `advance` is the library's update."""

    map_index = 1
    init: Callable[..., State]
    """Position -> state of the library."""
    update: Callable[..., tuple]
    """State and schedules -> state after a step, and statistics."""
    read: Callable[[State, jax.Array], Z]
    """State and step size -> full variable z."""

    def __init__(self, law: Law, options: Options) -> None:
        self.law, self.options = law, dict(options)
        self.integrator, self.solver = module("integrator"), module("solver")
        self.schedule = module("scheduler").schedule
        information = module("data.core").MiniBatchInformation
        self.information = information(observation_count=1, mask=jnp.ones(1), batch_size=1)
        flat = lambda theta: ravel_pytree(theta)[0]
        likelihood = lambda theta, row: -law.potential(flat(theta)) - row @ flat(theta)
        prior = lambda theta: 0.0 * jnp.sum(flat(theta))
        potential = module("potential")
        self.potential = potential.minibatch_potential(prior, likelihood, strategy="vmap")
        self.full = potential.full_potential(prior, likelihood, strategy="vmap")

    def batch(self) -> tuple:
        """(init, get, release): the state of the data is eta itself."""
        init = lambda **kwargs: jnp.zeros_like(self.law.example)
        get = lambda eta, information=False: (eta, (eta[None], self.information))
        return init, get, None

    def full_map(self) -> tuple:
        """(init, map, release) over the one datum, without gradient noise."""
        rows = jnp.zeros((1, len(self.law.example)))

        def apply(
            body: Callable[..., tuple],
            data_state: State,
            carry: State,
            masking: bool = False,
            information: bool = False,
        ) -> tuple:
            result, carry = body((rows, self.information), jnp.ones(1), carry)
            return data_state, (result, carry)

        return (lambda **kwargs: jnp.zeros(1)), apply, None

    def tree(self, x: jax.Array) -> Tree:
        """Position from a flat one."""
        return self.law.unravel(x)

    def flat(self, tree: Tree) -> jax.Array:
        """Flat position (d,)."""
        return ravel_pytree(tree)[0]

    def at(self, h: jax.Array, temperature: float | None = None) -> State:
        """The library's schedule at a step size and temperature."""
        temperature = self.options.get("temperature", 1.0) if temperature is None else temperature
        return self.schedule(step_size=h, temperature=temperature, burn_in=1.0, accept=True)

    def first(self, key: jax.Array, x: jax.Array, h: jax.Array) -> Z:
        """Full variable z as the library starts it at the flat position x."""
        return self.read(self.begin(key, x), h)

    def start(self, key: jax.Array, z: Z, h: jax.Array, eta: jax.Array) -> State:
        """State of the library at z, its caches computed."""
        return self.with_eta(self.placed(self.begin(key, z[0]), z), eta)

    def begin(self, key: jax.Array, x: jax.Array) -> State:
        """State of the library at the flat position x."""
        return self.init(self.tree(x), key=key)

    def placed(self, state: State, z: Z) -> State:
        """State with the parts of z beside the position."""
        return state

    def with_eta(self, state: State, eta: jax.Array) -> State:
        """State whose minibatch is eta."""
        return state._replace(data_state=eta)

    def with_key(self, state: State, key: jax.Array) -> State:
        """State with a key."""
        return state._replace(key=key)

    def advance(self, i: int, key: jax.Array, state: State, h: jax.Array, eta: jax.Array) -> State:
        """Take the library's step number i."""
        state = self.with_eta(self.with_key(state, key), eta)
        return self.update(state, self.at(h))[0]


class Langevin(Kernel):
    """alias.sgld."""

    def __init__(self, law: Law, options: Options, rms: bool = False) -> None:
        super().__init__(law, options)
        self.rms = rms
        adaption = module("adaption").rms_prop() if rms else None
        self.init, self.update, _ = self.solver.sgmc(
            self.integrator.langevin_diffusion(self.potential, self.batch(), adaption=adaption)
        )

    def begin(self, key: jax.Array, x: jax.Array) -> State:
        """State of the library at the flat position x."""
        kwargs = {k: v for k, v in self.options.items() if k in ("alpha", "lmbd")} if self.rms else None
        return self.init(self.tree(x), key=key, adaption_kwargs=kwargs)

    def placed(self, state: State, z: Z) -> State:
        """State with the parts of z beside the position."""
        if not self.rms:
            return state
        adapt = state.adapt_state
        return state._replace(adapt_state=adapt._replace(state=(z[1], *adapt.state[1:])))

    def read(self, state: State, h: jax.Array) -> Z:
        """Full variable z of a state."""
        theta = self.flat(state.latent_variables)
        return (theta, state.adapt_state.state[0]) if self.rms else (theta,)


class Hamiltonian(Kernel):
    """alias.sghmc and alias.obabo: an integrator alone."""

    def __init__(self, law: Law, options: Options, name: str) -> None:
        super().__init__(law, options)
        self.name = name
        build = {"sghmc": self.integrator.friction_leapfrog, "obabo": self.integrator.obabo}[name]
        self.init, self.update, _ = self.solver.sgmc(
            build(
                self.potential,
                self.batch(),
                steps=int(self.options["integration_steps"]),
                friction=self.options["friction"],
            )
        )

    def placed(self, state: State, z: Z) -> State:
        """State with the parts of z beside the position."""
        return state._replace(momentum=self.tree(z[1])) if self.name == "obabo" else state

    def read(self, state: State, h: jax.Array) -> Z:
        """Full variable z of a state."""
        theta = self.flat(state.positions)
        return (theta, self.flat(state.momentum)) if self.name == "obabo" else (theta,)


class Metropolis(Kernel):
    """alias.amagold and alias.sggmc."""

    def __init__(self, law: Law, options: Options, name: str) -> None:
        super().__init__(law, options)
        steps, friction = int(self.options["integration_steps"]), self.options["friction"]
        build = {"amagold": self.integrator.reversible_leapfrog, "sggmc": self.integrator.obabo}[name]
        integrator = build(self.potential, self.batch(), steps, friction)
        self.init, self.update, _ = getattr(self.solver, name)(integrator, self.full, self.full_map())

    def placed(self, state: State, z: Z) -> State:
        """State with the parts of z beside the position."""
        return state._replace(integrator_state=state.integrator_state._replace(momentum=self.tree(z[1])))

    def with_eta(self, state: State, eta: jax.Array) -> State:
        """State whose minibatch is eta."""
        return state._replace(integrator_state=state.integrator_state._replace(data_state=eta))

    def with_key(self, state: State, key: jax.Array) -> State:
        """State with a key."""
        one, two = jax.random.split(key)
        return state._replace(key=one, integrator_state=state.integrator_state._replace(key=two))

    def read(self, state: State, h: jax.Array) -> Z:
        """Full variable z of a state."""
        inner = state.integrator_state
        return self.flat(inner.positions), self.flat(inner.momentum)


class ReplicaExchange(Kernel):
    """alias.re_sgld: both chains start at the given position."""

    def __init__(self, law: Law, options: Options) -> None:
        super().__init__(law, options)
        integrator = self.integrator.langevin_diffusion(self.potential, self.batch())
        self.init, self.update, _ = self.solver.parallel_tempering(integrator)

    def begin(self, key: jax.Array, x: jax.Array) -> State:
        """State of the library at the flat position x."""
        return self.init(self.tree(x), self.tree(x), key=key)

    def placed(self, state: State, z: Z) -> State:
        """State with the parts of z beside the position."""
        hot = state[1]._replace(latent_variables=self.tree(z[1]))
        return (state[0], hot, *state[2:])

    def with_eta(self, state: State, eta: jax.Array) -> State:
        """State whose minibatch is eta."""
        return (*(chain._replace(data_state=eta) for chain in state[:2]), *state[2:])

    def with_key(self, state: State, key: jax.Array) -> State:
        """State with a key."""
        keys = jax.random.split(key, 3)
        chains = (chain._replace(key=k) for chain, k in zip(state[:2], keys[:2], strict=True))
        return (*chains, *state[2:5], keys[2])

    def advance(self, i: int, key: jax.Array, state: State, h: jax.Array, eta: jax.Array) -> State:
        """Take the library's step number i."""
        state = self.with_eta(self.with_key(state, key), eta)
        return self.update(state, self.at(h), self.at(h, self.options["hot_temperature"]))[0]

    def read(self, state: State, h: jax.Array) -> Z:
        """Full variable z of a state."""
        return tuple(self.flat(chain.latent_variables) for chain in state[:2])


def kernel(name: str, law: Law, options: Options) -> Kernel:
    """The kernel that a request names."""
    if name in ("sgld", "sgld_rms"):
        return Langevin(law, options, rms=name == "sgld_rms")
    if name in ("sghmc", "obabo"):
        return Hamiltonian(law, options, name)
    if name in ("amagold", "sggmc"):
        return Metropolis(law, options, name)
    if name == "re_sgld":
        return ReplicaExchange(law, options)
    raise ValueError(f"no such kernel: {name}")

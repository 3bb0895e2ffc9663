"""Fortuna behind the bridge: its SG-MCMC integrators, in the units of the suite. Runs in its own environment.

The integrators are the library's optax transformations, applied as its trainer applies them: the gradient of the log
joint density, summed over the data, goes in, and what comes out is added to the parameters. Their `step_schedule` is a
function of the number of the step; here it is constant. Schedules and preconditioners are the library's.

    kernel              step size s of the library, decay a         z
    sgld                s = h, a = 0                                theta
    sghmc               s = h^2, a = 1 - friction h                 theta, r
    sghmc_resampled     the same, L steps from momentum zero        theta
    sgld_rms            s = h, a = 0                                theta, v
    sghmc_rms           s = h^2, a = 1 - friction h                 theta, r, v
    cyclical_sgld       step number `count`, whose s is h           theta
"""

import importlib
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
"""An object of the library: a state, a transformation."""
Tree = Any
"""A pytree of arrays like a position."""
Z = tuple[jax.Array, ...]
"""The full variable: arrays like the flat position, or scalars."""


def module(name: str) -> ModuleType:
    """Import a module of the library."""
    return importlib.import_module(f"fortuna.prob_model.posterior.sgmcmc.{name}")


def versions() -> dict[str, str]:
    """The library's version; imports it."""
    module("cyclical_sgld.cyclical_sgld_integrator")
    return {"aws-fortuna": metadata.version("aws-fortuna")}


class Kernel:
    """An integrator on positions; `advance` is its update."""

    map_index = 1

    def __init__(self, name: str, law: Law, options: Options) -> None:
        self.name, self.law, self.options = name, law, dict(options)
        self.family, _, self.more = name.partition("_")
        preconditioners = module("sgmcmc_preconditioner")
        self.preconditioner = preconditioners.identity_preconditioner()
        if self.more == "rms":
            chosen = {"running_average_factor": self.options["alpha"], "eps": self.options["eps"]}
            self.preconditioner = preconditioners.rmsprop_preconditioner(**chosen)

    def tree(self, x: jax.Array) -> Tree:
        """Position from a flat one."""
        return self.law.unravel(x)

    def flat(self, tree: Tree) -> jax.Array:
        """Flat position (d,)."""
        return ravel_pytree(tree)[0]

    def integrator(self, key: jax.Array, h: jax.Array) -> State:
        """The library's transformation at a step size."""
        overdamped = self.family == "sgld"
        size = h if overdamped else h * h
        return module("sghmc.sghmc_integrator").sghmc_integrator(
            momentum_decay=0.0 if overdamped else 1 - self.options["friction"] * h,
            momentum_resample_steps=self.options.get("integration_steps"),
            rng_key=key,
            step_schedule=lambda count: size,
            preconditioner=self.preconditioner,
        )

    def begin(self, key: jax.Array, x: jax.Array, h: jax.Array) -> State:
        """Parameters and the library's state at the flat position x."""
        params = self.tree(x)
        return params, self.integrator(key, h).init(params)

    def first(self, key: jax.Array, x: jax.Array, h: jax.Array) -> Z:
        """Full variable z as the library starts it at the flat position x."""
        return self.read(self.begin(key, x, h), h)

    def start(self, key: jax.Array, z: Z, h: jax.Array, eta: jax.Array) -> State:
        """State of the library at z, its caches computed."""
        params, inner = self.begin(key, z[0], h)
        rest = list(z[1:])
        if self.family == "sghmc" and self.more != "resampled":
            inner = inner._replace(momentum=self.tree(rest.pop(0)))
        if self.more == "rms":
            held = inner.preconditioner_state._replace(grad_moment_estimates=self.tree(rest.pop(0)))
            inner = inner._replace(preconditioner_state=held)
        return params, inner

    def update(self, integrator: State, params: Tree, inner: State, eta: jax.Array) -> State:
        """Take one step of the library's transformation, with eta added to the gradient of U."""
        optax = importlib.import_module("optax")
        gradient = jnp.negative(jax.grad(self.law.potential)(self.flat(params)) + eta)
        updates, inner = integrator.update(self.tree(gradient), inner, params)
        return optax.apply_updates(params, updates), inner

    def advance(self, i: int, key: jax.Array, state: State, h: jax.Array, eta: jax.Array) -> State:
        """Take the library's step number i."""
        integrator = self.integrator(key, h)
        params, inner = state[0], state[1]._replace(rng_key=key)
        if self.more != "resampled":
            return self.update(integrator, params, inner, eta)
        begun = inner.count
        for count in range(self.options["integration_steps"]):  # numbers: the library branches on them
            params, inner = self.update(integrator, params, inner._replace(count=count), eta)
        return params, inner._replace(count=begun)

    def read(self, state: State, h: jax.Array) -> Z:
        """Full variable z of a state."""
        params, inner = state
        out = [self.flat(params)]
        if self.family == "sghmc" and self.more != "resampled":
            out.append(self.flat(inner.momentum))
        if self.more == "rms":
            out.append(self.flat(inner.preconditioner_state.grad_moment_estimates))
        return tuple(out)


class Positive:
    """A step size that is being traced: the library's test of its argument, s >= 0, needs a number."""

    def __init__(self, value: jax.Array) -> None:
        self.value = value

    def __ge__(self, other: object) -> bool:
        return True

    def __rmul__(self, other: jax.Array) -> jax.Array:
        return other * self.value


class Cyclical(Kernel):
    """The integrator of cyclical SGLD at one step of its cycle, of which the library's schedule makes h."""

    def integrator(self, key: jax.Array, h: jax.Array) -> State:
        """The library's transformation at a step size."""
        length, count = self.options["cycle_length"], self.options["count"]
        cosine = module("sgmcmc_step_schedule").cyclical_cosine_schedule_with_const_burnin
        share = cosine(init_step_size=1.0, burnin_steps=0, cycle_length=length)(count)
        return module("cyclical_sgld.cyclical_sgld_integrator").cyclical_sgld_integrator(
            rng_key=key,
            init_step_size=Positive(h / share),
            cycle_length=length,
            exploration_ratio=self.options["exploration_ratio"],
            preconditioner=self.preconditioner,
        )

    def start(self, key: jax.Array, z: Z, h: jax.Array, eta: jax.Array) -> State:
        """State of the library at z, its caches computed."""
        return self.begin(key, z[0], h)

    def advance(self, i: int, key: jax.Array, state: State, h: jax.Array, eta: jax.Array) -> State:
        """Take the library's step number i."""
        params, inner = state
        # every step is the one of that number: a chain of them has a constant step size
        begun = inner.sgld_state.count
        sgld = inner.sgld_state._replace(rng_key=key, count=self.options["count"])
        params, inner = self.update(self.integrator(key, h), params, inner._replace(sgld_state=sgld), eta)
        return params, inner._replace(sgld_state=inner.sgld_state._replace(count=begun))

    def read(self, state: State, h: jax.Array) -> Z:
        """Full variable z of a state."""
        return (self.flat(state[0]),)


def kernel(name: str, law: Law, options: Options) -> Kernel:
    """The kernel that a request names."""
    if name == "cyclical_sgld":
        return Cyclical(name, law, options)
    if name not in ("sgld", "sghmc", "sghmc_resampled", "sgld_rms", "sghmc_rms"):
        raise ValueError(f"no such kernel: {name}")
    return Kernel(name, law, options)

"""SGMCMCJax behind the bridge: its kernels, in the units of the suite. Runs in the library's own environment.

Every kernel is built by the library's own `build_*_kernel`, with `data` a single row eta and the log-likelihood
-U(theta) - eta . theta: one datum, batch size 1, so that the gradient is exact but for eta. With the option
`batch_size` on a target that is a sum over data the rows are the target's data and the minibatches the library's own.

    kernel      dt of the library, in the step size h of the suite     z
    sgld*       h                                                      theta
    psgld       2 h (its drift is dt / 2)                              theta, v
    sgldAdam    2 h                                                    theta, m, v
    sghmc*      h^2, alpha = friction h; a velocity is h r             theta (a full refresh each step)
    sgnht*      h^2, a = A h; velocity h r, thermostat h xi            theta, r, xi
    baoab       h                                                      theta, r
    badodab*    h                                                      theta, r, xi
    diffusions.baoab, diffusions.badodab: the same without the library's kernel, which calls the second half twice
"""

import importlib
from importlib import metadata
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

Options = dict[str, Any]
Law = Any
"""The `Law` of the worker, which is a program of its own and cannot be imported."""
State = Any
"""A state of the library."""
Tree = Any
"""A pytree of arrays like a position."""
Z = tuple[jax.Array, ...]
"""The full variable: arrays like the flat position, or scalars."""


def versions() -> dict[str, str]:
    """The library's version; imports it."""
    importlib.import_module("sgmcmcjax.kernels")
    return {"sgmcmcjax": metadata.version("sgmcmcjax")}


PARTS = {
    "sgld": (),
    "psgld": ("v",),
    "sgldAdam": ("m", "v"),
    "sghmc": (),
    "sgnht": ("r", "xi"),
    "baoab": ("r",),
    "badodab": ("r", "xi"),
}
"""Fields of the state of a diffusion beside theta, in the library's order."""


class Kernel:
    """A kernel; `advance` is the library's."""

    map_index = 1

    def __init__(self, name: str, law: Law, options: Options) -> None:
        self.kernels = importlib.import_module("sgmcmcjax.kernels")
        self.family = name.removesuffix("CV").removesuffix("_SVRG")
        self.name, self.law, self.options = name, law, dict(options)
        self.batch_size = self.options.pop("batch_size", None)
        self.parts = PARTS[self.family]
        if self.family == "sgldAdam":
            self.map_index = 10**6  # beyond the bias correction of the first steps
        if self.batch_size is not None and law.data is None:
            raise ValueError("batch_size: the target is not a sum over data")

    def tree(self, x: jax.Array) -> Tree:
        """Position from a flat one."""
        return self.law.unravel(x)

    def flat(self, tree: Tree) -> jax.Array:
        """Flat position (d,)."""
        return ravel_pytree(tree)[0]

    def built(self, h: jax.Array, eta: jax.Array) -> tuple:
        """The library's (init, kernel, get_params) at step size h."""
        law, options = self.law, dict(self.options)
        if self.batch_size is None:
            loglikelihood = lambda theta, row: -law.potential(self.flat(theta)) - row @ self.flat(theta)
            logprior = lambda theta: 0.0 * jnp.sum(self.flat(theta))
            data, batch_size = (eta[None],), 1
        else:
            leaves, structure = jax.tree_util.tree_flatten(law.data)
            row_of = lambda rows: jax.tree_util.tree_unflatten(structure, rows)
            loglikelihood = lambda theta, *rows: -law.datum(self.flat(theta), row_of(rows))
            logprior = lambda theta: -law.prior(self.flat(theta)) - eta @ self.flat(theta)
            data, batch_size = tuple(jnp.asarray(leaf) for leaf in leaves), self.batch_size
        model = {"loglikelihood": loglikelihood, "logprior": logprior, "data": data, "batch_size": batch_size}
        if self.family == "sghmc":
            options["alpha"] = options.pop("friction") * h
            model["dt"] = h * h
        elif self.family == "sgnht":
            options["a"] = options["a"] * h
            model["dt"] = h * h
        elif self.family in ("psgld", "sgldAdam"):
            model["dt"] = 2 * h
        else:
            model["dt"] = h
        if self.name.endswith("CV"):
            options["centering_value"] = self.tree(law.example)
        return getattr(self.kernels, f"build_{self.name}_kernel")(**model, **options)

    def scales(self, h: jax.Array) -> tuple:
        """Values of the library for one unit of each part."""
        return {"sgnht": (h, h)}.get(self.family, (1.0,) * len(self.parts))

    def assembled(self, z: Z, h: jax.Array, diffusion_state: State) -> State:
        """The library's diffusion state with the parts of z."""
        if not self.parts:
            return diffusion_state
        leaves = jax.tree_util.tree_leaves(self.tree(z[0]))
        columns = [leaves]
        for name, part, scale in zip(self.parts, z[1:], self.scales(h), strict=True):
            if name == "xi":
                columns.append([scale * t for t in jnp.atleast_1d(part)])
            else:
                columns.append([scale * leaf for leaf in jax.tree_util.tree_leaves(self.tree(part))])
        packed = tuple(list(row) for row in zip(*columns, strict=True))  # as the library packs it
        return diffusion_state._replace(packed_state=packed)

    def first(self, key: jax.Array, x: jax.Array, h: jax.Array) -> Z:
        """Full variable z as the library starts it at the flat position x."""
        init, _, _ = self.built(h, jnp.zeros_like(x))
        return self.read(init(key, self.tree(x)), h)

    def start(self, key: jax.Array, z: Z, h: jax.Array, eta: jax.Array) -> State:
        """State of the library at z, its caches computed."""
        init, _, _ = self.built(h, eta)
        state = init(key, self.tree(z[0]))
        return state._replace(diffusion_state=self.assembled(z, h, state.diffusion_state))

    def advance(self, i: int, key: jax.Array, state: State, h: jax.Array, eta: jax.Array) -> State:
        """Take the library's step number i."""
        _, kernel, _ = self.built(h, eta)
        return kernel(i, key, state)

    def read(self, state: State, h: jax.Array) -> Z:
        """Full variable z of a state."""
        return self.parts_of(state.diffusion_state.packed_state, h)

    def parts_of(self, packed: tuple, h: jax.Array) -> Z:
        """z from the library's packed state."""
        theta = self.flat([row[0] for row in packed])
        out = [theta]
        for k, (name, scale) in enumerate(zip(self.parts, self.scales(h), strict=True), start=1):
            if name == "xi":
                xi = jnp.stack([jnp.asarray(row[k], theta.dtype) for row in packed]) / scale
                out.append(xi[0] if len(packed) == 1 else xi)
            else:
                out.append(self.flat([row[k] for row in packed]) / scale)
        return tuple(out)


class Palindrome(Kernel):
    """A splitting scheme of the module `diffusions`, its two halves put together as the library documents it.

    `update1` with the gradient at theta, then `update2` with the gradient at the new theta.
    """

    def __init__(self, name: str, law: Law, options: Options) -> None:
        super().__init__(name, law, options)
        self.diffusions = importlib.import_module("sgmcmcjax.diffusions")

    def gradient(self, theta: Tree, eta: jax.Array) -> Tree:
        """Gradient of log pi at theta, with -eta added."""
        return jax.tree_util.tree_map(jnp.negative, self.tree(jax.grad(self.law.potential)(self.flat(theta)) + eta))

    def halves(self, h: jax.Array) -> tuple:
        """The library's (init, (update1, update2), get_params) at step size h."""
        return getattr(self.diffusions, self.name)(h, **self.options)

    def first(self, key: jax.Array, x: jax.Array, h: jax.Array) -> Z:
        """Full variable z as the library starts it at the flat position x."""
        return self.read((self.halves(h)[0](self.tree(x)), None), h)

    def start(self, key: jax.Array, z: Z, h: jax.Array, eta: jax.Array) -> State:
        """State of the library at z, its caches computed."""
        state = self.assembled(z, h, self.halves(h)[0](self.tree(z[0])))
        return state, self.gradient(self.tree(z[0]), eta)

    def advance(self, i: int, key: jax.Array, state: State, h: jax.Array, eta: jax.Array) -> State:
        """Take the library's step number i."""
        _, (update1, update2), theta = self.halves(h)
        inner, gradient = state
        inner = update1(i, key, gradient, inner)
        gradient = self.gradient(theta(inner), eta)
        return update2(i, key, gradient, inner), gradient

    def read(self, state: State, h: jax.Array) -> Z:
        """Full variable z of a state."""
        return self.parts_of(state[0].packed_state, h)


def kernel(name: str, law: Law, options: Options) -> Kernel:
    """The kernel that a request names."""
    if name in ("diffusions.baoab", "diffusions.badodab"):
        return Palindrome(name.removeprefix("diffusions."), law, options)
    if name.removesuffix("CV").removesuffix("_SVRG") not in PARTS:
        raise ValueError(f"no such kernel: {name}")
    return Kernel(name, law, options)

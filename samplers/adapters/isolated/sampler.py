"""A sampler on the far side of the bridge, under the interface of this suite (`backend == "host"`)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from sgmcmc_verification.samplers.adapters.isolated.client import Client, client
from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeError
from sgmcmc_verification.samplers.estimators.host import estimator_key, is_exact
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Tree
from sgmcmc_verification.samplers.interface.capabilities import NoisyEstimator
from sgmcmc_verification.samplers.interface.claims import Claims
from sgmcmc_verification.targets.target import Target

BATCHES = (8, 512, 8192, 65536)
"""Sizes that a batch of one-step maps is filled up to."""


class BridgeState(NamedTuple):
    """The full variable z, the number of steps that were taken, and the estimator's own state.

    The library's own state is made from z in every step and its caches (the gradient at theta) are computed anew;
    `chains` keeps it.
    """

    z: Tree
    index: int  # pyright: ignore[reportIncompatibleMethodOverride]  # hides tuple.index
    estate: EstimatorState


class Loaded(NamedTuple):
    """Handle of a sampler on a target that a worker holds.

    Attributes:
        worker: the process.
        handle: its number there.
        normals, uniforms: how many of them the one-step map takes.
        ranges: of its integers, the number of values of each.
        shapes: of the parts of z; the first is that of the flat position.
        escaped: names of draws that the one-step map cannot be given.
    """

    worker: Client
    handle: int
    normals: int
    uniforms: int
    ranges: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    escaped: tuple[str, ...]


def describe(target: Target) -> dict[str, Any]:
    """Describe a target for the other environment: its name, or a Gaussian as numbers."""
    from sgmcmc_verification.targets.registry import TARGETS

    if target.name in {row.name for row in TARGETS}:
        return {"name": target.name}
    if target.gaussian is not None and isinstance(target.example, np.ndarray | jax.Array):
        law = {"precision": target.gaussian.precision, "mean": target.gaussian.mean, "example": target.example}
        return {name: np.asarray(value, np.float64).tolist() for name, value in law.items()}
    raise BridgeError(
        f"target {target.name}: only the suite's own analytic targets, and Gaussians, exist in the other environment"
    )


@dataclass(frozen=True, eq=False)
class Bridged:
    """A library's kernel in another environment.

    Gradient noise crosses as data: the kernel's gradient of U is the exact one plus eta = estimate - grad U, one eta
    per step, whatever the number of its inner iterations.

    Args:
        environment: of `bridge.environments`, or a worker that is running already.
        kernel: the name that its far side knows.
        target: what it samples.
        claims: of the sampler.
        options: of the kernel, JSON values.
        point: the NamedTuple of z = (position, ...); None if z is the position.
    """

    environment: str | Client
    kernel: str
    target: Target
    claims: Claims
    options: Mapping[str, float]
    point: Callable[..., Tree] | None = None

    backend = "host"
    needs = frozenset({"gradient"})

    @property
    def loaded(self) -> Loaded:
        """The kernel in the worker, which is started when it is first needed.

        Raises:
            BridgeMissing: if the environment is not built.
        """
        return _load(client(self.environment), self.kernel, self.target, json.dumps(self.options, sort_keys=True))

    @property
    def library_versions(self) -> dict[str, str]:
        """Versions in the other environment: the library's, and that of its jax."""
        worker = client(self.environment)
        return {f"jax of {worker.name}" if name == "jax" else name: v for name, v in worker.versions.items()}

    def init(self, key: np.random.Generator, position: Position, estimator: Estimator) -> BridgeState:
        """Start a chain at a position."""
        flat = np.concatenate([np.ravel(np.asarray(leaf, np.float64)) for leaf in jax.tree.leaves(position)])
        held = self.loaded
        # a step size has to be given; what a library starts from does not depend on it in the units of the suite
        out, _ = held.worker.request("first", {"x": flat}, handle=held.handle, h=1.0, seed=_seed(key))
        return BridgeState(self._tree(out["z"]), 0, estimator.init(estimator_key(key, estimator), position))

    def step(self, key: np.random.Generator, state: BridgeState, step_size: float, estimator: Estimator) -> BridgeState:
        """Take one step."""
        eta, estate = gradient_noise(self.target, estimator, key, state.estate, self.position(state))
        held = self.loaded
        arrays = {"z": _flat(state.z), "eta": eta}
        meta = {"handle": held.handle, "h": float(step_size), "index": state.index, "seed": _seed(key)}
        out, _ = held.worker.request("step", arrays, **meta)
        return BridgeState(self._tree(out["z"]), state.index + 1, estate)

    def position(self, state: BridgeState) -> Position:
        """Position of a state."""
        return state.z if self.point is None else state.z[0]

    def unpack(self, state: BridgeState) -> Tree:
        """Full variable z of a state."""
        return state.z

    def pack(self, key: np.random.Generator, z: Tree, estimator: Estimator) -> BridgeState:
        """State with the full variable z; caches are computed anew."""
        position = z if self.point is None else z[0]
        # not the first step, in which some libraries draw a momentum over the given one
        return BridgeState(z, 1, estimator.init(estimator_key(key, estimator), position))

    def one_step(
        self,
        z: np.ndarray,
        normals: np.ndarray,
        uniforms: np.ndarray,
        integers: np.ndarray,
        eta: np.ndarray,
        step_size: float,
        seed: int = 0,
    ) -> np.ndarray:
        """The one-step map z -> z' of the library's code, its draws given.

        Args:
            z: (B, n).
            normals, uniforms, integers: (B, number of draws of the kind), in the order of the calls.
            eta: (B, d), added to the gradient of U.
            step_size: h > 0.
            seed: of draws that cannot be given; changes nothing if there are none.
        """
        held = self.loaded
        arrays = {"z": z, "normals": normals, "uniforms": uniforms, "integers": integers, "eta": eta}
        rows = len(z)
        # few shapes, so that few of them are compiled
        size = next((n for n in BATCHES if n >= rows), rows)
        padded = {name: np.concatenate([a, np.repeat(a[-1:], size - rows, axis=0)]) for name, a in arrays.items()}
        out, _ = held.worker.request("map", padded, handle=held.handle, h=float(step_size), seed=seed)
        return out["z"][:rows]

    def chain_variables(
        self, rng: np.random.Generator, starts: Tree, step_size: float, num_steps: int, estimator: Estimator
    ) -> np.ndarray:
        """z (N, n) of independent chains after `num_steps` steps of the library's own, its own state kept throughout.

        Args:
            rng: `numpy.random.Generator`.
            starts: (N, n) values of z, or positions: (N, d) or a pytree of arrays (N, ...), from which the library
                makes the rest of its state.
            step_size: h > 0.
            num_steps: steps of each chain.
            estimator: exact, or with Gaussian noise of a known `covariance` (d, d).

        Raises:
            BridgeError: for another estimator.
        """
        leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(starts)]
        rows = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)
        root = np.zeros((self.target.size, self.target.size))
        covariance = estimator.covariance if isinstance(estimator, NoisyEstimator) else None
        if covariance is not None and np.any(covariance):
            root = np.linalg.cholesky(covariance)
        elif covariance is None and not is_exact(estimator):
            raise BridgeError(
                f"estimator: bridged chains take exact gradients or noise of known covariance, not {estimator!r}"
            )
        held = self.loaded
        meta = {"handle": held.handle, "h": float(step_size), "steps": int(num_steps), "seed": _seed(rng)}
        full = rows.shape[1] != self.target.size
        return held.worker.request("chains", {"starts": rows, "root": root}, full=full, **meta)[0]["z"]

    def chains(
        self, rng: np.random.Generator, positions: Tree, step_size: float, num_steps: int, estimator: Estimator
    ) -> np.ndarray:
        """End positions (N, d) of independent chains; see `chain_variables`."""
        return self.chain_variables(rng, positions, step_size, num_steps, estimator)[:, : self.target.size]

    def _tree(self, flat: np.ndarray) -> Tree:
        """z as a pytree from a flat vector."""
        shapes, parts, at = self.loaded.shapes, [], 0
        for shape in shapes:
            size = int(np.prod(shape, dtype=int))
            part = np.asarray(flat[at : at + size])
            like_position = shape == shapes[0]
            parts.append(self._position(part) if like_position else part.reshape(shape))
            at += size
        return parts[0] if self.point is None else self.point(*parts)

    def _position(self, flat: np.ndarray) -> Position:
        """A position from a flat vector."""
        leaves, structure = jax.tree.flatten(self.target.example)
        ends = np.cumsum([int(np.size(leaf)) for leaf in leaves])[:-1]
        parts = np.split(flat, ends)
        return jax.tree.unflatten(structure, [p.reshape(np.shape(x)) for p, x in zip(parts, leaves, strict=True)])


def bridged(
    environment: str,
    kernel: str,
    target: Target,
    claims: Claims,
    point: Callable[..., Tree] | None = None,
    **options: float,
) -> Bridged:
    """A `Bridged` with its options by name."""
    return Bridged(environment, kernel, target, claims, options, point)


def gradient_noise(
    target: Target, estimator: Estimator, generator: np.random.Generator, estate: EstimatorState, position: Position
) -> tuple[np.ndarray, EstimatorState]:
    """eta (d,) = estimate - grad U at `position`, and the estimator's new state."""
    if is_exact(estimator):
        return np.zeros(target.size), estate
    estimate, estate = estimator.estimate(estimator_key(generator, estimator), estate, position)
    return _flat(estimate.gradient) - _flat(_gradient(target)(position)), estate


@lru_cache(maxsize=32)
def _gradient(target: Target) -> Callable[[Position], Tree]:
    """Gradient of U, compiled once per target."""
    return jax.jit(jax.grad(target.potential))


def _flat(tree: Tree) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(leaf, np.float64)) for leaf in jax.tree.leaves(tree)])


def _seed(generator: np.random.Generator) -> int:
    return int(generator.integers(2**63))


@lru_cache(maxsize=64)
def _load(worker: Client, kernel: str, target: Target, options: str) -> Loaded:
    """A kernel in the worker; the same one for equal options, so that it is compiled once."""
    out, reply = worker.request("load", {}, target=describe(target), kernel=kernel, options=json.loads(options))
    here = _flat(jax.grad(target.potential)(jax.tree.map(jax.numpy.asarray, target.example)))
    gap = np.abs(out["gradient"] - here).max()
    # two versions of jax may order a handful of operations differently
    if not gap <= 1e3 * np.finfo(float).eps * (1 + np.abs(here).max()):
        raise BridgeError(f"target {target.name}: its gradient in the other environment differs by {gap:.2g}")
    shapes = tuple(tuple(shape) for shape in reply["shapes"])
    escaped = tuple(reply["other"])
    held = Loaded(worker, reply["handle"], reply["normals"], reply["uniforms"], tuple(reply["ranges"]), shapes, escaped)
    return held._replace(escaped=(*escaped, *_unseen(held)))


def _unseen(held: Loaded) -> tuple[str, ...]:
    """A note if the one-step map depends on its key: then a draw is taken from elsewhere than from the tape."""
    n = sum(int(np.prod(shape, dtype=int)) for shape in held.shapes)
    generic = lambda width, shift: np.cos(1.9 * np.arange(width) + shift)[None]
    arrays = {
        "z": generic(n, 0.3),
        "normals": generic(held.normals, 0.7),
        "uniforms": np.full((1, held.uniforms), 0.5),
        "integers": np.zeros((1, len(held.ranges)), np.int32),
        "eta": np.zeros((1, held.shapes[0][0])),
    }
    ends = [held.worker.request("map", arrays, handle=held.handle, h=0.01, seed=s)[0]["z"] for s in (0, 1)]
    return () if np.array_equal(*ends, equal_nan=True) else ("a draw of the library",)

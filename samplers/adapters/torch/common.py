"""Positions as tensors, and potentials that carry an estimator's gradient, for the adapters of torch libraries.

A library differentiates the potential that it is given. Here that potential is a torch function whose backward pass is
the gradient of this suite's estimator, so that the library's own autograd call gets `grad U~`, whatever it is made of.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import torch

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.torch.crossing import to_array, to_tensor
from sgmcmc_verification.samplers.estimators.basic import KnownNoise
from sgmcmc_verification.samplers.estimators.host import estimator_key, is_exact
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Tree
from sgmcmc_verification.samplers.interface.capabilities import NoisyEstimator, on_host
from sgmcmc_verification.targets.target import Target

ValueAndGradient = tuple[np.ndarray, list[np.ndarray]]
Change = Callable[[list[np.ndarray], list[np.ndarray]], ValueAndGradient]
"""Leaves of a position and of the target's example -> value and gradient that are added to U~."""


@dataclass(eq=False)
class TorchState:
    """A library's own state (or the object that it changes in place) and the estimator's."""

    inner: Foreign
    estate: EstimatorState


def tensors(position: Position) -> dict[str, torch.Tensor]:
    """The leaves of a position as new tensors, named in order."""
    return {f"leaf{i}": tensor(leaf) for i, leaf in enumerate(jax.tree.leaves(position))}


def tensor(array: Tree) -> torch.Tensor:
    """A tensor that owns a copy of `array`."""
    return to_tensor(array)


def arrays(target: Target, leaves: Iterable[torch.Tensor]) -> Position:
    """A position of NumPy arrays from tensors in the order of `tensors`."""
    owned = [to_array(leaf) for leaf in leaves]
    return jax.tree.unflatten(jax.tree.structure(target.example), owned)


class Potential(torch.autograd.Function):
    """(source, leaves) -> (U~, the leaves of its gradient), differentiable once in U~ with respect to the leaves."""

    @staticmethod
    def forward(source: "Source | Batch", *leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Value and gradient of `source` at the leaves."""
        value, gradient = source([to_array(leaf) for leaf in leaves])
        return (tensor(value), *(tensor(g) for g in gradient))

    @staticmethod
    def setup_context(ctx: Foreign, inputs: tuple, output: tuple[torch.Tensor, ...]) -> None:
        """Keep the gradient for `backward`; only the value is differentiable."""
        del inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output[1:])

    @staticmethod
    def backward(ctx: Foreign, *outer: torch.Tensor) -> tuple:
        """Chain rule in the value."""
        return (None, *(_left(outer[0], g) * g for g in ctx.saved_tensors))

    @staticmethod
    def vmap(info: Foreign, in_dims: tuple, *args: Foreign) -> tuple:
        """Values and gradients of all chains at once, by `Batch.each`."""
        del info
        source, *leaves = args
        batch = [leaf.movedim(d, 0) for leaf, d in zip(leaves, in_dims[1:], strict=True)]
        out = Potential.apply(source.each, *batch)
        return out, (0,) * len(out)


def _left(scalar: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """`scalar` (or one per chain) with trailing axes to multiply `like`."""
    return scalar.reshape(scalar.shape + (1,) * (like.dim() - scalar.dim()))


class Source:
    """U~ and its gradient at one position, from an estimator; keeps the estimator's state.

    Args:
        target: structure of a position.
        estimator: any `Estimator`.
        generator: of the randomness of the estimator.
        estate: state of the estimator.
        change: (value, gradient) to add to U~, None for nothing.
    """

    def __init__(
        self,
        target: Target,
        estimator: Estimator,
        generator: np.random.Generator,
        estate: EstimatorState,
        change: Change | None = None,
    ) -> None:
        leaves, self.structure = jax.tree.flatten(target.example)
        self.centre = [np.asarray(leaf) for leaf in leaves]
        self.estimator, self.generator, self.estate = estimator, generator, estate
        self.change = change

    def __call__(self, leaves: list[np.ndarray]) -> ValueAndGradient:
        """U~ and the leaves of its gradient."""
        key = estimator_key(self.generator, self.estimator)
        position = jax.tree.unflatten(self.structure, leaves)
        estimate, self.estate = self.estimator.estimate(key, self.estate, position)
        value = np.nan if estimate.potential is None else estimate.potential
        gradient = [np.asarray(g, x.dtype) for g, x in zip(jax.tree.leaves(estimate.gradient), leaves, strict=True)]
        value = np.asarray(value, leaves[0].dtype)
        return _plus((value, gradient), self.change, leaves, self.centre)

    def potential(self, leaves: Sequence[torch.Tensor]) -> torch.Tensor:
        """U~ as a scalar tensor that autograd can go through."""
        return Potential.apply(self, *leaves)[0]  # pyright: ignore[reportReturnType]


def _plus(
    found: ValueAndGradient, change: Change | None, leaves: list[np.ndarray], centre: list[np.ndarray]
) -> ValueAndGradient:
    if change is None:
        return found
    value, gradient = change(leaves, centre)
    return found[0] + value, [x + y for x, y in zip(found[1], gradient, strict=True)]


class Batch:
    """U~ and its gradient for N independent chains, whose positions are one array (N, d).

    `potential` is the sum over the chains, whose gradient is each chain's own; `each` keeps one value per chain.

    Raises:
        ValueError: for an estimator of the host that is neither exact nor of known covariance: it cannot be asked for
            all chains at once.
    """

    def __init__(
        self,
        target: Target,
        estimator: Estimator,
        generator: np.random.Generator,
        chains: int,
        change: Change | None = None,
    ) -> None:
        # an exact estimator draws nothing
        self.generator, self.change = None if is_exact(estimator) else generator, change
        self.centre = [np.asarray(target.ravel(target.example))]
        self.init, self.estimate = _batched(target, _vectorised(target, estimator), chains)
        self.estate = None

    def _key(self) -> jax.Array:
        return jax.random.key(0 if self.generator is None else int(self.generator.integers(2**63)))

    def each(self, leaves: list[np.ndarray]) -> ValueAndGradient:
        """Value (N,) of each chain and its gradient."""
        (x,) = leaves
        if self.estate is None:
            self.estate = self.init(self._key(), x)
        value, gradient, self.estate = self.estimate(self._key(), self.estate, x)
        return _plus((np.asarray(value), [np.asarray(gradient)]), self.change, leaves, self.centre)

    def __call__(self, leaves: list[np.ndarray]) -> ValueAndGradient:
        """Sum of U~ over the chains, and its gradient."""
        value, gradient = self.each(leaves)
        return np.asarray(value.sum()), gradient

    def potential(self, leaves: Sequence[torch.Tensor]) -> torch.Tensor:
        """The sum of U~ over the chains as a scalar tensor that autograd can go through."""
        return Potential.apply(self, *leaves)[0]  # pyright: ignore[reportReturnType]


@lru_cache(maxsize=16)
def _vectorised(target: Target, estimator: Estimator) -> Estimator:
    """Return the estimator in a form that JAX can vectorise, one object per estimator."""
    if not on_host(estimator) or is_exact(estimator):
        return estimator
    if not isinstance(estimator, NoisyEstimator):
        raise ValueError("estimator: one with backend 'host' serves one chain at a time; loop over `step` instead")
    return KnownNoise(target, estimator.covariance)


@lru_cache(maxsize=16)
def _batched(
    target: Target, estimator: Estimator, chains: int
) -> tuple[Callable[..., EstimatorState], Callable[..., tuple]]:
    """`init` and `estimate` of an estimator over flat positions (N, d), compiled."""

    def init(key: jax.Array, x: jax.Array) -> EstimatorState:
        return estimator.init(key, target.unravel(x))

    def estimate(key: jax.Array, estate: EstimatorState, x: jax.Array) -> tuple:
        found, estate = estimator.estimate(key, estate, target.unravel(x))
        value = jnp.asarray(jnp.nan) if found.potential is None else found.potential
        return value, target.ravel(found.gradient), estate

    split = lambda key: jax.random.split(key, chains)
    return (
        jax.jit(lambda key, x: jax.vmap(init)(split(key), x)),
        jax.jit(lambda key, estate, x: jax.vmap(estimate)(split(key), estate, x)),
    )

"""Optional abilities of estimators and samplers: an object that has the attribute is used in that way.

Laws are claimed (`samplers.interface.claims`); these say only what may be asked of an object.
"""

from typing import Literal, Protocol, runtime_checkable

import numpy as np

from sgmcmc_verification.samplers.interface.sampler import Estimator, Key, Position, Scalar, Tree
from sgmcmc_verification.targets.target import Target


@runtime_checkable
class AnchoredEstimator(Protocol):
    """Gradients corrected by those at other points: a `centre`, a `snapshot`, or a `table` of one per datum.

    One with a snapshot has `epoch_length`, one with a centre `centre`.
    """

    anchors: Literal["table", "snapshot", "centre"]


@runtime_checkable
class PeriodicEstimator(Protocol):
    """A state with a clock, which reads the same after `period` estimates."""

    @property
    def period(self) -> int:
        """Number of estimates after which a state reads the same."""
        ...


@runtime_checkable
class MinibatchEstimator(Protocol):
    """Sums over minibatches of `batch_size` data."""

    batch_size: int


@runtime_checkable
class NoisyEstimator(Protocol):
    """Gaussian noise of a known covariance (d, d) in the gradient."""

    covariance: np.ndarray


@runtime_checkable
class TargetEstimator(Protocol):
    """Gradients of a known `target`, whose example a chain may start from."""

    target: Target


def on_host(value: object) -> bool:
    """True for an estimator, sampler or kernel that draws from a `numpy.random.Generator`: its `backend` is "host"."""
    return getattr(value, "backend", None) == "host"


@runtime_checkable
class TrajectorySampler(Protocol):
    """A step of `num_steps` steps of an integrator."""

    num_steps: int


@runtime_checkable
class SimultaneousChains(Protocol):
    """A host sampler that moves independent chains at once from positions (N, d)."""

    def chains(self, rng: Key, positions: Position, step_size: Scalar, num_steps: int, estimator: Estimator) -> Tree:
        """End positions (N, d) of N independent chains."""
        ...


@runtime_checkable
class SimultaneousVariables(Protocol):
    """A host sampler that moves independent chains at once from positions (N, d) or full variables (N, n)."""

    def chain_variables(
        self, rng: Key, starts: Position, step_size: Scalar, num_steps: int, estimator: Estimator
    ) -> Tree:
        """Full variables (N, m) at the end of N independent chains."""
        ...


@runtime_checkable
class MappedSampler(Protocol):
    """A sampler of another process whose step is to be had as a map of z and of the numbers that it draws."""

    def one_step(
        self, z: Tree, normals: Tree, uniforms: Tree, integers: Tree, eta: Tree, step_size: Scalar, seed: int = 0
    ) -> np.ndarray:
        """Full variables after one step at given draws."""
        ...


@runtime_checkable
class PartSampler(Protocol):
    """A sampler that moves a part of a position, and shows what the last step made of the rest."""

    def rest(self, state: Tree) -> Tree:
        """Numbers (k,) of the rest after the last step, less those before it."""
        ...


@runtime_checkable
class IsolatedSampler(Protocol):
    """A sampler in an environment of its own, with the versions of the libraries there."""

    @property
    def library_versions(self) -> dict[str, str]:
        """Versions of the libraries behind the sampler, by name."""
        ...

"""Stochastic Cox-Ingersoll-Ross process (SCIR): conditionally conjugate Gamma and Dirichlet laws."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers.dynamics.cox_ingersoll_ross import CountedShape, cir_dynamics
from sgmcmc_verification.samplers.entry import POSITIVE, Row, plain
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, ExactLaw, Source
from sgmcmc_verification.samplers.interface.from_step import PositionVariable
from sgmcmc_verification.samplers.interface.sampler import Estimate, Stateless
from sgmcmc_verification.samplers.validation import require


class SCIRState(NamedTuple):
    """log theta (K,) and the estimator's own state. For shapes far below 1, theta underflows where its log does not."""

    log_position: np.ndarray
    estate: EstimatorState


@dataclass(frozen=True, eq=False)
class CIRSteps(PositionVariable, CountedShape):
    """Steps of exact CIR transitions towards shapes alpha + n^, with counts n^ that are estimated afresh in each.

    Args:
        alpha: prior shape, positive, a scalar or (K,).

    Raises:
        ValueError: if `alpha` is not positive, the position is negative, the step size is not positive, or the
            estimator returns no counts.
    """

    def init(self, key: np.random.Generator, position: np.ndarray, estimator: Estimator) -> SCIRState:
        """Start a chain at a position."""
        position = np.asarray(position, np.float64)
        require(bool(np.all(position >= 0)), "position: must not be negative", position)
        with np.errstate(divide="ignore"):
            log_position = np.log(position)
        return SCIRState(log_position, estimator.init(estimator_key(key, estimator), position))

    def step(self, key: np.random.Generator, state: SCIRState, step_size: float, estimator: Estimator) -> SCIRState:
        """Take one step."""
        from sgmcmc_verification.samplers.positive.cir_transition import cir_logs  # Numba takes half a second to load

        require(step_size > 0, "step_size: must be positive", step_size)
        position = self.position(state)
        estimate, estate = estimator.estimate(estimator_key(key, estimator), state.estate, position)
        if estimate.statistics is None:
            raise ValueError("estimator: SCIR needs unbiased counts; use one that returns `statistics`")
        shape = np.asarray(self.alpha + np.asarray(estimate.statistics))
        return SCIRState(cir_logs(key, self.begin(key, position, shape), shape, float(step_size)), estate)

    def begin(self, key: np.random.Generator, position: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """Start (K,) of the transition."""
        del key, shape
        return position

    def position(self, state: SCIRState) -> np.ndarray:
        """Position of a state."""
        return np.exp(state.log_position)


@dataclass(frozen=True, eq=False)
class SCIR(CIRSteps):
    """Exact CIR transitions for independent Gamma laws whose shapes are estimated afresh in every step.

        a^_j = alpha_j + n^_j,   theta_j' = CIR transition with shape a^_j over the time h

    theta_j ~ Gamma(alpha_j + n_j, 1), so that theta / sum(theta) ~ Dirichlet(alpha + n).

    Source: baker2018large, equation (2.3) and Algorithm 1. Differs from the source in:
        1. the transition is drawn as a Poisson mixture of Gamma laws, and in logs.

    Args:
        alpha: prior shape, positive, a scalar or (K,).

    Error: none for exact counts, at any step size. Unbiased counts of variance v leave the mean exact and add
    tanh(h/2) v to the variance (corollary 3.2).

    Raises:
        ValueError: as `CIRSteps`.
    """

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("baker2018large", "Algorithm 1"),
            ExactLaw(),
            Diffusion(cir_dynamics),
            conditions=("exact counts",),
            spaces=("positive",),
        )

    def chains(
        self, key: np.random.Generator, positions: np.ndarray, step_size: float, num_steps: int, estimator: Estimator
    ) -> np.ndarray:
        """End positions (N, d) of N independent chains: `step` acts on each number by itself, so it moves all at once.

        Args:
            key: a `numpy.random.Generator`.
            positions: starts, (N, d).
            step_size: SDE time of a step.
            num_steps: number of steps.
            estimator: exact counts; the random counts of a minibatch would be the same for all chains.

        Raises:
            ValueError: for any other estimator.
        """
        if not isinstance(estimator, ExactCounts):
            raise ValueError(f"estimator: chains that share {type(estimator).__name__} would not be independent")
        state = self.init(key, positions, estimator)
        for _ in range(num_steps):
            state = self.step(key, state, step_size, estimator)
        return self.position(state)


@dataclass(frozen=True, eq=False)
class ExactCounts(Stateless):
    """The counts of all data, as `statistics`.

    Args:
        counts: n_j (K,), or any array that broadcasts against the position.
    """

    counts: np.ndarray

    backend = "host"

    def estimate(
        self, key: np.random.Generator, estate: EstimatorState, position: np.ndarray
    ) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        del key, position
        return Estimate(None, statistics=np.asarray(self.counts, np.float64)), estate


@dataclass(frozen=True, eq=False)
class CountMinibatch(Stateless):
    """Unbiased counts (N/n) sum_{i in S} e_{z_i} of observed categories z_i, from a random minibatch S.

    The variance of the count of category j with frequency p_j is (N^2 / n) p_j (1 - p_j) with replacement, and
    (N - n) / (N - 1) times that without.

    Args:
        labels: z (N,), integers in 0..K-1.
        categories: K.
        batch_size: n.
        replace: draw with replacement, else a uniform subset.

    Raises:
        ValueError: if `batch_size` does not lie between 1 and N, or a label is out of range.
    """

    labels: np.ndarray
    categories: int
    batch_size: int
    replace: bool = True

    backend = "host"

    def __post_init__(self) -> None:
        total = len(self.labels)
        require(1 <= self.batch_size <= total, f"batch_size: must lie between 1 and {total}", self.batch_size)
        low, high = int(np.min(self.labels)), int(np.max(self.labels))
        require(low >= 0 and high < self.categories, f"labels: must lie in 0..{self.categories - 1}", (low, high))

    def at(self, indices: np.ndarray) -> Estimate:
        """The estimate for given indices (n,)."""
        counts = np.bincount(np.asarray(self.labels)[indices], minlength=self.categories)
        return Estimate(None, statistics=len(self.labels) / self.batch_size * counts)

    def estimate(
        self, key: np.random.Generator, estate: EstimatorState, position: np.ndarray
    ) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        del position
        return self.at(key.choice(len(self.labels), self.batch_size, replace=self.replace)), estate


ENTRIES: tuple[Row, ...] = (
    Row(
        "scir",
        plain(SCIR, alpha=1.5),  # and one count in each coordinate: together the shape of the target
        tiers=("contract", "recipe", "order", "invariance", "geometry"),
        unsupported={
            "generator": "draws Poisson and Gamma variates, not normals",
            "law": "its draws are not normal; invariance is decided exactly in the order tier (defect)",
        },
        targets=POSITIVE,
        step_size=0.5,
        step_power=0.0,
        estimator=lambda target: ExactCounts(np.ones(target.size)),
    ),
)

"""posteriors (0.1.3, torch): its SG-MCMC samplers under the interface of this suite.

Common to all: the library ascends the gradient of a log-posterior that it differentiates itself
(`torch.func`), *summed* as the user wrote it; here it is -U~, whose gradient is the estimator's. Its `lr` is the
epsilon of SDE time, and `temperature` T means the law exp(-(U + kinetic energy) / T). With `sigma` the momentum m has
the law N(0, sigma^2 T) and the mass sigma^2; in the unit-mass variables of this suite r = m / sigma, friction
C = alpha / sigma, thermostat xi / sigma and h = lr / sigma.

`chain_variables` of samplers that act on each coordinate alone moves one batch of N chains with the library's own step;
SGNHT, whose thermostat is a mean over coordinates, is vectorised by `torch.func.vmap`.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING

import jax
import numpy as np

from sgmcmc_verification.samplers.adapters.common import Foreign, load, torch_row
from sgmcmc_verification.samplers.adapters.torch.adapter import TorchMixin
from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.dynamics.underdamped import PhasePoint, langevin_dynamics
from sgmcmc_verification.samplers.entry import TEMPERATURES, Row
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source, StationaryLaw, StationaryMoments
from sgmcmc_verification.samplers.thermostats.common import ThermostatPoint, thermostat_dynamics
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC as ReferenceSGHMC
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target

if TYPE_CHECKING:
    import torch

    from sgmcmc_verification.samplers.adapters.torch.common import Batch, TorchState
    from sgmcmc_verification.samplers.adapters.torch.common import Source as Gradient


def library() -> ModuleType:
    """Import the module `posteriors.sgmcmc`. Raises ImportError that says how to install it."""
    with warnings.catch_warnings():
        # tensordict announces a change of the defaults of its classes at their definition
        warnings.simplefilter("ignore", FutureWarning)
        return load("posteriors.sgmcmc")


@dataclass(frozen=True)
class _Adapter(TorchMixin):
    """Samplers that take one step of the library: its `init` and `update` with draws from the given generator."""

    target: Target

    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        library()

    def _transform(self, source: "Gradient | Batch | None", step_size: float) -> Foreign:
        """The library's transform at a step size, on the potential of `source`."""
        raise NotImplementedError

    def _on(self, source: Foreign) -> Callable[..., tuple]:
        """The log-posterior that the library differentiates: parameters and a batch that is never looked at."""
        import torch

        def log_posterior(parameters: Mapping[str, "torch.Tensor"], batch: Foreign) -> tuple:
            del batch
            leaves = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters.values())
            return -source.potential(leaves), torch.tensor([])

        return log_posterior

    def init(self, key: np.random.Generator, position: Position, estimator: Estimator) -> "TorchState":
        """Start a chain at a position."""
        from sgmcmc_verification.samplers.adapters.torch.common import TorchState, tensors
        from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from
        from sgmcmc_verification.samplers.estimators.host import estimator_key

        estate = estimator.init(estimator_key(key, estimator), position)
        with draws_from(key):
            return TorchState(self._transform(None, 0.0).init(tensors(position)), estate)

    def _advance(
        self, generator: np.random.Generator, memory: Foreign, step_size: float, source: "Gradient"
    ) -> Foreign:
        """Take one step of the library from its state `memory`."""
        from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from

        with draws_from(generator):
            return self._transform(source, step_size).update(memory, None)[0]

    def _leaves(self, memory: Foreign) -> list["torch.Tensor"]:
        return self._ordered(memory.params)

    def _ordered(self, parameters: Mapping[str, "torch.Tensor"]) -> list["torch.Tensor"]:
        """The library's dictionary of tensors as a list, in the order of the leaves."""
        return [parameters[name] for name in sorted(parameters.keys(), key=lambda name: int(name[4:]))]

    def chains(
        self, rng: np.random.Generator, positions: np.ndarray, step_size: float, num_steps: int, estimator: Estimator
    ) -> np.ndarray:
        """End positions (N, d) of N independent chains; arguments as of `chain_variables`."""
        return self.chain_variables(rng, positions, step_size, num_steps, estimator)[:, : self.target.size]

    def chain_variables(
        self, rng: np.random.Generator, starts: np.ndarray, step_size: float, num_steps: int, estimator: Estimator
    ) -> np.ndarray:
        """End values (N, n) of z of N independent chains: the library's own update on a batch.

        Args:
            rng: `numpy.random.Generator`, of everything random.
            starts: (N, n) values of z, or (N, d) positions, from which the library's `init` goes on.
            step_size: as in `step`.
            num_steps: number of updates.
            estimator: exact, or one that JAX can vectorise.
        """
        import torch

        from sgmcmc_verification.samplers.adapters.torch.common import Batch
        from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from

        transform = self._transform(Batch(self.target, estimator, rng, len(starts)), float(step_size))
        with draws_from(rng):
            state = self._batch(transform, np.asarray(starts, np.float64))
            for _ in range(num_steps):
                state, _ = transform.update(state, torch.tensor([]))
        return self._columns(state)

    def _batch(self, transform: Foreign, starts: np.ndarray) -> Foreign:
        """A state of the library whose parameters are those of all chains."""
        from sgmcmc_verification.samplers.adapters.torch.common import tensor

        return transform.init({"leaf0": tensor(starts)})

    def _columns(self, state: Foreign) -> np.ndarray:
        """z of all chains, (N, n)."""
        return state.params["leaf0"].numpy().copy()


@dataclass(frozen=True)
class SGLD(_Adapter):
    """`posteriors.sgmcmc.sgld`: theta' = theta + h g + sqrt(T h (2 - T h beta)) n, with g = -grad U~(theta).

    Source: the module `posteriors.sgmcmc.sgld`; welling2011bayesian.

    Args:
        beta: estimate of the variance of the gradient noise, >= 0, in units of the gradient of U / T.
        temperature: T > 0.
    """

    beta: float = 0.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        require(self.beta >= 0, "beta: must not be negative", self.beta)
        require_positive(self, "temperature")
        super().__post_init__()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        T, beta = self.temperature, self.beta
        return Claims(
            Source("welling2011bayesian", "equation (4)"),
            StationaryLaw(order=1, temperature=T),
            Diffusion(lambda target: overdamped_dynamics(target, T), weak_order=1),
            # (1 - h lambda)^2 s + T h (2 - T h beta) = s
            StationaryMoments(
                lambda h, curvature: {"position": T * (2 - T * h * beta) / curvature / (2 - h * curvature)}
            ),
            conditions=("exact gradient",),
        )

    def _transform(self, source: "Gradient | Batch | None", step_size: float) -> Foreign:
        return library().sgld.build(self._on(source), step_size, self.beta, self.temperature)


@dataclass(frozen=True)
class SGLRW(_Adapter):
    """`posteriors.sgmcmc.sglrw`: theta_i' = theta_i +- sqrt(2 T h), up with probability (1 + h g_i / sqrt(2 T h)) / 2.

    Conventions: as `SGLD`; the probability is clipped to [0, 1], so that the drift is right while |g| is below
    sqrt(2 T / h). The increments have the mean and the second moment of `SGLD`'s, exactly, and so its weak order.

    Source: the module `posteriors.sgmcmc.sglrw`; duffield2025lattice.

    Args:
        temperature: T > 0.
    """

    temperature: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self, "temperature")
        super().__post_init__()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("duffield2025lattice", "the binary lattice random walk"),
            StationaryLaw(order=1, temperature=self.temperature),
            Diffusion(lambda target: overdamped_dynamics(target, self.temperature), weak_order=1),
            conditions=("exact gradient", "|grad U| below sqrt(2 T / h)"),
        )

    def _transform(self, source: "Gradient | Batch | None", step_size: float) -> Foreign:
        return library().sglrw.build(self._on(source), step_size, self.temperature)


@dataclass(frozen=True)
class _Momentum(_Adapter):
    """Samplers with a momentum.

    Args:
        alpha: friction, > 0.
        sigma: standard deviation of the momentum m at T = 1, > 0.
        temperature: T > 0.
        momenta: first value of every momentum (or all of them), None for the library's default, N(0, 1).
    """

    alpha: float = 0.01
    sigma: float = 1.0
    temperature: float = 1.0
    momenta: Foreign = None

    def __post_init__(self) -> None:
        require_positive(self, "alpha", "sigma", "temperature")
        super().__post_init__()

    @property
    def friction(self) -> float:
        """C = alpha / sigma, the friction at unit mass."""
        return self.alpha / self.sigma

    def unpack(self, state: "TorchState") -> Tree:
        """Full variable z of a state."""
        from sgmcmc_verification.samplers.adapters.torch.common import arrays

        momentum = arrays(self.target, self._ordered(state.inner.momenta))
        return PhasePoint(self.position(state), jax.tree.map(lambda m: 1 / self.sigma * m, momentum))

    def _momenta(self, r: Tree) -> dict[str, "torch.Tensor"]:
        from sgmcmc_verification.samplers.adapters.torch.common import tensors

        return tensors(jax.tree.map(lambda leaf: self.sigma * np.asarray(leaf), r))

    def _batch(self, transform: Foreign, starts: np.ndarray) -> Foreign:
        from sgmcmc_verification.samplers.adapters.torch.common import tensor

        x, r = starts[:, : self.target.size], starts[:, self.target.size :]
        given = replace(self, momenta={"leaf0": tensor(self.sigma * r)}) if r.size else self
        return given._transform(None, 0.0).init({"leaf0": tensor(x)})

    def _columns(self, state: Foreign) -> np.ndarray:
        return np.concatenate([super()._columns(state), state.momenta["leaf0"].numpy() / self.sigma], axis=1)

    def pack(self, key: np.random.Generator, z: Tree, estimator: Estimator) -> "TorchState":
        """State with the full variable z; caches are computed anew."""
        # the library's `init` draws nothing when it is given the momenta
        return replace(self, momenta=self._momenta(z.momentum)).init(key, z.position, estimator)


@dataclass(frozen=True)
class SGHMC(_Momentum):
    """`posteriors.sgmcmc.sghmc`: with g = -grad U~(theta) at the *old* theta, lr = e and mass sigma^2,

        theta' = theta + e m / sigma^2,   m' = m + e g - e alpha m / sigma^2 + sqrt(T e (2 alpha - T e beta)) n

    Source: the module `posteriors.sgmcmc.sghmc`, which cites chen2014stochastic; ma2015complete, Algorithm 1.

    Args:
        beta: estimate of the variance of the gradient noise, >= 0.
    """

    beta: float = 0.0

    def __post_init__(self) -> None:
        require(self.beta >= 0, "beta: must not be negative", self.beta)
        super().__post_init__()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        C, T = self.friction, self.temperature
        return Claims(
            Source("ma2015complete", "Algorithm 1"),
            StationaryLaw(order=1, temperature=T),
            Diffusion(lambda target: langevin_dynamics(target, C, T), weak_order=1),
            StationaryMoments(self._discrete_law),
            conditions=("exact gradient",),
        )

    def _discrete_law(self, h: float, curvature: float) -> dict[str, float]:
        """The law of explicit Euler, linear in the variance of the noise, which beta lowers."""
        share = 1 - self.temperature * self.sigma * h * self.beta / (2 * self.alpha)
        law = ReferenceSGHMC(self.friction, self.temperature, scheme="explicit").discrete_law(h, curvature)
        return {name: share * value for name, value in law.items()}

    def _transform(self, source: "Gradient | Batch | None", step_size: float) -> Foreign:
        return library().sghmc.build(
            self._on(source), self.sigma * step_size, self.alpha, self.beta, self.sigma, self.temperature, self.momenta
        )


@dataclass(frozen=True)
class BAOA(_Momentum):
    """`posteriors.sgmcmc.baoa`: with g = -grad U~(theta), lr = e, gamma = alpha / sigma^2 and mass sigma^2,

        m += e g;  theta += (e/2) m / sigma^2;  m = exp(-gamma e) m + sigma sqrt(T (1 - exp(-2 gamma e))) n;
        theta += (e/2) m / sigma^2

    BAOAB with its first and last half kick joined, so that the law of the positions is BAOAB's, of order 2; the
    momentum is the one before BAOAB's last half kick.

    Source: the module `posteriors.sgmcmc.baoa`; leimkuhler2013rational (BAOAB).
    """

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        C, T = self.friction, self.temperature
        return Claims(
            Source("leimkuhler2013rational", "BAOAB"),
            StationaryLaw(order=2, temperature=T),
            Diffusion(lambda target: langevin_dynamics(target, C, T), weak_order=1),
            # BAOAB has Var q = T / lambda, Var p = T (1 - h^2 lambda / 4), Cov = 0; here p = p_BAOAB + (h/2) lambda q
            StationaryMoments(lambda h, curvature: {"position": T / curvature, "momentum": T, "covariance": h * T / 2}),
            conditions=("exact gradient",),
        )

    def _transform(self, source: "Gradient | Batch | None", step_size: float) -> Foreign:
        return library().baoa.build(
            self._on(source), self.sigma * step_size, self.alpha, self.sigma, self.temperature, self.momenta
        )


@dataclass(frozen=True)
class SGNHT(_Momentum):
    """`posteriors.sgmcmc.sgnht`: with g = -grad U~(theta), d coordinates, lr = e, mass sigma^2, all at the old state,

        theta' = theta + e m / sigma^2,   m' = m + e g - e xi m / sigma^2 + sqrt(T e (2 alpha - T e beta)) n,
        xi' = xi + e (|m|^2 / (sigma^2 d) - T)

    Conventions: at unit mass the thermostat is xi / sigma, with the law N(alpha / sigma, T / d): xi itself is
    N(alpha, sigma^2 T / d), where the documentation has N(alpha, T / d).

    Source: the module `posteriors.sgmcmc.sgnht`; ding2014bayesian; ma2015complete, section 3.1.

    Args:
        beta: estimate of the variance of the gradient noise, >= 0.
        xi: first thermostat, None for the library's default, alpha.
    """

    beta: float = 0.0
    xi: float | None = None

    def __post_init__(self) -> None:
        require(self.beta >= 0, "beta: must not be negative", self.beta)
        super().__post_init__()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("ding2014bayesian", "the SGNHT algorithm"),
            StationaryLaw(order=1, temperature=self.temperature),
            Diffusion(lambda target: thermostat_dynamics(target, self.friction, self.temperature), weak_order=1),
            conditions=("exact gradient",),
        )

    def _transform(self, source: "Gradient | Batch | None", step_size: float) -> Foreign:
        return library().sgnht.build(
            self._on(source),
            self.sigma * step_size,
            self.alpha,
            self.beta,
            self.sigma,
            self.temperature,
            self.momenta,
            self.xi,
        )

    def unpack(self, state: "TorchState") -> ThermostatPoint:
        """Full variable z of a state."""
        from sgmcmc_verification.samplers.adapters.torch.crossing import to_array

        position, momentum = super().unpack(state)
        return ThermostatPoint(position, momentum, to_array(state.inner.xi) / self.sigma)

    def pack(self, key: np.random.Generator, z: ThermostatPoint, estimator: Estimator) -> "TorchState":
        """State with the full variable z; caches are computed anew."""
        from sgmcmc_verification.samplers.adapters.torch.common import tensor

        state = super().pack(key, z, estimator)
        xi = tensor(self.sigma * np.asarray(z.thermostat, np.float64))
        inner = library().sgnht.SGNHTState(dict(state.inner.params), dict(state.inner.momenta), xi)
        return replace(state, inner=inner)

    def chain_variables(
        self, rng: np.random.Generator, starts: np.ndarray, step_size: float, num_steps: int, estimator: Estimator
    ) -> np.ndarray:
        """End values (N, n) of z with a thermostat for each chain: `torch.func.vmap` of the library's update."""
        import torch

        from sgmcmc_verification.samplers.adapters.torch.common import Batch, tensor
        from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from

        transform, d = (
            self._transform(Batch(self.target, estimator, rng, len(starts)), float(step_size)),
            starts.shape[1],
        )
        update = torch.func.vmap(lambda state: transform.update(state, torch.tensor([]))[0], randomness="different")
        # tensors, not dictionaries, which the vectorised library does not hand back
        parts = [tensor(part) for part in np.split(np.asarray(starts, np.float64), [self.target.size, d - 1], axis=1)]
        with draws_from(rng):
            if d == self.target.size:
                state = torch.func.vmap(transform.init, randomness="different")(tensor(starts))
            else:
                x, r, xi = parts
                state = torch.func.vmap(library().sgnht.SGNHTState)(x, self.sigma * r, self.sigma * xi[:, 0])
            for _ in range(num_steps):
                state = update(state)
        columns = (state.params, state.momenta / self.sigma, state.xi[:, None] / self.sigma)
        return np.concatenate([column.numpy() for column in columns], axis=1)


ENTRIES: tuple[Row, ...] = (
    torch_row(
        "posteriors/sgld",
        SGLD,
        variants=({"beta": 0.2, "temperature": 0.5}, {"beta": 0.1, "temperature": 2.0}),
    ),
    # steps at which its probabilities are not clipped where the target has mass
    torch_row("posteriors/sglrw", SGLRW, variants=TEMPERATURES, step_size=0.02),
    torch_row(
        "posteriors/sghmc",
        SGHMC,
        variants=(
            {"alpha": 2.0, "beta": 0.2, "sigma": 0.8, "temperature": 0.5, "momenta": 0.3},
            {"alpha": 2.5, "beta": 0.1, "sigma": 1.3, "temperature": 2.0, "momenta": -0.5},
        ),
        step_size=0.05,
        step_power=0.5,
    ),
    torch_row(
        "posteriors/sgnht",
        SGNHT,
        variants=(
            {"alpha": 1.0, "beta": 0.2, "sigma": 0.8, "temperature": 0.5, "momenta": 0.3, "xi": 0.3},
            {"alpha": 0.5, "beta": 0.1, "sigma": 1.3, "temperature": 2.0, "momenta": -0.5, "xi": 0.7},
        ),
        step_power=0.5,
    ),
    torch_row(
        "posteriors/baoa",
        BAOA,
        variants=(
            {"alpha": 2.0, "sigma": 0.8, "temperature": 0.5, "momenta": 0.3},
            {"alpha": 0.4, "sigma": 1.3, "temperature": 2.0, "momenta": -0.5},
        ),
        step_power=0.5,
    ),
)

"""devinterp (2.0.1, torch): its SG-MCMC optimisers under the interface of this suite.

Common to all: an optimiser descends `nbeta` times the gradient of a loss L, which the user differentiates;
here L = U~, so that nbeta is an inverse temperature, T = 1 / nbeta, and the law is exp(-nbeta U). The steps of type
SGLD halve the drift, theta - (lr/2) nbeta grad L + sqrt(lr) N(0, noise_level^2): in SDE time lr = 2 h / nbeta, and the
temperature is T = noise_level^2 / nbeta. An optimiser is made anew for every step, which is handed the memory of the
previous one.

The localisation term gamma and the weight decay lambda are priors: the invariant law is
exp(-nbeta L - gamma |w - w0|^2 / 2 - lambda |w|^2 / 2) (at noise_level 1). With either of them the loss that is handed
over is the one for which this law is the target, L = U~ - (gamma |w - w0|^2 + lambda |w|^2) / (2 nbeta), with w0 the
example of the target.

`bounding_box_size` (which clamps), `mask`, metrics and sketches are left at their defaults.
"""

import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from sgmcmc_verification.samplers.adapters.common import Foreign, load, preconditioned_claims, sgld_claims, torch_row
from sgmcmc_verification.samplers.adapters.torch.adapter import ElementwiseMixin, TorchMixin
from sgmcmc_verification.samplers.entry import SAMPLED_TIERS, Row
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source, StationaryLaw
from sgmcmc_verification.samplers.thermostats.common import ThermostatPoint, thermostat_dynamics
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target

if TYPE_CHECKING:
    import torch

    from sgmcmc_verification.samplers.adapters.torch.common import Batch, Change, TorchState
    from sgmcmc_verification.samplers.adapters.torch.common import Source as Gradient


def library() -> ModuleType:
    """Import the module `devinterp.optim`. Raises ImportError that says how to install it."""
    return load("devinterp.optim", "torch", then="pip install --no-deps devinterp==2.0.1")


class Memory(NamedTuple):
    """Leaves of the position, what the optimiser remembers of each, and of the group."""

    leaves: list["torch.Tensor"]
    each: list[dict[str, "torch.Tensor"]]
    group: dict[str, "torch.Tensor"]


@dataclass(frozen=True)
class _Adapter(TorchMixin):
    """Samplers that take one step of an optimiser of the library, with draws from the given generator.

    Args:
        target: the structure of a position, and the centre of the localisation.
        nbeta: inverse temperature, > 0.
    """

    target: Target
    nbeta: float = 1.0

    needs = frozenset({"gradient"})
    remembers: ClassVar[tuple[str, ...]] = ()
    """Entries of the optimiser's state of a parameter that the next step gets."""
    localization: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, "nbeta")
        library()

    @property
    def temperature(self) -> float:
        """T of the law exp(-U / T)."""
        return 1 / self.nbeta

    def _build(self, parameters: list["torch.nn.Parameter"], step_size: float) -> Foreign:
        """The library's optimiser at a step size."""
        raise NotImplementedError

    def _prior(self, leaves: list[np.ndarray], centre: list[np.ndarray]) -> tuple[Any, list[np.ndarray]]:
        """(value, gradient) of minus the potential of localisation and weight decay, in units of the loss."""
        centre = [np.asarray(c, np.float64) for c in centre]
        gamma, decay = self.localization / self.nbeta, self.weight_decay / self.nbeta
        last = [tuple(range(-c.ndim, 0)) for c in centre]
        value = sum(
            np.sum(-0.5 * gamma * (x - c) ** 2 - 0.5 * decay * x**2, axis=axes)
            for x, c, axes in zip(leaves, centre, last, strict=True)
        )
        return value, [-gamma * (x - c) - decay * x for x, c in zip(leaves, centre, strict=True)]

    def _change(self) -> "Change | None":
        """Function to add to U~ so that the localised law is the target; None for nothing."""
        return self._prior if self.localization or self.weight_decay else None

    def _advance(
        self, generator: np.random.Generator, memory: Memory, step_size: float, source: "Gradient | Batch"
    ) -> Memory:
        """Take one step of the library from `memory`."""
        import torch

        from sgmcmc_verification.samplers.adapters.torch.common import tensor
        from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nbeta = 1, noise_level != 1, deprecated classes
            # the optimiser takes its first parameters as centre of the localisation
            start = [tensor(np.broadcast_to(c, x.shape)) for c, x in zip(source.centre, memory.leaves, strict=True)]
            parameters = [torch.nn.Parameter(x) for x in start]
            with torch.random.fork_rng(devices=[]):  # a constructor may draw what is replaced below
                optimizer = self._build(parameters, step_size)
            with draws_from(generator):
                for p, x, kept in zip(parameters, memory.leaves, memory.each, strict=True):
                    p.data.copy_(x)
                    optimizer.state[p].update(kept)
                optimizer.param_groups[0].update(memory.group)
                source.potential(parameters).backward()
                optimizer.step()
        each = [{name: optimizer.state[p][name] for name in self.remembers} for p in parameters]
        group = {name: optimizer.param_groups[0][name] for name in memory.group}
        return Memory([p.data for p in parameters], each, group)

    def _fresh(self, leaves: list["torch.Tensor"]) -> Memory:
        """The memory of an optimiser that has made no step."""
        return Memory(leaves, [{} for _ in leaves], {})

    def _leaves(self, memory: Memory) -> list["torch.Tensor"]:
        return memory.leaves


@dataclass(frozen=True)
class SGMCMCSGLD(ElementwiseMixin, _Adapter):
    """`devinterp.optim.SGMCMC.sgld`: w' = w - (lr/2) [nbeta grad L + gamma (w - w0) + lambda w] + sqrt(lr) sigma n.

    Source: the module `devinterp.optim.sgmcmc`; welling2011bayesian; lau2025local (the localisation).

    Args:
        noise_level: sigma > 0; T = sigma^2 / nbeta.
        localization: gamma >= 0.
        weight_decay: lambda >= 0.
    """

    noise_level: float = 1.0
    localization: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, "noise_level")
        require(self.localization >= 0, "localization: must not be negative", self.localization)
        require(self.weight_decay >= 0, "weight_decay: must not be negative", self.weight_decay)
        super().__post_init__()

    @property
    def temperature(self) -> float:
        """T of the law exp(-U / T)."""
        return self.noise_level**2 / self.nbeta

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return sgld_claims(self.temperature)

    def _options(self, step_size: float) -> dict[str, float]:
        return {
            "lr": 2 * step_size / self.nbeta,
            "noise_level": self.noise_level,
            "weight_decay": self.weight_decay,
            "localization": self.localization,
            "nbeta": self.nbeta,
        }

    def _build(self, parameters: list["torch.nn.Parameter"], step_size: float) -> Foreign:
        return library().SGMCMC.sgld(parameters, **self._options(step_size))


@dataclass(frozen=True)
class SGLD(SGMCMCSGLD):
    """`devinterp.optim.SGLD`, deprecated by the library: the step of `SGMCMC.sgld`.

    Source: the module `devinterp.optim.sgld`; welling2011bayesian; lau2025local (the localisation).
    """

    def _build(self, parameters: list["torch.nn.Parameter"], step_size: float) -> Foreign:
        return library().SGLD(parameters, **self._options(step_size))


class RMSpropPoint(NamedTuple):
    """(theta, V): the position and the moving average of the squared gradient."""

    position: Position
    square_avg: Tree


@dataclass(frozen=True)
class SGMCMCRMSprop(SGMCMCSGLD):
    """`devinterp.optim.SGMCMC.rmsprop_sgld`: V' = alpha V + (1 - alpha) (grad L)^2, G = 1 / (sqrt(V') + eps),

        w' = w - (lr/2) G nbeta grad L + sqrt(lr G) sigma n

    Conventions: V is of the gradient of the loss, not of nbeta times it. The divergence of G is left out (as the source
    allows for alpha near 1), and `add_grad_correction=True` is refused by the library. As lr -> 0 at fixed alpha, G
    becomes a function of the position, and the law is not exp(-nbeta L): see reports/findings.

    Source: the module `devinterp.optim.sgmcmc`; li2016preconditioned, Algorithm 1.

    Args:
        alpha: in [0, 1).
        eps: > 0.
    """

    alpha: float = 0.99
    eps: float = 0.1

    remembers = ("square_avg",)

    def __post_init__(self) -> None:
        require(0 <= self.alpha < 1, "alpha: must lie in [0, 1)", self.alpha)
        require_positive(self, "eps")
        super().__post_init__()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return preconditioned_claims(Source("li2016preconditioned", "Algorithm 1"), self.temperature)

    def _build(self, parameters: list["torch.nn.Parameter"], step_size: float) -> Foreign:
        options = self._options(step_size)
        return library().SGMCMC.rmsprop_sgld(parameters, alpha=self.alpha, eps=self.eps, **options)

    def _fresh(self, leaves: list["torch.Tensor"]) -> Memory:
        import torch

        return Memory(leaves, [{"square_avg": torch.zeros_like(x)} for x in leaves], {})

    def unpack(self, state: "TorchState") -> RMSpropPoint:
        """Full variable z of a state."""
        from sgmcmc_verification.samplers.adapters.torch.common import arrays

        return RMSpropPoint(
            self.position(state), arrays(self.target, [kept["square_avg"] for kept in state.inner.each])
        )

    def pack(self, key: np.random.Generator, z: RMSpropPoint, estimator: Estimator) -> "TorchState":
        """State with the full variable z; caches are computed anew."""
        from sgmcmc_verification.samplers.adapters.torch.common import tensors

        state = self.init(key, z.position, estimator)
        each = [{"square_avg": v} for v in tensors(z.square_avg).values()]
        state.inner = state.inner._replace(each=each)
        return state


@dataclass(frozen=True)
class SGMCMCSGNHT(ElementwiseMixin, _Adapter):
    """`devinterp.optim.SGMCMC.sgnht`, offered in place of the deprecated `SGNHT`.

        w' = w - (lr/2) nbeta grad L + sqrt(2 A lr) n

    is what it does: momentum and thermostat are kept, but enter no update. It is held to the law that its documentation
    claims, exp(-nbeta L), at the step size of the library's other steps of this form, lr = 2 h / nbeta.

    Source: the module `devinterp.optim.sgmcmc`; ding2014bayesian.

    Args:
        diffusion_factor: A > 0.
    """

    diffusion_factor: float = 0.01

    remembers = ("momentum", "thermostat")

    def __post_init__(self) -> None:
        require_positive(self, "diffusion_factor")
        super().__post_init__()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("ding2014bayesian", "the SGNHT algorithm"),
            StationaryLaw(order=1, temperature=self.temperature),
            conditions=("exact gradient",),
        )

    def _build(self, parameters: list["torch.nn.Parameter"], step_size: float) -> Foreign:
        return library().SGMCMC.sgnht(
            parameters, lr=2 * step_size / self.nbeta, diffusion_factor=self.diffusion_factor, nbeta=self.nbeta
        )


@dataclass(frozen=True)
class SGNHT(_Adapter):
    """`devinterp.optim.SGNHT`, deprecated by the library: with v = sqrt(lr) momentum, s the thermostat, d coordinates,

        v <- (1 - s) (v - lr nbeta grad L) + sqrt(2 lr A) n,   w' = w + v,   s' = s + |v|^2 / d - lr

    Conventions: lr is the square of a time step. At temperature T = 1 / nbeta, in SDE time: lr = h^2 / nbeta, v = h r,
    s = h xi and A = h `diffusion`, so that xi ~ N(`diffusion`, T / d).

    Source: the module `devinterp.optim.sgnht`; ding2014bayesian.

    Args:
        diffusion: A / h > 0, the diffusion in SDE time; 0.1 is the library's default A = 0.01 at its default lr = 0.01.
    """

    diffusion: float = 0.1

    remembers = ("momentum",)

    def __post_init__(self) -> None:
        require_positive(self, "diffusion")
        super().__post_init__()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("ding2014bayesian", "the SGNHT algorithm"),
            StationaryLaw(order=1, temperature=self.temperature),
            Diffusion(lambda target: thermostat_dynamics(target, self.diffusion, self.temperature), weak_order=1),
            conditions=("exact gradient",),
        )

    def _build(self, parameters: list["torch.nn.Parameter"], step_size: float) -> Foreign:
        return library().SGNHT(
            parameters, lr=step_size**2 / self.nbeta, diffusion_factor=self.diffusion * step_size, nbeta=self.nbeta
        )

    def init(self, key: np.random.Generator, position: Position, estimator: Estimator) -> "TorchState":
        """Start a chain at a position."""
        import torch

        from sgmcmc_verification.samplers.adapters.torch.common import tensors
        from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from

        state = super().init(key, position, estimator)
        parameters = [torch.nn.Parameter(x) for x in tensors(position).values()]
        with warnings.catch_warnings(), draws_from(key):
            warnings.simplefilter("ignore")
            optimizer = self._build(parameters, 1.0)  # at h = 1 the library's momentum is r, its thermostat xi
        state.inner = Memory(
            state.inner.leaves,
            [{"momentum": optimizer.state[p]["momentum"]} for p in parameters],
            {"thermostat": optimizer.param_groups[0]["thermostat"]},
        )
        return state

    def _advance(
        self, generator: np.random.Generator, memory: Memory, step_size: float, source: "Gradient | Batch"
    ) -> Memory:
        h = step_size
        scale = lambda m, c: Memory(
            m.leaves,
            [{"momentum": c * kept["momentum"]} for kept in m.each],
            {"thermostat": c * m.group["thermostat"]},
        )
        return scale(super()._advance(generator, scale(memory, h), h, source), 1 / h)

    def unpack(self, state: "TorchState") -> ThermostatPoint:
        """Full variable z of a state."""
        from sgmcmc_verification.samplers.adapters.torch.common import arrays
        from sgmcmc_verification.samplers.adapters.torch.crossing import to_array

        momentum = arrays(self.target, [kept["momentum"] for kept in state.inner.each])
        return ThermostatPoint(self.position(state), momentum, to_array(state.inner.group["thermostat"]))

    def pack(self, key: np.random.Generator, z: ThermostatPoint, estimator: Estimator) -> "TorchState":
        """State with the full variable z; caches are computed anew."""
        from sgmcmc_verification.samplers.adapters.torch.common import tensor, tensors

        state = super().init(key, z.position, estimator)
        each = [{"momentum": r} for r in tensors(z.momentum).values()]
        state.inner = Memory(state.inner.leaves, each, {"thermostat": tensor(np.asarray(z.thermostat, np.float64))})
        return state


_TEMPERED_LOSS = ({"nbeta": 2.0, "noise_level": 0.8}, {"nbeta": 0.8, "noise_level": 1.2})
_LOCALISED = {"localization": 5.0, "weight_decay": 3.0}
_REMEMBERED: dict[str, str] = dict.fromkeys(
    ("recipe", "generator", "order", "law"),
    "a moving average over a fixed number of steps has no limit h -> 0 in the full variable, and no affine step",
)

ENTRIES: tuple[Row, ...] = (
    torch_row("devinterp/sgmcmc-sgld", SGMCMCSGLD, variants=_TEMPERED_LOSS),
    # the loss for which the localised law is the target
    torch_row("devinterp/sgmcmc-sgld-localised", SGMCMCSGLD, _LOCALISED, variants=_TEMPERED_LOSS),
    torch_row(
        "devinterp/sgmcmc-rmsprop",
        SGMCMCRMSprop,
        tiers=("contract", *SAMPLED_TIERS),
        unsupported=_REMEMBERED,
        variants=({"alpha": 0.9, "eps": 0.5, **_TEMPERED_LOSS[0]}, {"alpha": 0.5, "eps": 0.2, **_TEMPERED_LOSS[1]}),
    ),
    torch_row(
        "devinterp/sgmcmc-sgnht",
        SGMCMCSGNHT,
        variants=({"nbeta": 2.0, "diffusion_factor": 0.1}, {"nbeta": 0.5, "diffusion_factor": 0.25}),
    ),
    torch_row("devinterp/sgld", SGLD, variants=_TEMPERED_LOSS),
    torch_row("devinterp/sgld-localised", SGLD, _LOCALISED, variants=_TEMPERED_LOSS),
    torch_row(
        "devinterp/sgnht",
        SGNHT,
        variants=({"nbeta": 2.0, "diffusion": 1.0}, {"nbeta": 0.5, "diffusion": 0.5}),
        step_power=0.5,
    ),
)

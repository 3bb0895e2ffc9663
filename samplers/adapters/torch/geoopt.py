"""geoopt (0.5.1, torch): its samplers under the interface of this suite.

Common to all: the user's closure returns log pi = -U~, *summed* over the data, which the library
differentiates (`backward`); there is no temperature. They are optimisers, made anew for every step. The library admits
manifolds with a reversible retraction only, which of this suite's spaces leaves the Euclidean one (its sphere is not).
"""

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from sgmcmc_verification.samplers.adapters.common import (
    COMPOSITE,
    LAW_TIERS,
    Foreign,
    composite_claims,
    load,
    sgld_claims,
    torch_row,
)
from sgmcmc_verification.samplers.adapters.torch.adapter import ElementwiseMixin, TorchMixin
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target

if TYPE_CHECKING:
    import torch

    from sgmcmc_verification.samplers.adapters.torch.common import Batch
    from sgmcmc_verification.samplers.adapters.torch.common import Source as Gradient


def library() -> ModuleType:
    """Import the module `geoopt.samplers`. Raises ImportError that says how to install it."""
    return load("geoopt.samplers")


@dataclass(frozen=True)
class _Adapter(TorchMixin):
    """Samplers that take one step of the library with draws from the given generator; the state is the position."""

    target: Target

    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        library()

    def _build(self, parameters: list["torch.nn.Parameter"], step_size: float) -> Foreign:
        """The library's sampler at a step size."""
        raise NotImplementedError

    def _advance(
        self, generator: np.random.Generator, memory: list["torch.Tensor"], step_size: float, source: "Gradient | Batch"
    ) -> list["torch.Tensor"]:
        """Take one step of the library from `memory`, tensors."""
        import torch

        from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from, numpy_uniforms_from

        parameters = [torch.nn.Parameter(leaf.clone()) for leaf in memory]
        with draws_from(generator), numpy_uniforms_from(generator):
            self._build(parameters, step_size).step(lambda: -source.potential(parameters))
        return [p.data for p in parameters]


@dataclass(frozen=True)
class RSGLD(ElementwiseMixin, _Adapter):
    """`geoopt.samplers.RSGLD`: theta' = theta + (e/2) g + sqrt(e) n with g = -grad U~(theta), in Euclidean space.

    Conventions: e = 2 h.

    Source: the module `geoopt.samplers.rsgld`; welling2011bayesian.
    """

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return sgld_claims(1.0)

    def _build(self, parameters: list["torch.nn.Parameter"], step_size: float) -> Foreign:
        return library().RSGLD(parameters, epsilon=2 * step_size)


@dataclass(frozen=True)
class SGRHMC(ElementwiseMixin, _Adapter):
    """`geoopt.samplers.SGRHMC`: v ~ N(0, e^2), then n_steps + 1 times, with g = -grad U~ at the *old* theta,

        theta <- theta + v,   v <- (1 - alpha) v + e g + sqrt(2 alpha e) n

    Conventions: chen2014stochastic, equation (15), with learning rate e, whose v = h r has the law N(0, e): e = h^2 in
    SDE time. One step of this suite is one of the library: a refresh and n_steps + 1 gradients, a minibatch each. There
    is no Metropolis test.

    Source: the module `geoopt.samplers.sgrhmc`; chen2014stochastic, equation (15).

    Args:
        n_steps: >= 0.
        alpha: friction per step, in (0, 1].
    """

    n_steps: int = 1
    alpha: float = 0.1

    def __post_init__(self) -> None:
        require(self.n_steps >= 0, "n_steps: must not be negative", self.n_steps)
        require(0 < self.alpha <= 1, "alpha: must lie in (0, 1]", self.alpha)
        super().__post_init__()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return composite_claims(Source("chen2014stochastic", "equation (15)"))

    def _build(self, parameters: list["torch.nn.Parameter"], step_size: float) -> Foreign:
        return library().SGRHMC(parameters, epsilon=step_size**2, n_steps=self.n_steps, alpha=self.alpha)


@dataclass(frozen=True)
class RHMC(_Adapter):
    """`geoopt.samplers.RHMC`: r ~ N(0, I), n_steps times r <- r + e g, theta <- theta + e r, then r <- r + (e/2) g,

    accepted with probability min(1, exp(H - H')), H = U + |r|^2 / 2. Conventions: e = h, the leapfrog step, whose first
    half kick is a whole one here.

    Source: the module `geoopt.samplers.rhmc`; neal2011mcmc, section 5.3.2, for an exact kernel of this form.

    Args:
        n_steps: >= 1.
    """

    n_steps: int = 1

    needs = frozenset({"gradient", "potential"})

    def __post_init__(self) -> None:
        require(self.n_steps >= 1, "n_steps: must be at least 1", self.n_steps)
        super().__post_init__()

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("neal2011mcmc", "section 5.3.2"),
            ExactLaw(),
            conditions=("exact potential and gradient",),
        )

    def _build(self, parameters: list["torch.nn.Parameter"], step_size: float) -> Foreign:
        return library().RHMC(parameters, epsilon=step_size, n_steps=self.n_steps)


ENTRIES: tuple[Row, ...] = (
    torch_row("geoopt/rsgld", RSGLD),
    torch_row(
        "geoopt/sgrhmc",
        SGRHMC,
        tiers=LAW_TIERS,
        unsupported=COMPOSITE,
        variants=({"n_steps": 3, "alpha": 0.5}, {"n_steps": 5, "alpha": 0.8}),
        step_power=0.5,
    ),
    torch_row("geoopt/rhmc", RHMC, variants=({"n_steps": 2}, {"n_steps": 3}), step_size=0.2, step_power=0.5),
)

"""Methods for the spherical admixture model on S^1 and S^2, where quadrature knows the posterior, and their rows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.geodesic.gmc import GMC
from sgmcmc_verification.samplers.geodesic.gsgnht import GSGNHT
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.samplers.topic_models.common import kernel_row
from sgmcmc_verification.samplers.topic_models.sam.methods import Method, build
from sgmcmc_verification.samplers.topic_models.sam.weights import WeightSettings
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.numerics.ragged import SparseRows
from sgmcmc_verification.targets.target import Target
from sgmcmc_verification.targets.topic_models.sam import tiny
from sgmcmc_verification.targets.topic_models.sam.documents import as_rows
from sgmcmc_verification.targets.topic_models.sam.model import SAM

FRICTION = 10.0


def words_of(law: Target) -> int:
    """V of `sam-s1` or `sam-s2`."""
    return np.shape(law.example)[-1]


@cache
def model_of(words: int) -> SAM:
    """One object, so that what is compiled for it is found again."""
    return tiny.tiny_model(words)


@cache
def rows_of(words: int) -> SparseRows:
    """The three documents."""
    return as_rows(tiny.tiny_documents(words))


@cache
def sampler_of(make: Callable[[ProductOfSpheres], Sampler], words: int) -> Sampler:
    """One object per sampler and number of words."""
    return make(ProductOfSpheres(2, words))


def sggmc(manifold: ProductOfSpheres) -> Sampler:
    """SGGMC."""
    return SGGMC(manifold, FRICTION)


def gsgnht(manifold: ProductOfSpheres) -> Sampler:
    """gSGNHT."""
    return GSGNHT(manifold, FRICTION)


def gmc(manifold: ProductOfSpheres) -> Sampler:
    """GMC, trajectories of four steps."""
    return GMC(manifold, 4)


@dataclass(frozen=True, eq=False)
class Topics:
    """A method with batches of documents and sampled weights, `samplers.topic_models.sam.methods.Method`, as h -> 0.

    Batch and weights are held for three steps, as in the figure: their noise is of order h, and so is its effect.

    Args:
        posterior: `sam-s1` or `sam-s2`.
        sampler: manifold -> sampler.
        documents: of a batch, 3 for all.
        samples: of a chain with the largest step.
        method: how the method is made.
    """

    posterior: Target
    sampler: Callable[[ProductOfSpheres], Sampler]
    documents: int = 2
    samples: int = 8
    method: Callable[..., Method] = Method

    backend = "jax"

    def made(self, step_size: float) -> Method:
        """The method."""
        words = words_of(self.posterior)
        return self.method(
            model_of(words),
            sampler_of(self.sampler, words),
            rows_of(words),
            self.documents,
            step_size,
            num_steps=3,
            weights=WeightSettings(12, 4, 4, 0.2),
        )


@dataclass(frozen=True, eq=False)
class ByBlocks:
    """GMC with one weight a document: Gibbs sampling by blocks, which keeps the posterior at any step size.

    Args:
        posterior: `sam-s1` or `sam-s2`.
        samples: of a chain.
    """

    posterior: Target
    samples: int = 10

    backend = "jax"


@dataclass(frozen=True, eq=False)
class MeanPotential:
    """GMC-apprMH, whose law tends to the posterior with the length of its trajectories.

    The mean of the potentials of N weights has the slope of U at the start of a trajectory alone: over a length of
    order h what is accepted is off by O(h^2). A trajectory carries the topics by O(h), so that times are of order h^2.

    Args:
        posterior: `sam-s1` or `sam-s2`.
        samples: of a chain with the largest step; four times as many at half of it.
    """

    posterior: Target
    samples: int = 2

    backend = "jax"


DRAWN = 20
"""Weights a document of GMC-apprMH."""


def metropolis(name: str, words: int, step_size: float, num_steps: int = 1, burn_in: int = 12) -> Method:
    """A Metropolis method with `num_steps` trajectories a sample."""
    weights = WeightSettings(burn_in, 1 if name == "gmc-bgibbs" else DRAWN, 4, 0.2)
    return build(
        name,
        model_of(words),
        rows_of(words),
        sampler=sampler_of(gmc, words),
        step_size=step_size,
        num_steps=num_steps,
        weights=weights,
    )


def _topics(name: str, sampler: Callable[[ProductOfSpheres], Sampler]) -> Row:
    build = lambda posterior, **options: Topics(posterior, sampler, **options)
    return kernel_row(name, build, "sam-s1", "sam-s2", step_size=0.02, variants=({"documents": 3},))


ENTRIES: tuple[Row, ...] = (
    _topics("sam/sggmc", sggmc),
    _topics("sam/gsgnht", gsgnht),
    kernel_row("sam/gmc-bgibbs", ByBlocks, "sam-s1", "sam-s2", step_size=0.15),
    kernel_row("sam/gmc-apprmh", MeanPotential, "sam-s1", "sam-s2", step_size=0.2),
)

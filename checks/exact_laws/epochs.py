"""Epochs of minibatches as maps of the first two moments: one for each order of the batches.

A step with one batch is affine on a Gaussian posterior. What an epoch makes of the moments is the product of the maps
of its steps, and the mean over all orders is the epoch whose order is drawn anew.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import NotApplicable, OutOfReach
from sgmcmc_verification.checks.exact_laws.lyapunov import MomentMap, StationaryLaw, law_of_moments, moment_map
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.samplers.estimators.epochs import OneBatch
from sgmcmc_verification.targets.target import Target


def word(maps: Sequence[MomentMap], order: Sequence[int]) -> MomentMap:
    """The steps of an epoch, one after the other."""
    return functools.reduce(lambda done, i: maps[i].after(done), order[1:], maps[order[0]])


def mean_of(maps: Sequence[MomentMap]) -> MomentMap:
    """One of the maps, drawn with equal chances."""
    return MomentMap(np.mean([m.matrix for m in maps], axis=0), np.mean([m.offset for m in maps], axis=0))


class Batches(NamedTuple):
    """Steps of a sampler with batches of one datum each.

    Attributes:
        steps: one for each datum.
    """

    steps: tuple[JaxStep, ...]

    @property
    def orders(self) -> list[tuple[int, ...]]:
        """All orders of the batches."""
        return list(itertools.permutations(range(len(self.steps))))

    def moments(self, h: float) -> list[MomentMap]:
        """The maps of the moments of the state by a step of size h, one for each batch."""
        return [moment_map(step.affine(h)) for step in self.steps]

    def position(self, moved: MomentMap, h: float) -> tuple[np.ndarray, np.ndarray, StationaryLaw]:
        """Mean and covariance of the position under the law that a map keeps, and that law."""
        matrix, offset = self.steps[0].readout_at(h)
        law = law_of_moments(moved, matrix.shape[1])
        return matrix @ law.mean + offset, matrix @ law.covariance @ matrix.T, law


def batches(subject: Subject, target: Target) -> Batches:
    """The steps of a sampler with batches of one datum each.

    Raises:
        NotApplicable: if the target has no data, or is not Gaussian.
        OutOfReach: if the sampler draws its batches itself.
    """
    if target.terms is None or target.gaussian is None:
        raise NotApplicable("needs a Gaussian posterior with its data")
    steps = [step_map(subject, target, OneBatch(target.terms, (i,))) for i in range(target.terms.size)]
    traced = tuple(step for step in steps if isinstance(step, JaxStep))
    if len(traced) < len(steps):
        raise OutOfReach("the batches of a host sampler are its own")
    return Batches(traced)

"""Planted bugs of the slice sampler of the Dirichlet-process mixture."""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.positive.gamma_updates import CIRUpdate, ExpandedMeanUpdate
from sgmcmc_verification.samplers.topic_models.dp.enumerated import Batches, Slices
from sgmcmc_verification.samplers.topic_models.dp.kernels import reassigned
from sgmcmc_verification.samplers.topic_models.dp.slice import DPSlice, Users, log_stick_weights, normalised


class SliceIgnored(DPSlice):
    """Labels in proportion to the likelihood of all components at hand, whatever their weights."""

    def assign(self, generator, state, log_weights, rows, log_slices, labels):
        return super().assign(generator, state, log_weights, rows, np.full_like(log_slices, -np.inf), labels)


class SliceOfUnit(DPSlice):
    """u ~ U(0, 1) for U(0, w_z): the weights cancel no more."""

    def slices(self, generator, log_weights):
        return super().slices(generator, np.zeros_like(log_weights))


class WeightsTwice(DPSlice):
    """Labels in proportion to w_j f(x_i | j) above the slice: the weights are in the slice already."""

    def assign(self, generator, state, log_weights, rows, log_slices, labels):
        uniforms = generator.random(rows.size)
        # a row of likelihoods with the weight in it: one more column of count 1
        table = np.column_stack([normalised(state.log_atoms), log_weights])
        starts = rows.starts + np.arange(rows.size + 1)
        columns = np.insert(rows.columns, rows.starts[1:], rows.width)
        counts = np.insert(rows.counts, rows.starts[1:], 1.0)
        return reassigned(starts, columns, counts, table, log_weights, log_slices, uniforms, labels)


class BeyondWithOwn(DPSlice):
    """M_j = sum_{k>=j} m_k for sum_{k>j} m_k."""

    def counts(self, labels, rows, components, scale):
        sticks, totals = super().counts(labels, rows, components, scale)
        return np.stack([sticks[:, 0], sticks.sum(axis=1)], axis=1), totals


class TailKept(DPSlice):
    """Components beyond the last label are kept, and count as evidence on alpha in the next step."""

    def forget(self, state):
        return state


class TailInRate(DPSlice):
    """alpha after the new sticks are broken: their log(1 - v) are in the rate, the shape counts z* still."""

    def grow(self, generator, state, log_weights, log_left, log_least):
        count = len(state.log_sticks)
        state, log_weights = super().grow(generator, state, log_weights, log_left, log_least)
        if self.model.concentration is None:
            rate = 1.0 - log_stick_weights(state.log_sticks)[1]
            state = state._replace(concentration=float(generator.standard_gamma(1 + count) / rate))
        return state, log_weights


class RateSign(DPSlice):
    """1 + sum log(1 - v) for the rate of alpha, 1 - sum log(1 - v), kept above 1/2."""

    def concentration(self, generator, state, log_left):
        if self.model.concentration is not None:
            return state.concentration
        return float(generator.standard_gamma(1 + len(state.log_sticks)) / max(0.5, 1.0 + log_left))


class ShapeWithoutPrior(DPSlice):
    """Shape z* for 1 + z*: the prior of alpha is dropped."""

    def concentration(self, generator, state, log_left):
        if self.model.concentration is not None:
            return state.concentration
        return float(generator.standard_gamma(len(state.log_sticks)) / (1.0 - log_left))


class NeverGrows(DPSlice):
    """No new components: a truncation at those in use."""

    def grow(self, generator, state, log_weights, log_left, log_least):
        return state, log_weights


class UnscaledUsers(Users):
    """The counts of a batch without N / n."""

    @property
    def scale(self):
        return 1.0


@dataclass(frozen=True, eq=False)
class OneWeightForBoth(ExpandedMeanUpdate):
    """omega = (v, v) for (v, 1 - v) in rows of two."""

    def __call__(self, generator, log_theta, prior, counts, step_size):
        if np.shape(log_theta)[-1] != 2:
            return super().__call__(generator, log_theta, prior, counts, step_size)
        theta = np.exp(log_theta)
        v = theta[..., :1] / theta.sum(axis=-1, keepdims=True)
        drift = prior - theta + counts - v * np.sum(counts, axis=-1, keepdims=True)
        noise = generator.standard_normal(theta.shape)
        return np.log(np.abs(theta + step_size * drift + np.sqrt(2 * step_size * theta) * noise))


@dataclass(frozen=True, eq=False)
class EulerCIR(CIRUpdate):
    """Euler's method on the CIR process, mirrored at 0, for its exact transition."""

    def __call__(self, generator, log_theta, prior, counts, step_size):
        theta = np.exp(log_theta)
        noise = np.sqrt(2 * step_size * theta) * generator.standard_normal(theta.shape)
        with np.errstate(divide="ignore"):
            return np.log(np.abs(theta + step_size * (prior + counts - theta) + noise))


def _gibbs(name: str, wrong: type[DPSlice], error: str) -> Defect:
    kill = Kill("enumerated_law", "dp-tiny", "P(partition, alpha | x) by enumeration")
    return planted(name, "dp/gibbs", lambda posterior: Slices(posterior, wrong), error, kill, "latent")


DEFECTS: tuple[Defect, ...] = (
    _gibbs("dp-slice-ignored", SliceIgnored, "z ~ f(x | theta_z) without 1[w_z > u]"),
    _gibbs("dp-slice-of-unit", SliceOfUnit, "u ~ U(0, 1) for U(0, w_z)"),
    _gibbs("dp-weights-twice", WeightsTwice, "z ~ w_z f(x | theta_z) above the slice"),
    _gibbs("dp-beyond-with-own", BeyondWithOwn, "M_j = sum_{k>=j} m_k"),
    _gibbs("dp-never-grows", NeverGrows, "no new components: truncated at those in use"),
    _gibbs("dp-tail-in-rate", TailInRate, "rate of alpha over all sticks that were broken, shape over z*"),
    _gibbs("dp-rate-sign", RateSign, "rate 1 + sum log(1 - v) of alpha"),
    _gibbs("dp-shape-without-prior", ShapeWithoutPrior, "shape z* of alpha for 1 + z*"),
    planted(
        "dp-euler-cir",
        "dp/scir",
        lambda posterior: Slices(posterior, update=EulerCIR(), steps=1, chains=4000),
        "Euler's method for the exact transition of the CIR process",
        Kill("enumerated_law", "dp-tiny-fixed", "P(partition | x) by enumeration"),
        "order",
    ),
    planted(
        "dp-unscaled-batch",
        "dp/scir-batch",
        lambda posterior: Batches(posterior, CIRUpdate(), users=UnscaledUsers),
        "counts of a batch without N / n",
        Kill("unbiased_estimates", "dp-tiny-smooth", "E theta' over batches is that of all users"),
        "data",
    ),
    planted(
        "dp-one-weight-for-both",
        "dp/sgrld-batch",
        lambda posterior: Batches(posterior, OneWeightForBoth()),
        "omega = (v, v) for (v, 1 - v) in SGRLD of the sticks",
        Kill("unbiased_estimates", "dp-tiny-smooth", "E theta' over batches is that of all users"),
        "limit",
        source="the published program of baker2018large",
    ),
)

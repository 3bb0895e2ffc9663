"""Samplers of the Dirichlet-process mixture against the enumerated posterior, and Geweke's joint test."""

from collections.abc import Sequence

import numpy as np

from checks.statistics.joint import joint_test
from checks.statistics.moments import mean_test
from checks.statistics.outcome import Outcome, bonferroni
from checks.statistics.proportion import proportion_test
from samplers.dp_slice import DPSlice, DPState, Users, normalised
from samplers.gamma_updates import log_gamma_draws
from targets.dp_mixture import PartitionPosterior, canonical
from targets.sparse_rows import SparseRows, sparse_rows

RARE = 5
"""Partitions of which fewer than this number of replicates are expected are one class."""


def partition_test(
    sampler: DPSlice, posterior: PartitionPosterior, step_size, *, seed: int, replicates: int, sweeps: int = 2
) -> list[Outcome]:
    """Test that steps with all users keep p(partition, alpha | x), from independent exact starts.

        P(partition after the steps = s) = p(s | x) for every s;   E alpha = E(alpha | x) where alpha is random

    Every replicate starts from its own exact draw of (alpha, z), with sticks and atoms from their Gamma laws given z:
    the ends are independent, and nothing is said of mixing. From there one step of SCIR is exact at any step size
    (`DPSlice`, Error); of more steps only a sampler that forgets where it was keeps the posterior exactly.

    Source: the enumeration of `targets.dp_mixture.PartitionPosterior`; the tail of `checks.statistics.moments`.

    Args:
        sampler: with `ExactGamma`, or with `CIRUpdate` and one step.
        posterior: the tiny model and its users.
        step_size: of the sampler.
        seed: of the starts and the steps.
        replicates: number of independent chains.
        sweeps: steps of each.

    Returns:
        One outcome for the partition, and one for the mean of a random alpha.
    """
    generator = np.random.default_rng(seed)
    users, labels, alphas = Users(posterior.rows), [], []
    for alpha, z in posterior.draw(generator, replicates):
        state = conditional(sampler, generator, alpha, z, posterior.rows)
        for _ in range(sweeps):
            state = sampler.step(generator, state, step_size, users)
        labels.append(state.labels)
        alphas.append(state.concentration)
    outcomes = [bonferroni("law of the partition", partition_outcomes(np.array(labels), posterior))]
    if posterior.model.concentration is None:
        mean, deviation = posterior.concentration_moments()
        unit = "standard deviations"
        outcomes.append(mean_test(np.array(alphas), mean, name="mean of alpha", unit=unit, scale=deviation))
    return outcomes


def partition_outcomes(labels: np.ndarray, posterior: PartitionPosterior) -> list[Outcome]:
    """A test for every partition that is not `RARE`, and one of all others, from independent labels (R, n)."""
    count, p = len(labels), posterior.probabilities
    common = p * count >= RARE
    match = np.all(canonical(labels)[:, None, :] == posterior.strings[common], axis=2)
    counts = [*match.sum(axis=0), count - match.sum()]
    names = [*("".join(map(str, s)) for s in posterior.strings[common]), "all others"]
    chances = [*p[common], 1 - p[common].sum()]
    return [
        proportion_test(int(k), count, float(chance), name=f"partition {name}")
        for k, name, chance in zip(counts, names, chances, strict=True)
        if chance > 1e-9  # nothing is rare: what is left over is round-off
    ]


NAMES = ("alpha", "log alpha", "components in use", "z*", "largest component", "log likelihood")


def joint_outcomes(
    sampler: DPSlice, lengths: Sequence[int], step_size, *, seed: int, replicates: int, sweeps: int = 3
) -> list[Outcome]:
    """Geweke's joint test of (alpha, z, v, theta) and data of users with `lengths` visits, `NAMES` being looked at.

    Args:
        sampler: an exact one with a random alpha.
        lengths: visits of each user.
        step_size: of the sampler.
        seed: of the test.
        replicates: number of independent chains.
        sweeps: steps of each, with new data between them.
    """
    model, sizes = sampler.model, np.asarray(lengths)

    def prior(generator, count):
        states = []
        for _ in range(count):
            alpha, z, _ = model.simulate(generator, sizes)
            states.append(conditional(sampler, generator, alpha, z))
        return states

    def data(generator, states):
        return [observed(generator, state, sizes) for state in states]

    def transition(generator, states, rows):
        return [sampler.step(generator, s, step_size, Users(x)) for s, x in zip(states, rows, strict=True)]

    def functions(states, rows):
        return np.array([summary(s, x) for s, x in zip(states, rows, strict=True)])

    return joint_test(
        prior, data, transition, functions, seed=seed, replicates=replicates, sweeps=sweeps, names=NAMES
    )  # fmt: skip


def conditional(
    sampler: DPSlice, generator: np.random.Generator, alpha: float, z: np.ndarray, rows: SparseRows | None = None
) -> DPState:
    """The state given alpha, z and data: sticks Gamma((1 + m_j, alpha + M_j)), atoms Gamma(a + visits).

    Without `rows` the atoms are those of the prior.
    """
    state = sampler.start(generator, alpha, z)
    used = np.bincount(z)
    shape = np.stack([1.0 + used, alpha + len(z) - np.cumsum(used)], axis=1)
    state = state._replace(log_sticks=log_gamma_draws(generator, shape))
    if rows is None:
        return state
    visits = np.zeros_like(state.log_atoms)
    np.add.at(visits, z, rows.dense())
    return state._replace(log_atoms=log_gamma_draws(generator, sampler.model.base + visits))


def observed(generator: np.random.Generator, state: DPState, lengths: np.ndarray):
    """x given z and theta."""
    theta = np.exp(normalised(state.log_atoms))[state.labels]
    return sparse_rows(generator.multinomial(lengths, theta / theta.sum(axis=1, keepdims=True)))


def summary(state: DPState, rows) -> list[float]:
    """The functions `NAMES`; of the likelihood the terms that depend on theta."""
    used = np.bincount(state.labels)
    log_theta = normalised(state.log_atoms)[state.labels]
    x = rows.dense()
    likelihood = float(np.sum(np.where(x > 0, x * log_theta, 0.0)))
    alpha = state.concentration
    return [
        alpha, np.log(alpha), float(np.count_nonzero(used)), float(len(used)), float(used.max()), likelihood
    ]  # fmt: skip

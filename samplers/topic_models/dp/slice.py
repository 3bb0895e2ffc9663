"""Slice sampler of a Dirichlet-process mixture of categorical laws, exact or with minibatches of users."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source, StationaryLaw
from sgmcmc_verification.samplers.positive.gamma_updates import ExactGamma, GammaUpdate, log_gamma_draws
from sgmcmc_verification.samplers.topic_models.dp.kernels import log_mixture, reassigned
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.numerics.ragged import SparseRows
from sgmcmc_verification.targets.topic_models.dp_mixture import DPMixture

BLOCK = 32
"""Sticks that are broken at a time."""
MOST = 100_000
"""Components beyond which a run is given up: alpha runs away."""


class DPState(NamedTuple):
    """The components up to the last one in use, z* = 1 + max z of them.

    Attributes:
        labels: z (N,), of all users, those outside of the last batches as they were left.
        log_sticks: log of gamma (z*, 2); v_j = gamma_j1 / (gamma_j1 + gamma_j2).
        log_atoms: log of theta (z*, d), not normalised.
        concentration: alpha.
    """

    labels: np.ndarray
    log_sticks: np.ndarray
    log_atoms: np.ndarray
    concentration: float


class StepSizes(NamedTuple):
    """SDE times of a step: of the atoms (h_theta) and of the sticks (h_v)."""

    atoms: float
    sticks: float


@dataclass(frozen=True, eq=False)
class Users:
    """The data, and how many users a step looks at.

    Args:
        rows: x.
        batch_size: n users without replacement, None for all.

    Raises:
        ValueError: if `batch_size` does not lie between 1 and the number of users, or there is no user.
    """

    rows: SparseRows
    batch_size: int | None = None

    def __post_init__(self):
        require(self.rows.size > 0, "rows: must hold a user", self.rows.size)
        if self.batch_size is not None:
            message = f"batch_size: must lie between 1 and {self.rows.size} users"
            require(1 <= self.batch_size <= self.rows.size, message, self.batch_size)

    @property
    def scale(self) -> float:
        """N / n."""
        return self.rows.size / (self.batch_size or self.rows.size)

    def draw(self, generator: np.random.Generator) -> np.ndarray:
        """The numbers (n,) of the users of a batch."""
        if self.batch_size is None or self.batch_size == self.rows.size:
            return np.arange(self.rows.size)
        return generator.choice(self.rows.size, self.batch_size, replace=False, shuffle=False)


@dataclass(frozen=True, eq=False)
class DPSlice:
    """Slice sampler without truncation; a step looks at n of N users, whose counts are scaled by c = N / n.

        m_j = c #{i in S: z_i = j},   M_j = sum_{k>j} m_k
        gamma_j <- update towards Gamma((1 + m_j, alpha + M_j)) over h_v,   v_j = gamma_j1 / (gamma_j1 + gamma_j2)
        theta_j <- update towards Gamma(a + c sum_{i in S, z_i = j} x_i) over h_theta            for j < z*
        u_i ~ U(0, w_{z_i}) for i in S;   alpha ~ Gamma(1 + z*, rate 1 - sum_{j<z*} log(1 - v_j))
        new components from the prior until what is left of the sticks is at most min u
        z_i ~ 1[w_j > u_i] prod_k theta_jk^x_ik for i in S;   z* = 1 + max z over all users, the rest is forgotten

    With all users and `ExactGamma` every line is a draw from a full conditional (v, theta, u, (alpha and the unused
    components), z, each given the others): the slice sampler of kalli2011slice, exact. The conditional of alpha holds
    because the sticks beyond z* are integrated out and drawn again after it. With `CIRUpdate` and `ExpandedMeanUpdate`
    it is the stochastic slice sampler with SCIR and SGRLD.

    Source: baker2018large, section 4.2; walker2007sampling, kalli2011slice (slice sampler).
    Differs from the source in:
        1. everything is in logs, users are a compiled loop.
        2. u is drawn when it is needed and not kept.
        3. SGRLD's sticks have omega = (v, 1 - v); the published program uses v for both.
        4. with a fixed concentration alpha is not updated.

    Args:
        model: the mixture.
        update: of the sticks and the atoms.
        components: K0, over which the labels of the start are uniform.

    Error: none with all users and `ExactGamma`, nor with `CIRUpdate` as h -> inf. With all users and finite h, a row
        theta = s omega of `CIRUpdate` has the following law given z (own derivation, by Ito's formula): s is a CIR
        process of its own, and omega, with noise independent of that of s, a Wright-Fisher diffusion

            d omega = (a + n - (a + n)_. omega) dt / s + sqrt(2 / s) (diag omega - omega omega^T)^(1/2) dW

        that keeps Dirichlet(a + n) whatever the path of s: the transition of omega is exact. But s sets its speed, and
        remembers earlier counts, so that the speed depends on the past: a bias of second order. It vanishes where the
        total of a row does not depend on z. `ExpandedMeanUpdate` with a fixed alpha has a bias O(h). Minibatches bias
        all of them: c m_j has the variance of a batch, and labels are old. Sized in
        reports/published/experiments/dp-tiny.md.

    Raises:
        ValueError: for a step size that is not positive, rows of another width, or more than `MOST` components.
    """

    model: DPMixture
    update: GammaUpdate = field(default_factory=ExactGamma)
    components: int = 20

    backend = "host"
    needs = frozenset({"statistics"})

    def __post_init__(self):
        require(self.components >= 1, "components: must be at least 1", self.components)

    @property
    def claims(self) -> Claims:
        """Exact or not; the target is the posterior of the model, no density on a manifold."""
        return Claims(
            Source("baker2018large", "section 4.2"),
            (ExactLaw()) if self.update.exact else (StationaryLaw()),
            conditions=("all users",),
            spaces=("dirichlet-process",),
        )

    def init(self, generator: np.random.Generator, users: Users) -> DPState:
        """Labels uniform on K0 components, everything else from the prior."""
        self.check(users)
        labels = generator.integers(self.components, size=users.rows.size)
        alpha = self.model.prior_concentration(generator)
        return self.start(generator, alpha, labels)

    def start(self, generator: np.random.Generator, concentration: float, labels: np.ndarray) -> DPState:
        """The state with given alpha and z (N,), sticks and atoms from their prior."""
        count = int(np.max(labels)) + 1
        sticks, atoms = self.prior_sticks(generator, concentration, count), self.prior_atoms(generator, count)
        return DPState(np.asarray(labels, np.int64), sticks, atoms, concentration)

    def check(self, users: Users) -> None:
        """Raise ValueError for users of another width."""
        require(users.rows.width == self.model.width, f"users: must have {self.model.width} columns", users.rows.width)

    def step(
        self, generator: np.random.Generator, state: DPState, step_size: float | StepSizes, users: Users
    ) -> DPState:
        """One iteration.

        Args:
            generator: NumPy's.
            state: where the chain is.
            step_size: a float for sticks and atoms alike, or `StepSizes`.
            users: the data.
        """
        sizes = step_size if isinstance(step_size, StepSizes) else StepSizes(step_size, step_size)
        require(min(sizes) > 0, "step_size: must be positive", step_size)
        batch = users.draw(generator)
        rows = users.rows if len(batch) == users.rows.size else users.rows.take(batch)
        state = self.move_components(generator, state, sizes, state.labels[batch], rows, users.scale)
        log_weights, log_left = log_stick_weights(state.log_sticks)
        log_slices = self.slices(generator, log_weights[state.labels[batch]])
        state = state._replace(concentration=self.concentration(generator, state, log_left))
        state, log_weights = self.grow(generator, state, log_weights, log_left, float(np.min(log_slices)))
        labels = state.labels.copy()
        labels[batch] = self.assign(generator, state, log_weights, rows, log_slices, labels[batch])
        return self.forget(state._replace(labels=labels))

    def move_components(
        self,
        generator: np.random.Generator,
        state: DPState,
        sizes: StepSizes,
        labels: np.ndarray,
        rows: SparseRows,
        scale: float,
    ) -> DPState:
        """The updates of sticks and atoms given the labels and rows of the batch."""
        sticks, totals = self.counts(labels, rows, len(state.log_sticks), scale)
        prior = np.array([1.0, state.concentration])
        return state._replace(
            log_sticks=self.update(generator, state.log_sticks, prior, sticks, sizes.sticks),
            log_atoms=self.update(generator, state.log_atoms, self.model.base, totals, sizes.atoms),
        )

    def counts(
        self, labels: np.ndarray, rows: SparseRows, components: int, scale: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """(m_j, M_j) (K, 2), and the visits (K, d) of each component: unbiased for those of all users."""
        used = np.bincount(labels, minlength=components).astype(np.float64)
        beyond = used.sum() - np.cumsum(used)
        where = np.repeat(labels, rows.lengths) * rows.width + rows.columns
        totals = np.bincount(where, rows.counts, components * rows.width).reshape(components, rows.width)
        return scale * np.stack([used, beyond], axis=1), scale * totals

    def slices(self, generator: np.random.Generator, log_weights: np.ndarray) -> np.ndarray:
        """log u_i, u_i ~ U(0, w_{z_i})."""
        return log_weights - generator.standard_exponential(log_weights.shape)

    def concentration(self, generator: np.random.Generator, state: DPState, log_left: float) -> float:
        """alpha given the sticks below z*, of which sum log(1 - v) = `log_left`."""
        if self.model.concentration is not None:
            return state.concentration
        return float(generator.standard_gamma(1 + len(state.log_sticks)) / (1.0 - log_left))

    def prior_sticks(self, generator: np.random.Generator, concentration: float, count: int) -> np.ndarray:
        """log sticks (count, 2) from the prior."""
        shape = np.empty((count, 2))
        shape[:] = 1.0, concentration
        return log_gamma_draws(generator, shape)

    def prior_atoms(self, generator: np.random.Generator, count: int) -> np.ndarray:
        """log atoms (count, d) from the prior."""
        return log_gamma_draws(generator, np.full((count, self.model.width), self.model.base))

    def grow(
        self, generator: np.random.Generator, state: DPState, log_weights: np.ndarray, log_left: float, log_least: float
    ) -> tuple[DPState, np.ndarray]:
        """Components from the prior until at most the smallest slice is left of the sticks; the state and all log w."""
        sticks, weights, count = [state.log_sticks], [log_weights], 0
        while log_left > log_least:
            block = self.prior_sticks(generator, state.concentration, BLOCK)
            new, _ = log_stick_weights(block)
            left = log_left + np.cumsum(log_fractions(block)[1])
            enough = int(np.argmax(left <= log_least)) + 1 if left[-1] <= log_least else BLOCK
            sticks.append(block[:enough])
            weights.append(log_left + new[:enough])
            log_left, count = left[enough - 1], count + enough
            if count > MOST:
                raise ValueError(
                    f"step_size: more than {MOST} components are asked for at alpha = {state.concentration:.4g}: the "
                    "chain has run away; give a smaller one"
                )
        if not count:
            return state, log_weights
        atoms = np.concatenate([state.log_atoms, self.prior_atoms(generator, count)])
        return state._replace(log_sticks=np.concatenate(sticks), log_atoms=atoms), np.concatenate(weights)

    def assign(
        self,
        generator: np.random.Generator,
        state: DPState,
        log_weights: np.ndarray,
        rows: SparseRows,
        log_slices: np.ndarray,
        labels: np.ndarray,
    ) -> np.ndarray:
        """New labels (n,) of the users of the batch."""
        log_theta, uniforms = normalised(state.log_atoms), generator.random(rows.size)
        return reassigned(rows.starts, rows.columns, rows.counts, log_theta, log_weights, log_slices, uniforms, labels)

    def forget(self, state: DPState) -> DPState:
        """Without the components beyond the last label."""
        count = int(state.labels.max()) + 1
        return state._replace(log_sticks=state.log_sticks[:count], log_atoms=state.log_atoms[:count])


def log_fractions(log_sticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log v and log(1 - v), (K,) each, of log gamma (K, 2)."""
    total = np.logaddexp(log_sticks[:, 0], log_sticks[:, 1])
    return log_sticks[:, 0] - total, log_sticks[:, 1] - total


def log_stick_weights(log_sticks: np.ndarray) -> tuple[np.ndarray, float]:
    """log w (K,), and the log of what is left, sum log(1 - v)."""
    log_v, log_rest = log_fractions(log_sticks)
    left = np.cumsum(log_rest)
    return log_v + np.concatenate([[0.0], left[:-1]]), float(left[-1])


def normalised(log_atoms: np.ndarray) -> np.ndarray:
    """Rows with sum exp = 1."""
    top = log_atoms.max(axis=1, keepdims=True)
    return log_atoms - (top + np.log(np.exp(log_atoms - top).sum(axis=1, keepdims=True)))


def log_predictive(state: DPState, rows: SparseRows) -> float:
    """-(1/T) sum_i log sum_{j<z*} w_j prod_k theta_jk^x_ik of test users; lower is better.

    Source: baker2018large, figure 3b. Differs from the source in:
        1. the weights are those of all infinitely many sticks; the published program divides by the sum of those that
           it has broken, which changes a score by at most -log(1 - min u).
    """
    log_weights = log_stick_weights(state.log_sticks)[0]
    return -float(
        np.mean(log_mixture(rows.starts, rows.columns, rows.counts, normalised(state.log_atoms), log_weights))
    )

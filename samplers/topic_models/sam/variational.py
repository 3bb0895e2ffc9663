"""Mean-field and stochastic variational inference for the spherical admixture model.

    q(mu) = vMF(mean, kappa_0),   q(beta_k) = vMF(topics_k, sigma),   q(theta_d) = Dirichlet(weights_d)

With A_0 = A_V(kappa_0), A = A_V(sigma), a = weights_d, a_0 = sum a, p_d = topics v_d, G = topics topics^T the bound is

    L = kappa_0 A_0 m . mean + sigma A A_0 mean . sum_k topics_k + sum_d L_d
    L_d = kappa rho_d + sum_k (alpha_k - 1) (psi(a_k) - psi(a_0))
          + log B(a) - sum_k (a_k - 1) psi(a_k) + (a_0 - K) psi(a_0)
    rho_d = A p_d . a / (a_0 sqrt E_d),   E_d = (a_0 + (1 - A^2) |a|^2 + A^2 a . G a) / (a_0 (a_0 + 1))

up to a constant. E_d = E |b|^2 is exact; rho_d, a mean over the root of a mean for the mean of a ratio, is not, so that
L need not be below the log evidence.

Source: reisinger2010spherical; hoffman2013stochastic (the stochastic version). Differs from the sources in:
    1. where the bound falls, the rate of the weights is halved for the document whose L_d fell, not for all.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.numerics.bessel import mean_resultant
from sgmcmc_verification.targets.numerics.ragged import SparseRows
from sgmcmc_verification.targets.topic_models.sam.documents import matrix
from sgmcmc_verification.targets.topic_models.sam.model import SAM, unit_rows

LEAST = 1e-5
"""Of the weights."""


class Variational(NamedTuple):
    """Parameters of q.

    Attributes:
        mean: (V,), unit.
        topics: (K, V), unit rows.
        weights: (D, K), positive.
    """

    mean: np.ndarray
    topics: np.ndarray
    weights: np.ndarray


class Optimiser(NamedTuple):
    """Limits of an update by gradient ascent.

    Attributes:
        steps: at most so many.
        rate: a step is the gradient times this.
        most: largest change of an entry in a step.
        check: every so many steps a fall of the bound is undone and the rate halved.
        enough: done where |grad| is below it.
    """

    steps: int
    rate: float
    most: float
    check: int = 10
    enough: float = 0.01


WEIGHTS = Optimiser(300, 1e-2, 0.05)
TOPICS = Optimiser(100, 1e-3, 0.1)
"""`most` times 1 / sqrt V."""


@dataclass(frozen=True, eq=False)
class MeanField:
    """The bound of a model and documents, its gradients and its updates.

    Args:
        model: the model.
        rows: the documents.

    Raises:
        ValueError: if the documents have not V words.
    """

    model: SAM
    rows: SparseRows

    def __post_init__(self):
        words = self.model.words
        require(self.rows.width == words, f"rows: must have the {words} words of the model", self.rows.width)

    @cached_property
    def _matrix(self) -> Any:
        return matrix(self.rows)

    @cached_property
    def _A(self) -> float:
        return float(mean_resultant(self.model.words, self.model.topic_concentration))

    @cached_property
    def _A0(self) -> float:
        return float(mean_resultant(self.model.words, self.model.prior_concentration))

    def start(self, generator: np.random.Generator) -> Variational:
        """mean and topics normalise(U(0, 1)^V), weights 3 (|p| + 0.01) / sum."""
        V, K = self.model.words, self.model.topics
        mean, topics = unit_rows(generator.random((1, V)))[0], unit_rows(generator.random((K, V)))
        return Variational(mean, topics, self.start_weights(topics))

    def start_weights(self, topics: np.ndarray) -> np.ndarray:
        """3 (|v_d . topics_k| + 0.01) over their sum."""
        close = np.abs(self._matrix @ topics.T) + 0.01
        return 3 * close / close.sum(axis=1, keepdims=True)

    # The bound ---------------------------------------------------------------------------------------------------

    def bound(self, q: Variational) -> float:
        """L."""
        return self.prior_part(q) + float(self.document_parts(q).sum())

    def prior_part(self, q: Variational) -> float:
        """The part of L without documents."""
        m = self.model
        ahead = m.prior_concentration * m.direction + self._A * m.topic_concentration * q.topics.sum(axis=0)
        return float(self._A0 * (q.mean @ ahead))

    def document_parts(self, q: Variational) -> np.ndarray:
        """L_d (D,)."""
        return self._parts(q.weights, self._matrix @ q.topics.T, q.topics @ q.topics.T)

    def _parts(self, a, products, gram):
        alpha, K = self.model.alpha, self.model.topics
        total = a.sum(axis=1)
        psi, psi_total = special.digamma(a), special.digamma(total)
        value = self.model.concentration * self._moments(a, products, gram)[0]
        value = value + (psi - psi_total[:, None]) @ (alpha - 1)
        value += special.gammaln(a).sum(axis=1) - special.gammaln(total)
        return value - np.sum((a - 1) * psi, axis=1) + (total - K) * psi_total

    def _moments(self, a, products, gram):
        """rho, E (D,) and G a (D, K)."""
        total, A = a.sum(axis=1), self._A
        along = a @ gram
        square = (1 - A * A) * np.sum(a * a, axis=1) + A * A * np.sum(a * along, axis=1)
        E = (total + square) / (total * (total + 1))
        return A * np.sum(products * a, axis=1) / (total * np.sqrt(E)), E, along

    def weights_gradient(self, a: np.ndarray, products: np.ndarray, gram: np.ndarray) -> np.ndarray:
        """dL_d / da (D, K)."""
        alpha, A = self.model.alpha, self._A
        total = a.sum(axis=1, keepdims=True)
        _, E, along = self._moments(a, products, gram)
        E, product = E[:, None], np.sum(products * a, axis=1, keepdims=True)
        slope = (1 + 2 * (1 - A * A) * a + 2 * A * A * along - E * (2 * total + 1)) / (total * (total + 1))
        rho = A / np.sqrt(E) * (products / total - product / total**2 - product / (2 * total * E) * slope)
        entropy = (alpha - a) * special.polygamma(1, a) + (total - alpha.sum()) * special.polygamma(1, total)
        return entropy + self.model.concentration * rho

    def topics_gradient(self, q: Variational, scale: float = 1.0) -> np.ndarray:
        """Tangent gradient (K, V) of L in the topics, the part of the documents times `scale`."""
        m, A = self.model, self._A
        a, total = q.weights, q.weights.sum(axis=1)
        products = self._matrix @ q.topics.T
        _, E, _ = self._moments(a, products, q.topics @ q.topics.T)
        product = np.sum(products * a, axis=1)
        pull = (a * (1 / (total * np.sqrt(E)))[:, None]).T @ self._matrix
        weight = product / (total * 2 * E**1.5 * total * (total + 1))
        # d(a . G a) / d topics_k holds for unit topics: the diagonal of G is fixed, and falls out of the tangent part
        moment = 2 * A * A * (a * weight[:, None]).T @ a
        found = m.concentration * A * scale * (pull - moment @ q.topics)
        found = found + A * self._A0 * m.topic_concentration * q.mean
        return found - np.sum(found * q.topics, axis=1, keepdims=True) * q.topics

    # Updates -----------------------------------------------------------------------------------------------------

    def update_mean(self, q: Variational) -> Variational:
        """The mean that maximises L: normalise(kappa_0 m + A sigma sum_k topics_k)."""
        m = self.model
        ahead = m.prior_concentration * m.direction + self._A * m.topic_concentration * q.topics.sum(axis=0)
        return q._replace(mean=unit_rows(ahead))

    def update_weights(self, q: Variational, how: Optimiser = WEIGHTS) -> Variational:
        """Ascent in the weights of every document."""
        gram, products = q.topics @ q.topics.T, self._matrix @ q.topics.T
        done = q.weights.copy()
        best = self._parts(done, products, gram)
        active = np.arange(len(done))
        rate = np.full(len(done), how.rate)
        for _ in range(how.steps // how.check):
            a, p = done[active].copy(), products[active]
            steep = np.zeros(len(active))
            for _ in range(how.check):
                gradient = self.weights_gradient(a, p, gram)
                change = np.clip(rate[active, None] * gradient, -how.most, how.most)
                steep = np.abs(np.where((a <= LEAST) & (gradient < 0), 0, gradient)).max(axis=1)
                a = np.maximum(a + change, LEAST)
            value = self._parts(a, p, gram)
            better = value >= best[active]  # False for NaN
            done[active[better]], best[active[better]] = a[better], value[better]
            rate[active[~better]] /= 2
            active = active[~(better & (steep < how.enough)) & (rate[active] > 1e-12)]
            if active.size == 0:
                break
        return q._replace(weights=done)

    def update_topics(self, q: Variational, how: Optimiser = TOPICS, scale: float = 1.0) -> Variational:
        """Ascent in the topics, on the spheres; with `scale` for the part of the documents."""
        value = lambda q: self.prior_part(q) + scale * float(self.document_parts(q).sum())
        best, level, rate = q, value(q), how.rate
        limit = how.most / np.sqrt(self.model.words)
        for _ in range(how.steps // how.check):
            trial, steep = best, 0.0
            for _ in range(how.check):
                gradient = self.topics_gradient(trial, scale)
                steep = float(np.abs(gradient).max())
                change = np.clip(rate * gradient, -limit, limit)
                trial = trial._replace(topics=unit_rows(trial.topics + change))
            found = value(trial)
            if found >= level:  # False for NaN
                best, level = trial, found
                if steep < how.enough:
                    break
            else:
                rate /= 2
        return best

    def sweep(self, q: Variational) -> Variational:
        """Weights, topics and mean, one after the other; L does not fall."""
        return self.update_mean(self.update_topics(self.update_weights(q)))


@dataclass(frozen=True, eq=False)
class StochasticMeanField:
    """The same with a batch of documents a sweep.

        weights of the batch; topics* that maximise the bound with the batch times D / S;
        topics <- normalise((1 - w_t) topics + w_t topics*),   w_t = (t + tau)^-decay;   mean

    Source: hoffman2013stochastic; settings of liu2016stochastic's released program: S = 50, tau = 5, decay 0.8.

    Args:
        model: the model.
        rows: all documents.
        batch_size: S.
        delay: tau > 0.
        decay: in (0.5, 1].

    Raises:
        ValueError: if an argument is out of its range.
    """

    model: SAM
    rows: SparseRows
    batch_size: int = 50
    delay: float = 5.0
    decay: float = 0.8

    def __post_init__(self):
        require(1 <= self.batch_size <= self.size, f"batch_size: must lie in 1..{self.size}", self.batch_size)
        require_positive(self, "delay")
        require(0.5 < self.decay <= 1, "decay: must lie in (0.5, 1]", self.decay)

    @property
    def size(self) -> int:
        """D."""
        return self.rows.size

    def start(self, generator: np.random.Generator) -> Variational:
        """The start of `MeanField`, without weights."""
        first = MeanField(self.model, self.rows.take(np.arange(1))).start(generator)
        return first._replace(weights=first.weights[:0])

    def sweep(self, generator: np.random.Generator, q: Variational, number: int) -> Variational:
        """Sweep t = 0, 1, .."""
        chosen = generator.choice(self.size, self.batch_size, replace=False)
        part = MeanField(self.model, self.rows.take(chosen))
        local = part.update_weights(q._replace(weights=part.start_weights(q.topics)))
        ahead = part.update_topics(local, scale=self.size / self.batch_size).topics
        weight = (number + self.delay) ** -self.decay
        topics = unit_rows((1 - weight) * q.topics + weight * ahead)
        return part.update_mean(local._replace(topics=topics))._replace(weights=q.weights[:0])

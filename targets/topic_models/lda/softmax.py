"""Latent Dirichlet allocation with topics in a softmax of Gaussian coordinates: no boundary, no reflection."""

import math
from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.targets.numerics.validation import require_positive, require_some


@dataclass(frozen=True)
class SoftmaxLDA:
    """LDA whose topics are phi_wk = exp(theta_wk) / sum_v exp(theta_vk), with theta_wk ~ N(mean, variance) independent.

        eta_d ~ Dirichlet(alpha, .., alpha),  z_di ~ eta_d,  w_di ~ phi_{z_di}

    as in `targets.topic_models.lda.model.LDA`, whose prior of the topics is a Dirichlet law. Arrays of topics are (V,
    K).

    Source: the released code of liu2019understanding, after the expanded natural parameters of
    patterson2013stochastic, section 4.1, with a Gaussian prior in place of the logarithm of a Gamma variate.

    Args:
        topics: K.
        words: V.
        alpha: > 0.
        mean: of the prior of theta_wk; it has no influence on phi.
        variance: > 0, of the prior of theta_wk.

    Raises:
        ValueError: if an argument is out of its range.
    """

    topics: int
    words: int
    alpha: float
    mean: float = 0.1
    variance: float = 1.0

    def __post_init__(self):
        require_some(topics=self.topics, words=self.words)
        require_positive(alpha=self.alpha, variance=self.variance)
        if not math.isfinite(self.mean):
            raise ValueError(f"mean: must be finite, got {self.mean!r}")

    def start(self, generator: np.random.Generator) -> np.ndarray:
        """theta (V, K) from the prior, the start of the released code of liu2019understanding."""
        return self.mean + math.sqrt(self.variance) * generator.standard_normal((self.words, self.topics))

    def weights(self, theta: np.ndarray) -> np.ndarray:
        """phi (.., V, K) times a number for each topic: exp(theta), of which the largest is 1."""
        return np.exp(theta - theta.max(axis=-2, keepdims=True))

    def phi(self, theta: np.ndarray) -> np.ndarray:
        """Topics (.., V, K), columns that sum to 1."""
        powers = self.weights(theta)
        return powers / powers.sum(axis=-2, keepdims=True)

    def gradient(self, theta: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """grad U (.., V, K) at theta for expected counts N_wk of words in topics; U = -log p(theta | words).

            -dU / d theta_wk = (mean - theta_wk) / variance + N_wk - phi_wk N_.k

        Source: derived from the model; the multinomial part is that of the expanded natural parameters of
        patterson2013stochastic, section 4.1.
        """
        data = counts - self.phi(theta) * counts.sum(axis=-2, keepdims=True)
        return (theta - self.mean) / self.variance - data

"""Latent Dirichlet allocation with topics in the expanded-mean parameterisation."""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.targets.numerics.validation import require_positive, require_some


@dataclass(frozen=True)
class LDA:
    """D documents of words w_di, each from a topic z_di of its document, of K topics over V words.

        theta_wk ~ Gamma(beta, 1),  phi_wk = theta_wk / sum_v theta_vk  (so phi_k ~ Dirichlet(beta, .., beta))
        eta_d ~ Dirichlet(alpha, .., alpha),  z_di ~ eta_d,  w_di ~ phi_{z_di}

    Arrays of topics are (V, K): the K numbers of a word, which Gibbs sampling reads together, lie together.

    Source: patterson2013stochastic, section 4 (its theta_kw is theta_wk here); ma2015complete, section 4.2.

    Args:
        topics: K.
        words: V.
        alpha: > 0.
        beta: > 0.

    Raises:
        ValueError: if an argument is out of its range.
    """

    topics: int
    words: int
    alpha: float
    beta: float

    def __post_init__(self):
        require_some(topics=self.topics, words=self.words)
        require_positive(alpha=self.alpha, beta=self.beta)

    def start(self, generator: np.random.Generator) -> np.ndarray:
        """theta (V, K) from Gamma(1, 1), the start of patterson2013stochastic's program."""
        return generator.standard_gamma(1.0, (self.words, self.topics))

    def weights(self, theta: np.ndarray) -> np.ndarray:
        """phi (.., V, K) times a number for each topic: theta itself."""
        return theta

    def gradient(self, theta: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """grad U (.., V, K) at theta for expected counts N_wk of words in topics; U = -log p(theta | words).

            -dU / d theta_wk = (beta - 1 + N_wk) / theta_wk - N_k. / theta_k. - 1

        Source: patterson2013stochastic, section 4.1 (expanded mean); ma2015complete, section 4.2.
        """
        gradient = counts + (self.beta - 1.0)
        gradient /= theta
        gradient -= counts.sum(axis=-2, keepdims=True) / theta.sum(axis=-2, keepdims=True) + 1.0
        return np.negative(gradient, out=gradient)


def normalised(theta: np.ndarray) -> np.ndarray:
    """phi (V, K): theta with columns that sum to 1."""
    return theta / theta.sum(axis=0)

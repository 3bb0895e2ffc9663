"""A corpus so small that the topics of all its words can be enumerated: the posterior is a finite mixture."""

import functools
import itertools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.target import Target
from sgmcmc_verification.targets.topic_models.lda.model import LDA

LARGEST = 4096
"""Assignments that are enumerated at most."""


@dataclass(frozen=True, eq=False)
class TinyLDA:
    """The exact posterior of an LDA model of a few words.

        p(z, w) = prod_d B(alpha + n_d.) / B(alpha) prod_k B(beta + n_k.) / B(beta)   (Dirichlet integrals)
        phi_k | z ~ Dirichlet(beta + n_k.),  theta_k. ~ Gamma(V beta, 1) independent of phi_k and of z

    so that the posterior of theta is a mixture over the K^T assignments z of the T words.

    Source: patterson2013stochastic, section 4, with its sums over z carried out; the last line is derived here: the
    likelihood depends on theta through phi alone, and of a vector of Gamma variates of one scale the sum and the shares
    are independent.

    Args:
        model: LDA.
        documents: word identifiers of each document.

    Raises:
        ValueError: if there are more than 4096 assignments.
    """

    model: LDA
    documents: tuple[tuple[int, ...], ...]

    def __post_init__(self):
        count = self.model.topics ** sum(map(len, self.documents))
        if count > LARGEST:
            raise ValueError(f"documents: have {count} assignments, at most {LARGEST} are enumerated; take fewer words")

    @functools.cached_property
    def words(self) -> np.ndarray:
        """All words (T,)."""
        return np.concatenate([np.asarray(d, np.int64) for d in self.documents])

    @functools.cached_property
    def offsets(self) -> np.ndarray:
        """Offsets of the documents among the words (D + 1,)."""
        return np.concatenate([[0], np.cumsum([len(d) for d in self.documents])])

    @functools.cached_property
    def assignments(self) -> np.ndarray:
        """All z (S, T)."""
        return np.array(list(itertools.product(range(self.model.topics), repeat=len(self.words))))

    @functools.cached_property
    def topic_counts(self) -> np.ndarray:
        """n_wk of each assignment (S, V, K)."""
        one = np.eye(self.model.topics)[self.assignments]
        return np.einsum("stk,tv->svk", one, np.eye(self.model.words)[self.words])

    @functools.cached_property
    def log_prior(self) -> np.ndarray:
        """log p(z) of each assignment (S,), the shares of topics in documents integrated out."""
        alpha, topics = self.model.alpha, self.model.topics
        found = np.zeros(len(self.assignments))
        for begin, end in itertools.pairwise(self.offsets):
            counts = np.eye(topics)[self.assignments[:, begin:end]].sum(axis=1)
            found += np.sum(special.gammaln(alpha + counts) - special.gammaln(alpha), axis=1)
            found += special.gammaln(topics * alpha) - special.gammaln(topics * alpha + end - begin)
        return found

    @functools.cached_property
    def posterior(self) -> np.ndarray:
        """p(z | w) (S,)."""
        beta, words = self.model.beta, self.model.words
        counts = self.topic_counts
        joint = self.log_prior + np.sum(special.gammaln(beta + counts) - special.gammaln(beta), axis=(1, 2))
        joint -= np.sum(special.gammaln(words * beta + counts.sum(axis=1)), axis=1)
        return special.softmax(joint)

    def conditional(self, phi: np.ndarray) -> np.ndarray:
        """p(z | w, phi) (.., S) for phi (.., V, K)."""
        log_phi = np.log(phi)[..., self.words, :]
        likelihood = sum(log_phi[..., t, :][..., self.assignments[:, t]] for t in range(len(self.words)))
        return special.softmax(self.log_prior + likelihood, axis=-1)

    def expected_counts(self, theta: np.ndarray) -> np.ndarray:
        """E[n_wk | w, phi(theta)] (.., V, K), the sum over all assignments."""
        phi = theta / theta.sum(axis=-2, keepdims=True)
        return np.einsum("...s,svk->...vk", self.conditional(phi), self.topic_counts)

    def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
        """Independent draws of theta from the posterior (count, V, K)."""
        chosen = generator.choice(len(self.posterior), count, p=self.posterior)
        shares = generator.standard_gamma(self.model.beta + self.topic_counts[chosen])
        totals = generator.standard_gamma(self.model.words * self.model.beta, (count, 1, self.model.topics))
        return shares / shares.sum(axis=1, keepdims=True) * totals

    def moment(self, *powers: tuple[int, int, int]) -> float:
        """E prod phi_wk^p over (w, k, p) in `powers`, a sum over assignments of Dirichlet moments."""
        shape = self.model.beta + self.topic_counts
        exponents = np.zeros(shape.shape[1:])
        for word, topic, power in powers:
            exponents[word, topic] += power
        log_moment = np.sum(special.gammaln(shape + exponents) - special.gammaln(shape), axis=(1, 2))
        sums = shape.sum(axis=1)
        log_moment -= np.sum(special.gammaln(sums + exponents.sum(axis=0)) - special.gammaln(sums), axis=1)
        return float(self.posterior @ np.exp(log_moment))

    def target(self) -> Target:
        """The posterior of theta, flat (V K,), with U by the sum over all assignments."""
        model = self.model
        log_prior, counts = jnp.asarray(self.log_prior), jnp.asarray(self.topic_counts)

        def potential(x):
            theta = x.reshape(model.words, model.topics)
            log_phi = jnp.log(theta) - jnp.log(jnp.sum(theta, axis=0))
            terms = jnp.asarray(log_prior, x.dtype) + jnp.einsum("svk,vk->s", jnp.asarray(counts, x.dtype), log_phi)
            return jnp.sum(x) - (model.beta - 1) * jnp.sum(jnp.log(x)) - jax.nn.logsumexp(terms)

        def sample(key, n):
            generator = np.random.default_rng([int(i) for i in np.asarray(jax.random.key_data(key)).ravel()])
            return jnp.asarray(self.sample(generator, n).reshape(n, -1))

        size = model.words * model.topics
        return Target(
            name="tiny-lda",
            manifold=Positive(size),
            example=jnp.linspace(0.6, 1.8, size),
            potential=potential,
            sample=sample,
            curvature=1.0,
            source="enumeration of the topics of all words",
        )


def tiny_lda() -> TinyLDA:
    """Two topics, three words, two documents of five words together: 32 assignments."""
    return TinyLDA(LDA(2, 3, alpha=0.6, beta=2.5), ((0, 1), (0, 0, 2)))


def peaked_lda() -> TinyLDA:
    """Documents of one topic and topics of one word or two: 256 assignments, a chain moves slowly."""
    return TinyLDA(LDA(2, 3, alpha=0.05, beta=0.3), ((0, 0, 0, 1), (2, 2, 2, 1)))

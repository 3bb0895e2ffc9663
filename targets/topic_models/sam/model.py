"""The spherical admixture model (SAM): its laws, its potential, documents drawn from it."""

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.numerics.bessel import log_vmf_constant, mean_resultant
from sgmcmc_verification.targets.numerics.spherical import sample_vmf


@dataclass(frozen=True, eq=False)
class SAM:
    """Topics on S^(V-1), documents about weighted means of topics.

        mu ~ vMF(m, kappa_0),   beta_k ~ vMF(mu, sigma),   theta_d ~ Dirichlet(alpha)
        v_d ~ vMF(b / |b|, kappa),   b = sum_k theta_dk beta_k

    With mu integrated out the joint density of topics and weights, up to a constant, is exp(-U),

        U(beta, theta) = log c_V(|mbar|) - kappa sum_d v_d . b_d / |b_d| - sum_dk (alpha_k - 1) log theta_dk
        mbar = kappa_0 m + sigma sum_k beta_k

    with respect to Hausdorff measure of the topics (K, V), a sphere a row, and Lebesgue measure of K - 1 weights.

    Source: reisinger2010spherical (the model); liu2016stochastic, equation (9).

    Args:
        direction: m (V,), of unit length, V >= 2.
        alpha: (K,) positive, K >= 2.
        prior_concentration: kappa_0 > 0.
        topic_concentration: sigma > 0.
        concentration: kappa > 0.

    Raises:
        ValueError: if an argument is out of its range.
    """

    direction: np.ndarray
    alpha: np.ndarray
    prior_concentration: float
    topic_concentration: float
    concentration: float

    def __post_init__(self):
        m, alpha = np.asarray(self.direction, np.float64), np.asarray(self.alpha, np.float64)
        if m.ndim != 1 or len(m) < 2 or not abs(m @ m - 1) <= 1e-9:
            raise ValueError(f"direction: must be a unit vector of at least 2 entries, got shape {m.shape}")
        if alpha.ndim != 1 or len(alpha) < 2 or not np.all((alpha > 0) & np.isfinite(alpha)):
            raise ValueError(f"alpha: must be at least 2 positive numbers, got {alpha!r}")
        for name in ("prior_concentration", "topic_concentration", "concentration"):
            if not 0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name}: must be positive and finite, got {getattr(self, name)!r}")
        object.__setattr__(self, "direction", m)
        object.__setattr__(self, "alpha", alpha)

    @property
    def topics(self) -> int:
        """K."""
        return len(self.alpha)

    @property
    def words(self) -> int:
        """V."""
        return len(self.direction)

    @property
    def manifold(self) -> ProductOfSpheres:
        """Manifold of the topics (K, V), of dimension K (V - 1)."""
        return ProductOfSpheres(self.topics, self.words)

    @cached_property
    def log_constant(self) -> float:
        """log c_V(kappa), of the density of a document."""
        return float(log_vmf_constant(self.words, self.concentration))

    def centre(self, beta: jax.Array) -> tuple[jax.Array, jax.Array]:
        """mbar (V,) and its length."""
        m = jnp.asarray(self.direction, beta.dtype)
        mbar = self.prior_concentration * m + self.topic_concentration * jnp.sum(beta, axis=0)
        return mbar, jnp.sqrt(mbar @ mbar)

    def prior(self, beta: jax.Array) -> jax.Array:
        """Potential of the topics (K, V) without data, up to a constant: log c_V(|mbar|)."""
        return log_vmf_constant(self.words, self.centre(beta)[1])

    def prior_gradient(self, beta: jax.Array) -> jax.Array:
        """Its gradient, the same (V,) for every topic: -A_V(|mbar|) sigma mbar / |mbar|."""
        mbar, length = self.centre(beta)
        return -(mean_resultant(self.words, length) * self.topic_concentration / length) * mbar

    def start(self, generator: np.random.Generator) -> np.ndarray:
        """Topics (K, V) about m: normalise(m + N(0, I) / sqrt V), as the released program starts."""
        noise = generator.standard_normal((self.topics, self.words)) / np.sqrt(self.words)
        return unit_rows(self.direction + noise)

    def generate(self, key: jax.Array, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Topics (K, V), weights (D, K) and documents (D, V) drawn from the model."""
        mean_key, topic_key, weight_key, document_key = jax.random.split(key, 4)
        K = self.topics
        mean = sample_vmf(mean_key, jnp.asarray(self.direction)[None], jnp.full(1, float(self.prior_concentration)))
        beta = sample_vmf(topic_key, jnp.repeat(mean, K, axis=0), jnp.full(K, float(self.topic_concentration)))
        theta = jax.random.dirichlet(weight_key, jnp.asarray(self.alpha), (count,))
        b = theta @ beta
        axes = b / jnp.linalg.norm(b, axis=1, keepdims=True)
        documents = sample_vmf(document_key, axes, jnp.full(count, float(self.concentration)))
        return np.asarray(beta), np.asarray(theta), np.asarray(documents)


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Each row divided by its length."""
    return rows / np.sqrt(np.sum(rows * rows, axis=-1, keepdims=True))

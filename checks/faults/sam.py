"""Planted bugs of the methods for the spherical admixture model."""

import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.topic_models.sam.enumerated import Topics, sggmc
from sgmcmc_verification.samplers.topic_models.sam.estimator import draw_batch
from sgmcmc_verification.samplers.topic_models.sam.methods import Method
from sgmcmc_verification.targets.topic_models.sam.model import SAM


class NoPrior(SAM):
    """The Bessel ratio term is missing."""

    def prior_gradient(self, beta):
        return jnp.zeros_like(beta[0])


class WithoutPrior(Method):
    """A method for `NoPrior`."""

    def __post_init__(self):
        m = self.model
        wrong = NoPrior(m.direction, m.alpha, m.prior_concentration, m.topic_concentration, m.concentration)
        if not isinstance(m, NoPrior):
            object.__setattr__(self, "model", wrong)
        super().__post_init__()


class WithoutScale(Method):
    """Documents of a batch count once, without D / S."""

    def draw(self, generator, state):
        batch = super().draw(generator, state)
        return batch._replace(scale=np.full_like(batch.scale, 1 / batch.weights.shape[2]))


class OtherGram(Method):
    """Weights given the topics in another order."""

    def draw(self, generator, state):
        topics = self.topics(state)[:, ::-1].copy()
        return draw_batch(generator, self.model, self.rows, topics, self.batch_size, self.weights)


class OtherWeights(Method):
    """Documents with the weights of one another."""

    def draw(self, generator, state):
        batch = super().draw(generator, state)
        return batch._replace(weights=batch.weights[:, ::-1].copy())


def _method(name: str, wrong: type[Method], error: str, *classes: str, documents: int = 2) -> Defect:
    build = lambda posterior: Topics(posterior, sggmc, documents, method=wrong)
    return planted(
        name, "sam/sggmc", build, error, Kill("unbiased_estimates", "sam-s1", "E g = grad U by quadrature"), *classes
    )


DEFECTS: tuple[Defect, ...] = (
    _method("sam-no-bessel-ratio", WithoutPrior, "A_V(|mbar|) sigma mbar / |mbar| left out of the gradient", "limit"),
    # with one of the three documents two thirds of the force are missing
    _method("sam-unscaled-batch", WithoutScale, "the sum over a batch without D / S", "data", documents=1),
    _method("sam-gram-of-other-topics", OtherGram, "weights given topics in another order", "latent"),
    _method("sam-weights-of-other-documents", OtherWeights, "theta of another document of the batch", "latent"),
)

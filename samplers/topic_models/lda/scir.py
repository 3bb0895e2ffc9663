"""SCIR for topics with their totals drawn afresh, which leaves the posterior of an LDA model invariant."""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.positive.scir import CIRSteps


@dataclass(frozen=True, eq=False)
class TopicSCIR(CIRSteps):
    """CIR transitions of the weights theta_wk of words in topics, after theta_k. was drawn from its law given counts.

        N from the estimator at phi = theta / theta_k.,   s_k ~ Gamma(V beta + N_k., 1),
        theta_wk' = CIR transition from s_k phi_wk with shape beta + N_wk over the time h

    With z drawn once from p(z | w, phi) for all documents and N its counts: (phi, z) has the posterior, theta = s phi
    given z is Gamma(beta + N_wk, 1) in every coordinate, and the CIR transition leaves that law invariant, at every h.
    In SCIR s is carried over from step to step. Then s depends on earlier counts, z is drawn without regard to s, and
    the law of phi is near the posterior but not equal to it: on the tiny corpus of `targets.topic_models.lda.tiny`, at
    h = 0.1, a mean is off by 0.023 standard deviations, seven standard errors of 100,000 chains.

    All V K weights are drawn in every step, though a minibatch has few of the words. The transitions of an untouched
    weight over h_1 and h_2 are one over h_1 + h_2, so that it seems that they could be drawn when the word is met
    again. But the steps between use the totals theta_k., and given the path of a total the shares move by a
    Wright-Fisher diffusion with the clock dt / theta_k. (`samplers.topic_models.dp.slice.DPSlice`, Error): a share
    drawn later has to be drawn given the totals that were used, and the one transition over h_1 + h_2 is not its law.

    Source: derived here; SCIR for LDA is baker2018large, section 5.1. Differs from the source in:
        1. the totals theta_k. are drawn afresh.

    Args:
        alpha: beta of the model.

    Error: none for counts of one draw of all topics. Averages of sweeps and minibatches change the law: the average has
    a smaller variance than a draw of z, a minibatch a larger one.

    Raises:
        ValueError: as SCIR.
    """

    @property
    def claims(self) -> Claims:
        """Exact, for counts of one draw of all topics."""
        return Claims(
            Source("baker2018large", "section 5.1"),
            ExactLaw(),
            conditions=("counts of one draw of the topics of all words",),
            spaces=("positive",),
        )

    def begin(self, key: np.random.Generator, position: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """theta with its totals drawn afresh."""
        totals = key.standard_gamma(shape.sum(axis=-2, keepdims=True))
        return position * (totals / position.sum(axis=-2, keepdims=True))

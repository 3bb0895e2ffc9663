"""Multiple-try Metropolis with locally balanced weights (Gagnon, Maire and Zanella 2023).

Candidates y_j ~ N(x, 2h); one is picked with probability proportional to w(x, y) = sqrt(pi(y) / pi(x)). With
this weight pi(x) w(x, y) is symmetric, and the ratio is that of the two sums of weights.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def make(tries=4):
    def step(key, x, h, estimator):
        k_batch, k_cand, k_pick, k_back, k_acc = jax.random.split(key, 5)
        energies = jax.vmap(lambda q: estimator.estimate(k_batch, (), q)[0].potential)
        around = lambda k, centre, n: centre + (2 * h) ** 0.5 * jax.random.normal(k, (n, *x.shape), x.dtype)

        candidates = around(k_cand, x, tries)
        u_x = energies(x[None])[0]
        u_cand = energies(candidates)
        forward = (u_x - u_cand) / 2
        j = jax.random.categorical(k_pick, forward)
        y, u_y = candidates[j], u_cand[j]

        references = around(k_back, y, tries - 1)
        back = jnp.append((u_y - energies(references)) / 2, (u_y - u_x) / 2)

        log_ratio = logsumexp(forward) - logsumexp(back)
        return jnp.where(jnp.log(jax.random.uniform(k_acc)) < log_ratio, y, x)

    return simple_sampler(step, claims=Claims(Source("", "Gagnon, Maire, Zanella, JMLR 2023, Algorithm 1"), ExactLaw()))


mtm = make()

"""A mixture of three Metropolis kernels on the unit box, one of which is drawn in each step.

walk      all coordinates move by Student-t noise, folded at the faces
renewal   each coordinate is drawn anew from the uniform law, with probability one half
mirror    each coordinate goes to 1 - x, with probability one half

Each proposal is as likely as its reverse: folding is by the group of reflections and shifts, under which noise of independent
symmetric coordinates is invariant. The scale of the walk is an option, since the kernels have no common step size.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def fold(y):
    """R to [0, 1] by reflection at both faces."""
    return 1 - jnp.abs(1 - jnp.mod(y, 2))


def propose_walk(scale, degrees):
    def propose(key, x):
        return fold(x + scale * jax.random.t(key, degrees, x.shape, x.dtype))

    return propose


def propose_renewal(key, x):
    which, value = jax.random.split(key)
    return jnp.where(jax.random.bernoulli(which, 0.5, x.shape), jax.random.uniform(value, x.shape, x.dtype), x)


def propose_mirror(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), 1 - x, x)


def metropolis(propose):
    def kernel(key, x, energy):
        move_key, accept_key = jax.random.split(key)
        y = propose(move_key, x)
        log_ratio = energy(x) - energy(y)
        return jnp.where(jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < log_ratio, y, x)

    return kernel


def box_mixture(scale=0.25, degrees=5.0, renewal=0.2, mirror=0.1):
    """A sampler on [0, 1]^d; `renewal` and `mirror` are probabilities, and what is left is the walk."""
    if not (renewal >= 0 and mirror >= 0 and renewal + mirror < 1):
        raise ValueError("the probabilities of renewal and mirror have to leave something for the walk")
    if scale <= 0 or degrees <= 0:
        raise ValueError("scale and degrees have to be positive")
    kernels = [metropolis(p) for p in (propose_walk(scale, degrees), propose_renewal, propose_mirror)]

    def step(key, x, step_size, estimator):
        which_key, kernel_key, energy_key = jax.random.split(key, 3)

        def energy(q):
            return estimator.estimate(energy_key, (), q)[0].potential

        logits = jnp.log(jnp.asarray([1 - renewal - mirror, renewal, mirror], x.dtype))
        which = jax.random.categorical(which_key, logits)
        branches = [lambda k, q, kernel=kernel: kernel(k, q, energy) for kernel in kernels]
        return jax.lax.switch(which, branches, kernel_key, x)

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("box",)))

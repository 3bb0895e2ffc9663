from functools import partial

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def start(key, position, estimator):
    return {"position": position, "velocity": jnp.zeros_like(position)}


def momentum_langevin(key, state, lr, estimator, decay):
    gkey, nkey = jax.random.split(key)
    g = estimator.estimate(gkey, (), state["position"])[0].gradient
    v = state["velocity"]
    unit = 3**0.5 * jax.random.uniform(nkey, v.shape, v.dtype, minval=-1.0, maxval=1.0)
    v = decay * v - lr * g + jnp.sqrt(2 * lr * (1 - decay)) * unit
    return {"position": state["position"] + v, "velocity": v}


heavy_ball = simple_sampler(partial(momentum_langevin, decay=0.5), init=start)

"""Parallel tempering with two replicas in one state: at temperature 1 (shown as the position) and at temperature T.

    replica k: a MALA step for exp(-U / T_k):  y = x - (h / 1) g(x) + sqrt(2 h T_k) z   (time step h, noise T_k)
    exchange:  with probability min(1, exp((1/T_1 - 1/T_2) (U(x_1) - U(x_2))))

Right: both steps keep exp(-U(x_1)) exp(-U(x_2)/T), each being a Metropolis kernel for it; the marginal of the first is exp(-U).
Exact at every step size.       Object: tempering (function of the option `hot`)
"""
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def tempering(hot=2.5):
    if hot <= 0:
        raise ValueError("a temperature is positive")

    def init(key, position, estimator):
        del key, estimator
        return {"replicas": jax.tree.map(lambda a: jnp.stack([a, a]), position)}

    def shown(state):
        return jax.tree.map(lambda a: a[0], state["replicas"])

    def step(key, state, h, estimator):
        k_est, k_move, k_swap = jax.random.split(key, 3)
        _, unravel = ravel_pytree(shown(state))
        x = jax.vmap(lambda tree: ravel_pytree(tree)[0])(state["replicas"])
        temperatures = jnp.array([1.0, hot], x.dtype)

        def evaluate(flat):
            e = estimator.estimate(k_est, (), unravel(flat))[0]
            return e.potential, ravel_pytree(e.gradient)[0]

        def mala(k, x, temperature):
            k_prop, k_acc = jax.random.split(k)
            scale = jnp.sqrt(2 * h * temperature)
            u_x, g_x = evaluate(x)
            y = (x - h * g_x + scale * jax.random.normal(k_prop, x.shape, x.dtype)).astype(x.dtype)
            u_y, g_y = evaluate(y)
            forth = jnp.sum((y - x + h * g_x) ** 2)
            back = jnp.sum((x - y + h * g_y) ** 2)
            log_ratio = (u_x - u_y) / temperature + (forth - back) / (4 * h * temperature)
            ok = jnp.log(jax.random.uniform(k_acc, (), x.dtype)) < log_ratio
            return jnp.where(ok, y, x), jnp.where(ok, u_y, u_x)

        x, u = jax.vmap(mala)(jax.random.split(k_move, 2), x, temperatures)
        log_swap = (1 / temperatures[0] - 1 / temperatures[1]) * (u[0] - u[1])
        swap = jnp.log(jax.random.uniform(k_swap, (), x.dtype)) < log_swap
        x = jnp.where(swap, x[::-1], x)
        return {"replicas": jax.vmap(unravel)(x)}

    return simple_sampler(step, init=init, position=shown, claims=Claims(Source("", "own"), ExactLaw()))

"""Heavy-ball Langevin (SGLD with momentum) as a chain of optax transforms.

    g <- grad + weight_decay w + N(0, 2 (1 - momentum) T / (num_data learning_rate))
    v <- momentum v + g
    w <- w - learning_rate v

The loss is the mean over ``num_data`` rows. A momentum multiplies what a gradient and a draw move in all by
1 / (1 - momentum): the drift once, the variance twice, which is why the variance has the factor (1 - momentum). The same holds
with Nesterov's momentum. ``add_noise`` comes before the learning rate multiplies, hence 1 / learning_rate, and must not anneal,
hence gamma = 0. Weight decay is a prior N(0, 1 / (num_data weight_decay)) at temperature 1.

    optimiser = langevin_heavy_ball(1e-4, num_data=50_000, weight_decay=1e-4, key=jax.random.key(1))
"""

import optax


def injected_variance(learning_rate, num_data, momentum, temperature):
    """Variance of the noise that is added to a gradient of the mean loss."""
    return 2.0 * (1.0 - momentum) * temperature / (num_data * learning_rate)


def langevin_heavy_ball(
    learning_rate,
    num_data=1000,
    momentum=0.8,
    nesterov=False,
    weight_decay=0.0,
    temperature=1.0,
    key=0,
):
    if not 0 <= momentum < 1:
        raise ValueError("momentum must be in [0, 1)")
    if num_data < 1 or weight_decay < 0 or temperature < 0:
        raise ValueError("num_data, weight_decay and temperature must not be negative")
    variance = injected_variance(learning_rate, num_data, momentum, temperature)
    return optax.chain(
        optax.add_decayed_weights(weight_decay),
        optax.add_noise(eta=variance, gamma=0.0, key=key),
        optax.trace(decay=momentum, nesterov=nesterov),
        optax.scale_by_learning_rate(learning_rate),
    )

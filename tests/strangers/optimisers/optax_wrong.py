"""Chains of optax that are called samplers."""

import jax
import optax


def fixed_noise(learning_rate, key=0):
    """Noise of variance one on the gradient, at every rate."""
    return optax.noisy_sgd(learning_rate, eta=1.0, gamma=0.0, key=key)


def no_two(learning_rate, key=0):
    """Drift lr, noise lr."""
    return optax.chain(optax.scale(-learning_rate), optax.add_noise(learning_rate, 0.0, key))


def annealed(learning_rate, key=0):
    """The default exponent of the library: it cools down."""
    return optax.noisy_sgd(learning_rate, eta=2 / learning_rate, key=key)


def one_key(learning_rate):
    """A key that is made in every step."""

    def update(gradients, state, params=None):
        key = jax.random.key(42)
        noise = optax.tree.random_like(key, gradients, jax.random.normal)
        return jax.tree.map(lambda g, n: -learning_rate * g + (2 * learning_rate) ** 0.5 * n, gradients, noise), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def kept_key(learning_rate, weight_decay=0.0, num_data=100):
    """The key of the state is used and put back."""

    def update(gradients, key, params=None):
        noise = optax.tree.random_like(key, gradients, jax.random.normal)
        step = lambda g, n: -learning_rate / 2 * g + (learning_rate / num_data) ** 0.5 * n
        return jax.tree.map(step, gradients, noise), key

    return optax.GradientTransformation(lambda params: jax.random.key(7), update)

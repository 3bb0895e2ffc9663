"""A conjugate normal model with a right Gibbs sampler and wrong ones, for the tests of posterior samplers.

theta = (a, b): a ~ N(0, 1), b | a ~ N(a, 1), y_1, .., y_3 | b ~ N(b, 1). All conditionals are normal.
"""

import numpy as np

COUNT = 3


def prior(rng, n):
    a = rng.normal(size=n)
    return np.stack([a, a + rng.normal(size=n)], axis=1)


def data(rng, theta):
    return theta[:, 1:] + rng.normal(size=(len(theta), COUNT))


def update_a(rng, theta, y):
    return np.stack([theta[:, 1] / 2 + rng.normal(size=len(theta)) / np.sqrt(2), theta[:, 1]], axis=1)


def update_b(rng, theta, y, inflation=1.0):
    precision = 1 + COUNT
    mean = (theta[:, 0] + np.sum(y, axis=1)) / precision
    return np.stack([theta[:, 0], mean + inflation * rng.normal(size=len(theta)) / np.sqrt(precision)], axis=1)


def gibbs(rng, theta, y):
    return update_b(rng, update_a(rng, theta, y), y)


def gibbs_reversed(rng, theta, y):
    return update_a(rng, update_b(rng, theta, y), y)


def from_the_prior(rng, theta, y):
    """Wrong: the data are ignored, the prior is sampled exactly."""
    return prior(rng, len(theta))


def too_wide(rng, theta, y):
    """Wrong: the standard deviation of b is 10% too large."""
    return update_b(rng, update_a(rng, theta, y), y, 1.1)


def one_datum_dropped(rng, theta, y):
    """Wrong: the sum runs over all data but the last."""
    a = update_a(rng, theta, y)
    mean = (a[:, 0] + np.sum(y[:, :-1], axis=1)) / (1 + COUNT)
    return np.stack([a[:, 0], mean + rng.normal(size=len(a)) / np.sqrt(1 + COUNT)], axis=1)


def functions(theta, y):
    """a, b, b^2, log-likelihood."""
    log_likelihood = -0.5 * np.sum((y - theta[:, 1:]) ** 2, axis=1)
    return np.stack([theta[:, 0], theta[:, 1], theta[:, 1] ** 2, log_likelihood], axis=1)


NAMES = ("a", "b", "b^2", "log likelihood")
WRONG = (from_the_prior, too_wide, one_datum_dropped)

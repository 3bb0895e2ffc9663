"""Samplers in NumPy: the key is a numpy.random.Generator, and positions are taken apart into one flat vector."""

from dataclasses import dataclass

import jax
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key


def flatten(position):
    """The numbers of a position in one new vector, and the way back."""
    leaves, treedef = jax.tree.flatten(position)
    arrays = [np.asarray(leaf) for leaf in leaves]
    cuts = np.cumsum([a.size for a in arrays])[:-1]

    def restore(flat):
        parts = np.split(flat, cuts)
        return treedef.unflatten([p.reshape(a.shape).astype(a.dtype) for p, a in zip(parts, arrays, strict=True)])

    return np.concatenate([a.ravel() for a in arrays]), restore


def potential(rng, estimator, position):
    return float(estimator.estimate(estimator_key(rng, estimator), (), position)[0].potential)


def exact(space="euclidean"):
    return Claims(Source("", "textbook"), ExactLaw(), spaces=(space,))


# 1. Multiple-try Metropolis (Liu, Liang and Wong 2000), symmetric trials, weights = the target density -------------


@dataclass(frozen=True)
class MultipleTry:
    tries: int = 3

    backend = "host"
    claims = exact()

    def step(self, rng, position, step_size, estimator):
        x, restore = flatten(position)
        width = np.sqrt(2 * step_size)
        log_density = lambda points: np.array([-potential(rng, estimator, restore(p)) for p in points])

        trials = x + width * rng.standard_normal((self.tries, x.size))
        forth = log_density(trials)
        chosen = trials[np.argmax(forth + rng.gumbel(size=self.tries))]  # with a chance ~ exp(forth)
        # the same game from the chosen point, in which x itself is the last of the trials
        mirror = chosen + width * rng.standard_normal((self.tries - 1, x.size))
        back = log_density([*mirror, x])
        accepted = -rng.standard_exponential() < np.logaddexp.reduce(forth) - np.logaddexp.reduce(back)
        return restore(chosen if accepted else x)


# 2. Probabilities: two of them share what they have in another way -------------------------------------------------


def share_step(rng, position, step_size, estimator):
    x = np.array(position)
    one = rng.integers(x.size)
    two = (one + 1 + rng.integers(x.size - 1)) % x.size
    both = x[one] + x[two]
    share = x[one] / both + np.sqrt(2 * step_size) * rng.standard_normal()
    share = abs((share + 1) % 2 - 1)  # folded into [0, 1]: as likely forth as back
    y = x.copy()
    y[one], y[two] = both * share, both * (1 - share)
    gain = potential(rng, estimator, x) - potential(rng, estimator, y)
    return y if rng.random() < np.exp(min(gain, 0.0)) else x


simplex_shares = simple_sampler(share_step, backend="host", claims=exact("simplex"))


# 3. A guided walk: straight on as long as it is accepted, about face where it is not; changed in place -------------


@dataclass(eq=False)
class Walker:
    position: object
    heading: np.ndarray
    energy: float
    accepted: int = 0  # how many so far, for the curious


class GuidedWalk:
    backend = "host"
    claims = exact()

    def __init__(self, renewal: float = 0.2):
        self.renewal = renewal

    def init(self, rng, position, estimator):
        flat, restore = flatten(position)
        return Walker(restore(flat), rng.standard_normal(flat.size), potential(rng, estimator, position))

    def step(self, rng, walker, step_size, estimator):
        flat, restore = flatten(walker.position)
        if rng.random() < self.renewal / (1 + self.renewal):
            walker.heading = rng.standard_normal(flat.size)
        ahead = restore(flat + np.sqrt(2 * step_size) * walker.heading)
        energy = potential(rng, estimator, ahead)
        moved = -rng.exponential() < walker.energy - energy
        if moved:
            walker.position, walker.energy = ahead, energy
        else:
            walker.heading = -walker.heading
        walker.accepted += bool(moved)
        return walker


# 4. Hit and run by slices: a line in a uniform direction, a bracket of fixed length thrown over us, and shrunk -----


def hit_and_run(rng, position, step_size, estimator):
    x, restore = flatten(position)
    direction = rng.standard_normal(x.size)
    direction /= np.linalg.norm(direction)
    level = potential(rng, estimator, position) + rng.exponential()
    length = np.sqrt(32 * step_size)
    low = -length * rng.random()
    high = low + length
    while True:
        t = rng.uniform(low, high)
        y = restore(x + t * direction)
        if potential(rng, estimator, y) <= level:
            return y
        if t < 0:
            low = t
        else:
            high = t


slice_on_lines = simple_sampler(hit_and_run, backend="host", claims=exact())


# 5. Positive numbers: MALA for z = log x, whose density has the Jacobian x -----------------------------------------


def log_chart(rng, estimator, z, restore):
    """Energy and slope in the chart: V(z) = U(e^z) - sum z."""
    x = np.exp(z)
    found = estimator.estimate(estimator_key(rng, estimator), (), restore(x))[0]
    return float(found.potential) - z.sum(), x * flatten(found.gradient)[0] - 1


def log_mala(rng, position, step_size, estimator):
    x, restore = flatten(position)
    z = np.log(x)
    v, slope = log_chart(rng, estimator, z, restore)
    new = z - step_size * slope + np.sqrt(2 * step_size) * rng.standard_normal(z.size)
    v_new, slope_new = log_chart(rng, estimator, new, restore)
    forth = np.sum((new - z + step_size * slope) ** 2) / (4 * step_size)
    back = np.sum((z - new + step_size * slope_new) ** 2) / (4 * step_size)
    return restore(np.exp(new)) if np.log1p(-rng.random()) < v - v_new + forth - back else restore(x)


positive_mala = simple_sampler(log_mala, backend="host", claims=exact("positive"))

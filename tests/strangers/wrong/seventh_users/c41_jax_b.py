"""Metropolis kernels: exact at every step size. The scale of a move is sqrt(2 step_size)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def gaussian_move(key, tree, scale):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    moved = [a + jnp.asarray(scale).astype(a.dtype) * jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)]
    return structure.unflatten(moved)


def choose(flag, yes, no):
    return jax.tree.map(lambda a, b: jnp.where(flag, a, b), yes, no)


def dtype_of(tree):
    return jax.tree.leaves(tree)[0].dtype


def log_uniform(key, dtype):
    return jnp.log(jax.random.uniform(key, (), dtype))


# ---------------------------------------------------------------------------------------------------------------------
# 1. Multiple-try Metropolis [liu2000multiple] with a symmetric proposal T and lambda = 1 / T, so that the weight of a try is pi. Of k tries
#    y_j ~ N(x, s^2) one, y, is taken with probability ~ pi(y_j); the reference set should have k - 1 draws from N(y, s^2) and x itself:
#        a = min(1, sum pi(y_j) / sum pi(x*_j)).
#    Wrong: it has k fresh draws. As s -> 0, with log a = s U' (mean of the reference set - mean of the tries) and e the taken one: the choice drifts by
#    -s^2 U' (1 - 1/k), the test takes back 1/2 s^2 U' (1 - 1/k), where it should 1/2 s^2 U' (1 - 2/k). In all -s^2 U' (1 - 1/k) / 2 beside a
#    variance of s^2: the law is exp(-(1 - 1/k) U), variances 4/3 for k = 4 (simulated: 1.14 at s = 1, 1.21 at s = 0.4).


@dataclass(frozen=True)
class MultipleTry:
    tries: int = 4

    claims = Claims(Source("", "own"), ExactLaw())

    def _cloud(self, key, centre, scale):
        return jax.vmap(lambda k: gaussian_move(k, centre, scale))(jax.random.split(key, self.tries))

    def step(self, key, x, step_size, estimator):
        batch_key, try_key, pick_key, reference_key, accept_key = jax.random.split(key, 5)
        log_density = jax.vmap(lambda q: -estimator.estimate(batch_key, (), q)[0].potential)
        scale = jnp.sqrt(2 * jnp.asarray(step_size).astype(dtype_of(x)))

        tries = self._cloud(try_key, x, scale)
        weights = log_density(tries)
        picked = jax.random.categorical(pick_key, weights)
        y = jax.tree.map(lambda a: a[picked], tries)

        references = self._cloud(reference_key, y, scale)
        log_ratio = jax.nn.logsumexp(weights) - jax.nn.logsumexp(log_density(references))
        return choose(log_uniform(accept_key, log_ratio.dtype) < log_ratio, y, x)


# ---------------------------------------------------------------------------------------------------------------------
# 2. Delayed rejection [tierney1999some], a second, smaller move from x after a rejected one to y.
#        a_1(x, y) = min(1, pi(y) / pi(x)),
#        a_2 = min(1, pi(z) (1 - a_1(z, y)) / (pi(x) (1 - a_1(x, y)))),    z ~ N(x, (r s)^2).
#    Wrong: "q is symmetric and drops out", but q(z, y) / q(x, y) is no ratio of a way and its way back. As s -> 0, g the slope, the second stage is
#    entered with probability O(s) and drifts by s^2 r g E[e int phi(t) min(t+, (t - r e)+) dt] = -0.075 s^2 g at r = 0.7, beside -0.5 s^2 g: the law is
#    exp(-1.15 U), variances 0.87 (simulated: 0.875 at s = 0.5, 0.915 at s = 1.5; with q 0.994).


def delayed_rejection(shrink=0.7):
    def step(key, x, step_size, estimator):
        batch_key, first_key, accept_key, second_key, again_key = jax.random.split(key, 5)
        energy = lambda q: estimator.estimate(batch_key, (), q)[0].potential
        scale = jnp.sqrt(2 * jnp.asarray(step_size).astype(dtype_of(x)))

        def log_refusal(e_from, e_to):  # log(1 - a_1)
            return jnp.log(-jnp.expm1(jnp.minimum(e_from - e_to, 0)))

        y = gaussian_move(first_key, x, scale)
        z = gaussian_move(second_key, x, shrink * scale)
        e_x, e_y, e_z = energy(x), energy(y), energy(z)
        at_once = log_uniform(accept_key, e_x.dtype) < e_x - e_y
        log_ratio = e_x - e_z
        log_ratio = log_ratio + log_refusal(e_z, e_y) - log_refusal(e_x, e_y)
        later = log_uniform(again_key, e_x.dtype) < log_ratio
        return choose(at_once, y, choose(later, z, x))

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))


# ---------------------------------------------------------------------------------------------------------------------
# 3. Barker's proposal [livingstone2022barker] with its test, coordinate by coordinate: d = +-z, z ~ N(0, s^2), + with the chance
#    1 / (1 + exp(z U_i(x))), so that q(x, x + d) = prod_i 2 phi_s(d_i) / (1 + exp(d_i U_i(x))). Then
#        log a = U(x) - U(y) + sum_i [softplus(d_i U_i(x)) - softplus(-d_i U_i(y))],
#    the sum over all numbers of all leaves. Potential and gradient are kept for the point where the chain is.
#    Wrong: the sum is that of the last leaf. The proposal of the others drifts by -s^2/2 U_i already and the test, with log a = -d . grad U of them,
#    adds as much: as s -> 0 their drift is -s^2 U_i beside a variance of s^2, the law is exp(-2 U) in them given the last: half of the variance.


class Evaluated(NamedTuple):
    position: Any
    potential: jax.Array
    gradient: Any


class BarkerMH:
    claims = Claims(Source("", "own"), ExactLaw())

    def _evaluate(self, key, position, estimator):
        found = estimator.estimate(key, (), position)[0]
        return Evaluated(position, found.potential, found.gradient)

    def init(self, key, position, estimator):
        return self._evaluate(key, position, estimator)

    @staticmethod
    def _propose(key, state, scale):
        leaves, structure = jax.tree.flatten(state.position)
        slopes = jax.tree.leaves(state.gradient)
        moves = []
        for leaf_key, x, slope in zip(jax.random.split(key, len(leaves)), leaves, slopes):
            size_key, sign_key = jax.random.split(leaf_key)
            z = jnp.asarray(scale).astype(x.dtype) * jax.random.normal(size_key, x.shape, x.dtype)
            forward = jax.random.uniform(sign_key, x.shape, x.dtype) < jax.nn.sigmoid(-z * slope)
            moves.append(jnp.where(forward, z, -z))
        return structure.unflatten(moves)

    @staticmethod
    def _log_proposals(move, here, there):
        for d, a, b in zip(*map(jax.tree.leaves, (move, here.gradient, there.gradient))):
            terms = jax.nn.softplus(d * a) - jax.nn.softplus(-d * b)
            total = jnp.sum(terms)
        return total

    def step(self, key, state, step_size, estimator):
        move_key, batch_key, accept_key = jax.random.split(key, 3)
        move = self._propose(move_key, state, jnp.sqrt(2 * jnp.asarray(step_size)))
        there = self._evaluate(batch_key, jax.tree.map(jnp.add, state.position, move), estimator)
        log_ratio = state.potential - there.potential + self._log_proposals(move, state, there)
        return choose(log_uniform(accept_key, log_ratio.dtype) < log_ratio, there, state)


# ---------------------------------------------------------------------------------------------------------------------
# 4. Infinite swapping: two replicas (x, y) of the symmetrised law w_1 + w_2, w_1 = exp(-U(x) - b U(y)), w_2 = exp(-b U(x) - U(y)), b = 1 / hot,
#    by a random walk with a test; then one of the two is shown, which is right with the chance w_1 / (w_1 + w_2) = sigma((b - 1) (U(x) - U(y))) for x.
#    Wrong: it is chosen by its density at the cold temperature, sigma(-(U(x) - U(y))), as by importance resampling: too often the lower one.
#    On a standard normal in one dimension the variance of what is shown is 0.796 for hot = 2 (integrated on a grid), at every step size.


class Replicas(NamedTuple):
    position: Any
    pair: Any


@dataclass(frozen=True)
class InfiniteSwapping:
    hot: float = 2.0

    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        return Replicas(position, (position, gaussian_move(key, position, 1.0)))

    def _orders(self, energies):
        """Log weights of (cold, hot) and (hot, cold)."""
        first, second = energies
        return jnp.stack([-first - second / self.hot, -first / self.hot - second])

    def step(self, key, state, step_size, estimator):
        batch_key, move_key, accept_key, show_key = jax.random.split(key, 4)
        energies = lambda pair: tuple(estimator.estimate(batch_key, (), q)[0].potential for q in pair)
        scale = jnp.sqrt(2 * jnp.asarray(step_size).astype(dtype_of(state.pair)))
        proposal = gaussian_move(move_key, state.pair, scale)
        here, there = energies(state.pair), energies(proposal)
        log_ratio = jax.nn.logsumexp(self._orders(there)) - jax.nn.logsumexp(self._orders(here))
        taken = log_uniform(accept_key, log_ratio.dtype) < log_ratio
        pair = choose(taken, proposal, state.pair)
        now = choose(taken, there, here)
        chance = jax.nn.softmax(-jnp.stack(now))[0]
        first = jax.random.uniform(show_key, (), chance.dtype) < chance
        return Replicas(choose(first, pair[0], pair[1]), pair)

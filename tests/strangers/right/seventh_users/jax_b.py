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
#    y_j ~ N(x, s^2) one, y, is taken with probability ~ pi(y_j); the reference set has k - 1 draws from N(y, s^2) and x itself:
#        a = min(1, sum pi(y_j) / sum pi(x*_j)).
#    pi(x) k T(x, y) pi(y) E[1 / sum pi(y_j) min(1, ...)] = k T pi(x) pi(y) E[min(1 / sum pi(y_j), 1 / sum pi(x*_j))], symmetric in x and y. Exact.


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
        references = jax.tree.map(lambda a, b: a.at[0].set(b), references, x)
        log_ratio = jax.nn.logsumexp(weights) - jax.nn.logsumexp(log_density(references))
        return choose(log_uniform(accept_key, log_ratio.dtype) < log_ratio, y, x)


# ---------------------------------------------------------------------------------------------------------------------
# 2. Delayed rejection [tierney1999some], a second, smaller move from x after a rejected one to y.
#        a_1(x, y) = min(1, pi(y) / pi(x)),
#        a_2 = min(1, pi(z) q(z, y) (1 - a_1(z, y)) / (pi(x) q(x, y) (1 - a_1(x, y)))),    z ~ N(x, (r s)^2).
#    The second proposal is symmetric in x and z and drops out; q(x, y) = N(y; x, s^2) does not: y is nearer to one of x and z than to the other.
#    Balance holds for each rejected y. Exact.


def delayed_rejection(shrink=0.7):
    def step(key, x, step_size, estimator):
        batch_key, first_key, accept_key, second_key, again_key = jax.random.split(key, 5)
        energy = lambda q: estimator.estimate(batch_key, (), q)[0].potential
        scale = jnp.sqrt(2 * jnp.asarray(step_size).astype(dtype_of(x)))

        def log_first(a, b):  # log q(a, b), up to a constant
            squares = jax.tree.map(lambda u, v: jnp.sum((u - v) ** 2), a, b)
            return -sum(jax.tree.leaves(squares)) / (2 * scale**2)

        def log_refusal(e_from, e_to):  # log(1 - a_1)
            return jnp.log(-jnp.expm1(jnp.minimum(e_from - e_to, 0)))

        y = gaussian_move(first_key, x, scale)
        z = gaussian_move(second_key, x, shrink * scale)
        e_x, e_y, e_z = energy(x), energy(y), energy(z)
        at_once = log_uniform(accept_key, e_x.dtype) < e_x - e_y
        log_ratio = e_x - e_z
        log_ratio = log_ratio + log_first(z, y) - log_first(x, y)
        log_ratio = log_ratio + log_refusal(e_z, e_y) - log_refusal(e_x, e_y)
        later = log_uniform(again_key, e_x.dtype) < log_ratio
        return choose(at_once, y, choose(later, z, x))

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))


# ---------------------------------------------------------------------------------------------------------------------
# 3. Barker's proposal [livingstone2022barker] with its test, coordinate by coordinate: d = +-z, z ~ N(0, s^2), + with the chance
#    1 / (1 + exp(z U_i(x))), so that q(x, x + d) = prod_i 2 phi_s(d_i) / (1 + exp(d_i U_i(x))). Then
#        log a = U(x) - U(y) + sum_i [softplus(d_i U_i(x)) - softplus(-d_i U_i(y))],
#    the sum over all numbers of all leaves. Potential and gradient are kept for the point where the chain is. Exact.


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
        total = 0.0
        for d, a, b in zip(*map(jax.tree.leaves, (move, here.gradient, there.gradient))):
            terms = jax.nn.softplus(d * a) - jax.nn.softplus(-d * b)
            total = total + jnp.sum(terms)
        return total

    def step(self, key, state, step_size, estimator):
        move_key, batch_key, accept_key = jax.random.split(key, 3)
        move = self._propose(move_key, state, jnp.sqrt(2 * jnp.asarray(step_size)))
        there = self._evaluate(batch_key, jax.tree.map(jnp.add, state.position, move), estimator)
        log_ratio = state.potential - there.potential + self._log_proposals(move, state, there)
        return choose(log_uniform(accept_key, log_ratio.dtype) < log_ratio, there, state)


# ---------------------------------------------------------------------------------------------------------------------
# 4. Infinite swapping: two replicas (x, y) of the symmetrised law w_1 + w_2, w_1 = exp(-U(x) - b U(y)), w_2 = exp(-b U(x) - U(y)), b = 1 / hot,
#    by a random walk with a test; then one of the two is shown, x with the chance w_1 / (w_1 + w_2) = sigma((b - 1) (U(x) - U(y))).
#    The law of what is shown: int w_1 dy / Z at x, plus int w_2 dx / Z at y, each half of exp(-U). Exact; nothing of the choice feeds back.


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
        chance = jax.nn.softmax(self._orders(now))[0]
        first = jax.random.uniform(show_key, (), chance.dtype) < chance
        return Replicas(choose(first, pair[0], pair[1]), pair)

"""Times of loops over steps as multiples of those of a peer, which took turns with them in the same process.

A ratio outlives the machine, and shows a slow step or a copy that an absolute time hides among the noise.
"""

import functools
import statistics
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import jax
import jax.numpy as jnp

from benchmarks.loops import (
    Turn,
    blackjax_control_variates,
    blackjax_sgld,
    draw_rows,
    logistic_terms,
    runner,
    written_by_hand,
)
from benchmarks.peers import timed
from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.overdamped.control_variates import SGLDCV, ControlVariates
from sgmcmc_verification.samplers.overdamped.saga import SAGA, SAGALD
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.targets.target import DataTerms

ROWS, COLUMNS, BATCH, STEP_SIZE = 100_000, 50, 100, 1e-6
STEPS = {1: 3000, 100: 60}
"""Steps of a turn by number of chains: about 0.05 s."""
ROUNDS = 11
Pair = tuple[Turn, Turn]


class Case(NamedTuple):
    """A pair of loops on a logistic regression: what is timed, and its peer.

    Attributes:
        pair: (terms, chains, steps) -> ours and the peer's.
        chains: number of chains.
        library: of the peer; None for a loop of this suite.
    """

    pair: Callable[[DataTerms, int, int], Pair]
    chains: int
    library: str | None = None


def _start() -> jax.Array:
    return jnp.zeros(COLUMNS, jnp.float32)


def control_variates(terms: DataTerms, chains: int, steps: int) -> Pair:
    """SGLD-CV beside BlackJAX's, both in plain scans."""
    arguments = (_start(), chains, steps, STEP_SIZE)
    peer = blackjax_sgld(blackjax_control_variates(terms, _start()), draw_rows(terms, BATCH), *arguments)
    return written_by_hand(SGLDCV(), ControlVariates(terms, BATCH, _start()), *arguments), peer


def saga(terms: DataTerms, chains: int, steps: int) -> Pair:
    """SAGA beside SGLD: what its table of all gradients costs a step, in plain scans."""
    arguments = (_start(), chains, steps, STEP_SIZE)
    ours = written_by_hand(SAGALD(), SAGA(terms, BATCH), *arguments)
    return ours, written_by_hand(SGLD(), Minibatch(terms, BATCH), *arguments)


def _runner(sampler: Sampler, estimator: Estimator, chains: int, steps: int) -> Pair:
    arguments = (sampler, estimator, _start(), chains, steps, STEP_SIZE)
    return runner(*arguments), written_by_hand(*arguments)


def runner_of_sgld(terms: DataTerms, chains: int, steps: int) -> Pair:
    """The runner beside a plain scan."""
    return _runner(SGLD(), Minibatch(terms, BATCH), chains, steps)


def runner_of_control_variates(terms: DataTerms, chains: int, steps: int) -> Pair:
    """The same, where the rows of a batch meet a vector that all chains share."""
    return _runner(SGLDCV(), ControlVariates(terms, BATCH, _start()), chains, steps)


CASES = {
    "sgld-cv beside BlackJAX, 1 chain": Case(control_variates, 1, "blackjax"),
    "sgld-cv beside BlackJAX, 100 chains": Case(control_variates, 100, "blackjax"),
    "saga-ld beside sgld": Case(saga, 1),
    "runner beside a scan, sgld, 1 chain": Case(runner_of_sgld, 1),
    "runner beside a scan, sgld, 100 chains": Case(runner_of_sgld, 100),
    "runner beside a scan, sgld-cv, 100 chains": Case(runner_of_control_variates, 100),
}


def ratio(ours: Turn, peer: Turn, rounds: int = ROUNDS) -> float:
    """Median processor time of ours over that of the peer; they take turns, after one each that compiles."""
    spent: list[tuple[float, ...]] = []
    for _ in range(rounds + 1):
        spent.append(tuple(timed(turn)[1] for turn in (ours, peer)))
    mine, theirs = (statistics.median(column) for column in zip(*spent[1:], strict=True))
    return mine / theirs


@functools.cache
def data() -> DataTerms:
    """The logistic regression."""
    return logistic_terms(ROWS, COLUMNS)


class Ratios:
    """Times as multiples of a peer's; 1 is as fast."""

    params = tuple(CASES)
    param_names = ("case",)
    timeout = 300.0
    version = "1"
    unit = "times the peer's"

    def setup(self, case):
        library = CASES[case].library
        if library is not None and find_spec(library) is None:
            raise NotImplementedError(f"{library} is not installed")  # asv leaves the case out

    def track_time_ratio(self, case):
        pair, chains, _ = CASES[case]
        with jax.enable_x64(False):
            return ratio(*pair(data(), chains, STEPS[chains]))

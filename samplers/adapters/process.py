"""A sampler in any language: a process that answers lines of JSON over its standard input and output.

Each line of either side is one JSON object with at most one list, its last entry. The suite says

    {"op": "describe"}                              answered by {"protocol": 1, "draws": "given"}, or "own" for "given"
    {"op": "init", "x": [..]}                       start a chain at the position x, answered by {"z": [..]}
    {"op": "step", "d": 2, "h": 0.1, "z": [..]}     a step of size h, answered by {"z": [..]}
    {"op": "stop"}                                  end

z are all numbers that later steps read, first the d numbers of the position. Before it answers, the process may ask, as
often as it wants and for one thing at a time, and reads a line with a list `values`:

    {"ask": "gradient", "x": [..]}                  +grad U, summed over the data
    {"ask": "potential", "x": [..]}                 U, a list of one
    {"ask": "normal", "n": 2}                       standard normal draws
    {"ask": "uniform", "n": 1}                      on [0, 1)
    {"ask": "integer", "n": 1, "below": 5}          each in 0 .. 4

Draws that are asked for are those of the checks, which judge such a sampler without sampling. With "draws": "own" the
lines init and step have a "seed" instead, an integer below 2^31, and the law is judged by sampling alone.

A value that is not finite is written as 1e999, which every parser of numbers reads as infinity.
"""

import atexit
import contextlib
import json
import math
import os
import re
import shlex
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

import jax
import numpy as np

from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeError, BridgeTimeout
from sgmcmc_verification.samplers.adapters.isolated.lines import Lines
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Options, Position, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Law, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.interface.sampler import Estimate, Sampler
from sgmcmc_verification.targets.target import Target

Line = Options
"""A line of either side, as an object of JSON."""
PREFIX = "process:"
SECONDS = 60.0
"""For a line of the process: most take a fraction of a millisecond, the first what its language takes to start."""
PATIENCE = 0.5
"""Seconds in which a process that was told to stop may do so."""
MOST_ASKED = 10_000
"""Things that one step may ask for."""
FEW = 1_000
"""Things that a step may still ask for after one of them could not be had."""
NOT_FINITE = re.compile(r"(?i)(?<![\w\"])(-?)(nan|inf(?:inity)?)\b")
"""Numbers that are not finite, as languages write them."""


class ProcessState(NamedTuple):
    """Position, the other numbers of z, and the estimator's own state."""

    position: Position
    rest: np.ndarray
    estate: EstimatorState


class _Asked:
    """The things that one step asks for, and the answers.

    Args:
        generator: of the draws.
        estimator: of the gradient.
        estate: its state.
        unravel: flat position -> position.
    """

    def __init__(
        self,
        generator: np.random.Generator,
        estimator: Estimator,
        estate: EstimatorState,
        unravel: Callable[[np.ndarray], Position],
    ) -> None:
        self.generator, self.estimator, self.estate, self.unravel = generator, estimator, estate, unravel
        self._at: tuple[bytes, Estimate] | None = None

    def answer(self, line: Line) -> np.ndarray:
        """The values that a line asks for. Raises what the generator or the estimator raises."""
        kind = line["ask"]
        if kind in ("gradient", "potential"):
            estimate = self._estimate(_numbers(line.get("x")))
            if getattr(estimate, kind) is None:
                raise ValueError(f"the estimate has no {kind}")
            return _flat(getattr(estimate, kind))
        n = line.get("n", 1)
        if kind == "normal":
            return np.asarray(self.generator.standard_normal(n))
        if kind == "uniform":
            return np.asarray(self.generator.random(n))
        return np.asarray(self.generator.integers(line["below"], size=n))

    def _estimate(self, x: np.ndarray) -> Estimate:
        """One estimate at a position, whatever is asked of it and how often in a row."""
        if self._at is None or self._at[0] != x.tobytes():
            key = estimator_key(self.generator, self.estimator)
            estimate, self.estate = self.estimator.estimate(key, self.estate, self.unravel(x))
            self._at = x.tobytes(), estimate
        return self._at[1]


class Process:
    """A running sampler.

    Args:
        command: its program and arguments.

    Attributes:
        failure: why it is not asked again: it was late, or talked nonsense; None if it may be started again.

    Raises:
        BridgeError: if it does not start, or describes itself otherwise than it should.
    """

    def __init__(self, command: str) -> None:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise BridgeError(f"{command}: no command ({error})") from None
        if not words:
            raise BridgeError(f"empty; name a command, as in '{PREFIX}python my_sampler.py'")
        self.failure: BridgeError | None = None
        self.lines = Lines(words, command, os.environ, Path.cwd())
        atexit.register(self.close)
        self.description = self._read(self._say({"op": "describe"}, "describe"), "describe")
        if self.description.get("protocol") != 1 or self.description.get("draws") not in ("given", "own"):
            self._nonsense("describe", json.dumps(self.description), '{"protocol": 1, "draws": "given"} or "own"')

    def close(self) -> None:
        """Tell the process to stop, and end it if it does not."""
        atexit.unregister(self.close)
        if self.lines.alive:
            with contextlib.suppress(BridgeError):
                self.lines.send(to_line({"op": "stop"}), "stop")
                self.lines.wait(PATIENCE)
        self.lines.close()

    @property
    def owns_draws(self) -> bool:
        """True if the process draws from a generator of its own."""
        return self.description["draws"] == "own"

    def ask(self, op: Line, asked: _Asked) -> np.ndarray:
        """The numbers z that the process answers an operation with, what it asks for given.

        What cannot be given is answered by zeros to the end of the step, lest the process wait for it, and raised then.

        Raises:
            BridgeError: if the process ends, is late, or answers nonsense.
            Exception: what the generator or the estimator raises, and what is no number that can be written.
        """
        op = {name: _written(value) if isinstance(value, np.ndarray) else value for name, value in op.items()}
        what, failed, count = str(op["op"]), None, 0
        line = self._read(self._say(op, what), what)
        while "ask" in line:
            count += 1
            if count > (FEW if failed else MOST_ASKED):
                self._end(f"asked for more than {count - 1} things in one {what}")
            self._check(line, what)
            try:
                values = np.zeros(self._size(line)) if failed else _written(asked.answer(line))
            except Exception as error:
                failed, count, values = error, 0, np.zeros(self._size(line))
            line = self._read(self._say({"values": values}, what), what)
        if failed:
            raise failed
        try:
            return _numbers(line["z"])
        except (KeyError, TypeError, ValueError):
            self._nonsense(what, json.dumps(line), '{"z": [..]}')

    def _size(self, line: Line) -> int:
        return len(line["x"]) if line["ask"] == "gradient" else 1 if line["ask"] == "potential" else line["n"]

    def _check(self, line: Line, what: str) -> None:
        kinds = {"gradient": "x", "potential": "x", "normal": "n", "uniform": "n", "integer": "n"}
        need = kinds.get(line["ask"]) if isinstance(line["ask"], str) else None
        value = line.get(need or "")
        whole = lambda v: isinstance(v, int) and not isinstance(v, bool) and 1 <= v <= 1 << 20
        good = isinstance(value, list) if need == "x" else whole(value)
        if line["ask"] == "integer":
            good = good and whole(line.get("below"))
        if need is None or not good:
            self._nonsense(what, json.dumps(line), "gradient or potential with x; normal, uniform or integer with n")
        if need == "x":
            try:
                _numbers(value)
            except (TypeError, ValueError):
                self._nonsense(what, json.dumps(line), "numbers in x")

    def _say(self, line: Line, what: str) -> str:
        """Write a line; returns the one that comes back."""
        self.lines.send(to_line(line), what)
        try:
            return self.lines.line(SECONDS, what)
        except BridgeTimeout as late:
            self.failure = late
            raise

    def _read(self, text: str, what: str) -> Line:
        try:
            line = json.loads(NOT_FINITE.sub(lambda m: m[1] + ("NaN" if m[2][0] in "nN" else "Infinity"), text))
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            self._nonsense(what, text, "one JSON object a line, and nothing else on standard output")
        return line

    def _nonsense(self, what: str, text: str, due: str) -> NoReturn:
        self._end(f"{what} is answered by {text.strip()[:120]!r}; the protocol wants {due}")

    def _end(self, why: str) -> NoReturn:
        self.lines.close()
        self.failure = BridgeError(f"{self.lines.name}: {why}")
        raise self.failure


def to_line(line: Line) -> str:
    """A line of the suite; numbers to the last bit."""
    parts = []
    for name, value in line.items():
        if isinstance(value, np.ndarray):
            numbers = (repr(v) if math.isfinite(v) else "1e999" for v in value.tolist())
            parts.append(f'"{name}": [{", ".join(numbers)}]')
        else:
            parts.append(f'"{name}": {json.dumps(value)}')
    return "{" + ", ".join(parts) + "}"


def _numbers(values: Tree) -> np.ndarray:
    """A list of numbers as (n,); a number that is null is none. Raises TypeError and ValueError."""
    array = np.array(values)
    if array.ndim != 1 or array.dtype.kind not in "fiu" or not array.size:
        raise ValueError("not a list of numbers")
    return array.astype(np.float64)


def _written(values: np.ndarray) -> np.ndarray:
    """Values, all of them numbers. Raises what a symbol raises that is asked for one: nothing is known of a process."""
    array("d", values.tolist())  # in C: `float` may have a stand-in in a module whose step is read by symbols
    return values


def _flat(tree: Tree) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(leaf, np.float64)) for leaf in jax.tree.leaves(tree)])


_running: dict[tuple[str, int], Process] = {}
"""Command and process of the suite -> the process that runs there."""


def running(command: str) -> Process:
    """The process of a command, one for each process of the suite, started again if it crashed.

    Raises:
        BridgeError: if it does not start, or has failed otherwise before: it is not waited for twice.
    """
    place = command, os.getpid()
    found = _running.get(place)
    if found is not None and found.failure is not None:
        raise found.failure
    if found is None or not found.lines.alive:
        found = _running[place] = Process(command)
    return found


def builder(command: str) -> Callable[[Target], Sampler]:
    """`target -> sampler` for a process, with `backend == "host"`.

    It claims what it describes: `order` of its bias (1 by default), or `exact`, and `temperature` (1 by default).

    Args:
        command: program and arguments, as a shell reads them.

    Raises:
        BridgeError: if the process does not start, or does not describe itself.
    """
    before = _running.pop((command, os.getpid()), None)
    if before is not None:  # its files may have changed since
        before.close()
    _claims(command, running(command).description)

    def build(target: Target) -> Sampler:
        described = running(command).description  # it is one process for all targets
        shapes = [np.shape(leaf) for leaf in jax.tree.leaves(target.example)]
        dtypes = [np.asarray(leaf).dtype for leaf in jax.tree.leaves(target.example)]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        structure = jax.tree.structure(target.example)

        def unravel(flat: np.ndarray) -> Position:
            parts = zip(np.split(flat[: ends[-1]], ends[:-1]), shapes, dtypes, strict=True)
            return jax.tree.unflatten(structure, [p.reshape(shape).astype(dtype) for p, shape, dtype in parts])

        def run(
            op: Line, key: np.random.Generator, estimator: Estimator, estate: EstimatorState, z: np.ndarray
        ) -> ProcessState:
            if not np.all(np.isfinite(z)):  # a chain that has left the numbers stays where it is
                return ProcessState(unravel(z), z[ends[-1] :], estate)
            process = running(command)
            if process.owns_draws:
                op = {**op, "seed": int(key.integers(2**31))}
            name = "x" if op["op"] == "init" else "z"
            asked = _Asked(key, estimator, estate, unravel)
            new = process.ask({**op, name: z}, asked)
            if len(new) < ends[-1]:
                raise BridgeError(f"{command}: {op['op']} gave {len(new)} numbers for {ends[-1]} of the position")
            return ProcessState(unravel(new), new[ends[-1] :], asked.estate)

        def init(key: np.random.Generator, position: Position, estimator: Estimator) -> ProcessState:
            estate = estimator.init(estimator_key(key, estimator), position)
            return run({"op": "init"}, key, estimator, estate, _flat(position))

        def step(key: np.random.Generator, state: ProcessState, step_size: float, estimator: Estimator) -> ProcessState:
            z = np.concatenate([_flat(state.position), np.asarray(state.rest, np.float64)])
            op = {"op": "step", "d": int(ends[-1]), "h": float(step_size)}
            return run(op, key, estimator, state.estate, z)

        return simple_sampler(step, init=init, claims=_claims(command, described), backend="host")

    return build


def _claims(command: str, described: Line) -> Claims:
    temperature, order = described.get("temperature", 1.0), described.get("order", 1)
    if not isinstance(temperature, int | float) or not 0 < temperature < math.inf:
        raise BridgeError(f"{command}: describes a temperature of {temperature!r}; give a positive number")
    if not isinstance(order, int) or not 1 <= order <= 4:
        raise BridgeError(f"{command}: describes an order of {order!r}; give 1 to 4")
    law: Law = StationaryLaw(order=order, temperature=float(temperature))
    if described.get("exact"):
        law = ExactLaw(temperature=float(temperature))
    return Claims(Source("", "own"), law)

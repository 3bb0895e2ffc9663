"""Cost of the deterministic checks of a sampler: compiling and running apart."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import jax
import jax.monitoring

from sgmcmc_verification.checks.runner.plan import make_plan
from sgmcmc_verification.checks.runner.proved import decide

COMPILING = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)
"""Events of JAX: tracing, lowering and the backend's compiler."""


@dataclass
class Compilation:
    """Collects when JAX was compiling, as a listener of its monitoring."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    def __call__(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event in COMPILING:
            now = time.perf_counter()
            self.spans.append((now - duration_secs, now))

    @property
    def seconds(self) -> float:
        """Length of the union of the spans: a function that is traced inside another is not counted twice."""
        total, reached = 0.0, float("-inf")
        for begin, end in sorted(self.spans):
            total += max(0.0, end - max(begin, reached))
            reached = max(reached, end)
        return total


@contextmanager
def compiling() -> Iterator[Compilation]:
    """Times at which JAX compiles; nothing compiled before is used."""
    before = jax.config.values["jax_enable_compilation_cache"]
    jax.config.update("jax_enable_compilation_cache", False)
    jax.clear_caches()
    compilation = Compilation()
    jax.monitoring.register_event_duration_secs_listener(compilation)
    try:
        yield compilation
    finally:
        jax.monitoring.unregister_event_duration_listener(compilation)
        jax.config.update("jax_enable_compilation_cache", before)


def check_cost(sampler: str) -> tuple[float, float]:
    """Seconds of compiling and of everything else, for the deterministic checks of a sampler at its default options.

    Nothing compiled before is used. Run in a process of its own, as asv does, it includes what JAX compiles once a
    process.

    Raises:
        RuntimeError: if a check ends in an error.
    """
    jax.config.update("jax_enable_x64", True)
    cases = [case for case in make_plan([sampler]).cases if not case.subject.options]
    with compiling() as compilation:
        began = time.perf_counter()
        for case in cases:
            result = decide(case.statement, case.subject, case.target, case.seed)
            if result.verdict == "error":
                raise RuntimeError(f"{sampler}, {case.statement.name} on {case.target}: {result.reason}")
        wall = time.perf_counter() - began
    return compilation.seconds, wall - compilation.seconds


class CheckCost:
    """An overdamped and an underdamped sampler; the two numbers come from separate cold processes."""

    params = ("sgld", "baoab")
    param_names = ("sampler",)
    timeout = 600.0
    version = "1"
    unit = "seconds"

    def track_compile_seconds(self, sampler):
        return check_cost(sampler)[0]

    def track_run_seconds(self, sampler):
        return check_cost(sampler)[1]

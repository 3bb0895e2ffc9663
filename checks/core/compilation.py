"""Compilation, and where compiled programs are kept: said once for `pytest checks`, the tests and CI.

JAX keeps compiled programs in a folder under a key of its own, which covers the program, its flags and the version of
jaxlib. Anything that differs between two runs, even a space in XLA_FLAGS, is another key: so the flags are set here,
for all, and none in the environment. A folder serves one version of jaxlib on processors of one kind, since a program
that was compiled for another one may use instructions that this one lacks. JAX takes what it cannot decompress for
absent: a damaged entry costs a compilation and nothing else.

The folder, by what is said first:

    --compilation-cache FOLDER, or `off`
    SGMCMC_COMPILATION_CACHE, likewise
    JAX_COMPILATION_CACHE_DIR: JAX's own, used as it is
    compiled/, in SGMCMC_CACHE_DIR or the user's cache folder
"""

import contextlib
import hashlib
import os
import platform
import tempfile
import time
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sgmcmc_verification.targets.datasets.files import cache_directory

VARIABLE = "SGMCMC_COMPILATION_CACHE"
OFF = "off"
MOST_BYTES = 2**30
"""Size that a folder is brought back to at the start of a run; what was used last stays. All tests need a tenth."""
PRUNED, HOUR = "pruned", 3600.0
"""File whose age is the time since; within an hour it is not looked at again, for there are tens of thousands."""


HAS_FUSION_EMITTERS = tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)
"""Whether XLA knows the flag below; it ends the process at a flag that it does not know."""
FLAG = "--xla_cpu_use_fusion_emitters=false" if HAS_FUSION_EMITTERS else ""
"""Added to XLA_FLAGS: its peer compiles small programs in two thirds of the time."""
OPTIMISED: dict[str, str | bool | int | float] = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    **({"xla_cpu_use_fusion_emitters": True} if HAS_FUSION_EMITTERS else {}),
}
"""`compiler_options` for programs that run for seconds, such as many chains: compiled as JAX does by itself."""


def limit_threads() -> None:
    """Have matrix products run in one thread; read by NumPy when it is loaded, here and in the processes begun here.

    Matrices here are small: a product that two threads share waits longer for the second one than it takes, and
    parallel workers are in each other's way.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def machine() -> str:
    """Name of a folder for this version of jaxlib and this kind of processor."""
    features = [platform.machine(), platform.processor()]
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        features += sorted({line for line in text.splitlines() if line.startswith(("flags", "Features", "model name"))})
    except OSError:
        pass  # no Linux: the name of the processor has to do
    return f"jaxlib-{version('jaxlib')}-{hashlib.sha256('|'.join(features).encode()).hexdigest()[:12]}"


def cache_folder(option: str | None) -> Path | str | None:
    """The folder of compiled programs; OFF for none, None for the one that JAX has been given.

    Args:
        option: value of `--compilation-cache`, None if it was not given.
    """
    given = option or os.environ.get(VARIABLE)
    if given == OFF:
        return OFF
    if not given and os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return None
    return Path(given or cache_directory() / "compiled") / machine()


def prune(folder: Path, most: int = MOST_BYTES) -> None:
    """Remove the entries of a folder that were used longest ago until it has no more than `most` bytes.

    Other processes may read and write there: what is gone already is left alone.
    """
    entries = []
    for entry in os.scandir(folder):
        try:
            facts = entry.stat()
        except FileNotFoundError:
            continue
        if entry.is_file():
            entries.append((max(facts.st_atime, facts.st_mtime), facts.st_size, entry.path))
    size = sum(bytes_ for _, bytes_, _ in entries)
    for _, bytes_, path in sorted(entries):
        if size <= most:
            return
        Path(path).unlink(missing_ok=True)
        size -= bytes_


def is_due(stamp: Path) -> bool:
    """True once an hour, whatever becomes of the file that says so."""
    try:
        if stamp.exists() and abs(time.time() - stamp.stat().st_mtime) < HOUR:
            return False
        stamp.touch()
    except OSError:
        pass
    return True


CHEAP: dict[str, Any] = {
    "jax_disable_most_optimizations": True,
    # a program that another thread runs is waited for longer than it takes: 50 us instead of 10, at each gradient of a
    # sampler in Python
    "jax_cpu_enable_async_dispatch": False,
    "jax_traceback_in_locations_limit": 0,  # places of the source in lowered programs take time
}
"""Settings of JAX under which programs that run for milliseconds once are compiled without costly passes."""


def configure(option: str | None = None, first: bool = True) -> Path | None:
    """Set how JAX compiles in this process, before it compiles anything; returns the folder of compiled programs.

    Programs are compiled without the costly passes of XLA and LLVM: nearly all of them run for milliseconds once. Those
    that do not take `OPTIMISED`. A folder that cannot be written to is not used.

    Args:
        option: value of `--compilation-cache`.
        first: bring the folder back to its size; one process of a run does so.
    """
    import jax

    if FLAG and FLAG.partition("=")[0] not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}".strip()
    for name, value in CHEAP.items():
        jax.config.update(name, value)
    folder = cache_folder(option)
    if folder == OFF:
        jax.config.update("jax_enable_compilation_cache", False)
    if not isinstance(folder, Path) or not _is_ready(folder, first):
        return None
    for name, value in _kept_in(folder).items():
        jax.config.update(name, value)
    return folder


def _is_ready(folder: Path, first: bool) -> bool:
    """True if a folder, made if there is none, can be written to; brought back to its size where that is due."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0")
    except OSError:
        return False
    if first and is_due(folder / PRUNED):
        prune(folder)
    return True


def _kept_in(folder: Path) -> dict[str, Any]:
    """Settings of JAX under which every compiled program is kept in a folder."""
    return {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }


@contextlib.contextmanager
def compiled_for_checks() -> Generator[None]:
    """Double precision, one thread, and compilation as `configure` sets it; afterwards all is as it was.

    For somebody else's process. Flags of XLA are left alone, since they count for a process as a whole; a folder of
    compiled programs that it has already, or has switched off, stays in use.
    """
    import jax
    from jax.experimental.compilation_cache.compilation_cache import reset_cache
    from threadpoolctl import threadpool_limits

    settings, before = dict(CHEAP), dict(jax.config.values)
    if before["jax_enable_compilation_cache"] and not before["jax_compilation_cache_dir"]:
        folder = cache_folder(None)
        if isinstance(folder, Path) and _is_ready(folder, first=True):
            settings |= _kept_in(folder)
    moved = "jax_compilation_cache_dir" in settings
    try:
        for name, value in settings.items():
            jax.config.update(name, value)
        if moved:
            reset_cache()  # JAX looks for a folder once
        # NumPy is loaded already, without `limit_threads`
        with jax.enable_x64(True), threadpool_limits(limits=1, user_api="blas"):
            yield
    finally:
        for name in settings:
            jax.config.update(name, before[name])
        if moved:
            reset_cache()

"""Checkpoint files: arrays and a fingerprint of the run they belong to, replaced atomically."""

import json
import os
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.interface.aliases import Tree

FORMAT = 2


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: truncated, not a checkpoint, or of another run."""


def save(path: str | os.PathLike, fingerprint: dict[str, object], step: int, arrays: Sequence[np.ndarray]) -> None:
    """Write a checkpoint; a crash at any moment leaves either the old file or the new one.

    Args:
        path: the file.
        fingerprint: JSON-serialisable description of the run, compared on `load`.
        step: the progress that the arrays belong to.
        arrays: the contents.
    """
    path = Path(path)
    header = json.dumps({"format": FORMAT, "fingerprint": fingerprint, "step": step, "count": len(arrays)})
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            contents: dict[str, Any] = {f"a{i}": array for i, array in enumerate(arrays)}
            np.savez(file, header=np.frombuffer(header.encode(), np.uint8), **contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike, fingerprint: dict[str, object]) -> tuple[int, list[np.ndarray]]:
    """Read a checkpoint of the run with this fingerprint.

    Returns:
        The step and the arrays given to `save`.

    Raises:
        CheckpointError: if the file is truncated or damaged, or belongs to another run.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            arrays = [file[f"a{i}"] for i in range(header["count"])]
            stored, step, version = header["fingerprint"], int(header["step"]), header["format"]
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"checkpoint: {os.fspath(path)!r} is truncated or not a checkpoint ({type(error).__name__}); "
            "delete it to start the run again"
        ) from error
    if version != FORMAT:
        raise CheckpointError(f"checkpoint: {os.fspath(path)!r} has format {version}, this version reads {FORMAT}")
    different = sorted(k for k in {*stored, *fingerprint} if stored.get(k) != fingerprint.get(k))
    if different:
        raise CheckpointError(
            f"checkpoint: {os.fspath(path)!r} belongs to another run (different: {', '.join(different)}); "
            "give the arguments it was written with, or another path"
        )
    return step, arrays


def refilled(tree: Tree, arrays: Sequence[np.ndarray]) -> Tree:
    """The pytree with these arrays for its leaves, in JAX where the old leaves are."""
    leaves, structure = jax.tree.flatten(tree)
    like = lambda old, new: jnp.asarray(new) if isinstance(old, jax.Array) else new
    return jax.tree.unflatten(structure, [like(a, b) for a, b in zip(leaves, arrays, strict=True)])

"""Threefry of jax.random by NumPy: the same bits, from keys held as one whole number of 64 bits each.

J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), with 20
rounds; counters of each draw by its place in the array, as `jax_threefry_partitionable` has them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sgmcmc_verification.checks.programs.elementwise import Rule, Values, of_inputs

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
HALF = np.uint64(32)
WORD = 0xFFFFFFFF
FEW = 8
"""Blocks up to which whole numbers of Python, 6 us a block, take less time than operations of NumPy, 60 us in all."""


def threefry(keys: np.ndarray, high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two words of 32 bits that keys make of two words of a counter, all of shapes that broadcast."""
    blocks = np.broadcast(keys, high, low)
    if blocks.size <= FEW:
        words = [_block(int(key), int(a), int(b)) for key, a, b in blocks]
        made = np.array(words, np.uint32).reshape(*blocks.shape, 2)
        return made[..., 0], made[..., 1]
    first, second = _words(keys)
    schedule = (first, second, first ^ second ^ PARITY)
    a, b = high + first, low + second
    for turn in range(5):
        for rotation in ROTATIONS[turn % 2]:
            a = a + b
            b = a ^ ((b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation)))
        a = a + schedule[(turn + 1) % 3]
        b = b + schedule[(turn + 2) % 3] + np.uint32(turn + 1)
    return a, b


def _block(key: int, high: int, low: int) -> tuple[int, int]:
    """The same of one key and one counter."""
    first, second = key >> 32, key & WORD
    schedule = (first, second, first ^ second ^ int(PARITY))
    a, b = (high + first) & WORD, (low + second) & WORD
    for turn in range(5):
        for rotation in ROTATIONS[turn % 2]:
            a = (a + b) & WORD
            b = a ^ (((b << rotation) | (b >> (32 - rotation))) & WORD)
        a = (a + schedule[(turn + 1) % 3]) & WORD
        b = (b + schedule[(turn + 2) % 3] + turn + 1) & WORD
    return a, b


def _words(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (keys >> HALF).astype(np.uint32), keys.astype(np.uint32)


def of_words(words: np.ndarray) -> np.ndarray:
    """Keys of raw words (..., 2)."""
    return (words[..., 0].astype(np.uint64) << HALF) | words[..., 1].astype(np.uint64)


def words_of(keys: np.ndarray) -> np.ndarray:
    """Raw words (..., 2) of keys."""
    return np.stack(_words(keys), -1)


def _each(keys: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Words of each place of an array that a key makes, (*keys.shape, *shape)."""
    count = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.uint64).reshape(shape)
    return threefry(keys.reshape(keys.shape + (1,) * len(shape)), *_words(count))


def _seeded(seed: np.ndarray) -> Any:
    """The key of a seed: its bits; of a seed of fewer than 64 bits the higher word is 0."""
    return seed.astype(np.uint64) if seed.dtype.itemsize == 8 else seed.astype(np.uint32).astype(np.uint64)


def _split(inputs: Values, params: Mapping[str, Any]) -> Values:
    return [of_words(np.stack(_each(inputs[0], params["shape"]), -1))]


def _folded(keys: np.ndarray, data: np.ndarray) -> Any:
    return of_words(np.stack(threefry(keys, *_words(data.astype(np.uint32).astype(np.uint64))), -1))


def _bits(inputs: Values, params: Mapping[str, Any]) -> Values:
    high, low = _each(inputs[0], params["shape"])
    if params["bit_width"] == 64:
        return [(high.astype(np.uint64) << HALF) | low.astype(np.uint64)]
    return [(high ^ low).astype(f"u{params['bit_width'] // 8}")]


def _bitcast(inputs: Values, params: Mapping[str, Any]) -> Values:
    dtype = np.dtype(params["new_dtype"])
    if dtype.itemsize != inputs[0].dtype.itemsize:
        raise NotImplementedError("a change of the number of bits")
    # `ascontiguousarray` gives a number an axis
    return [np.ascontiguousarray(inputs[0]).view(dtype).reshape(inputs[0].shape)]


RULES: Mapping[str, Rule] = {
    "bitcast_convert_type": _bitcast,
    "random_bits": _bits,
    "random_clone": lambda inputs, params: inputs,
    "random_fold_in": of_inputs(_folded),
    "random_seed": of_inputs(_seeded),
    "random_split": _split,
    "random_unwrap": of_inputs(words_of),
    "random_wrap": of_inputs(of_words),
}
"""The rule of each operation on keys that NumPy evaluates."""

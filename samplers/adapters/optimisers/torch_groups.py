"""Parameters in two groups: the halves of each leaf of a position, so that any target shows what groups share."""

from collections.abc import Sequence

import torch

from sgmcmc_verification.samplers.adapters.optimisers.torch_optimiser import Leaves


def half(shape: Sequence[int]) -> int:
    """Number of entries along the last axis of a leaf that the first group has; 0 for a leaf that is not divided."""
    return (shape[-1] + 1) // 2 if shape and shape[-1] > 1 else 0


def divided(leaves: Leaves) -> list[Leaves]:
    """The leaves of the first group and those of the second, if any: leaves that have no halves go to each in turn."""
    groups: list[Leaves] = [[], []]
    for i, leaf in enumerate(leaves):
        middle = half(leaf.shape)
        if middle:
            groups[0].append(leaf[..., :middle].clone())
            groups[1].append(leaf[..., middle:].clone())
        else:
            groups[i % 2].append(leaf)
    return groups if groups[1] else groups[:1]


def joined(groups: Sequence[Leaves], shapes: Sequence[Sequence[int]]) -> Leaves:
    """The leaves of some shapes that were divided."""
    rest = [iter(group) for group in (*groups, ())[:2]]
    return [
        torch.cat([next(rest[0]), next(rest[1])], -1) if half(shape) else next(rest[i % 2])
        for i, shape in enumerate(shapes)
    ]

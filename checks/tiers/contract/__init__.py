"""Interface: types, shapes, keys."""

from checks.core.check import Check
from checks.tiers.contract.interface import (
    chains_and_leaves_independent,
    every_input_matters,
    every_option_matters,
    jit_vmap_loop_agree,
    key_discipline,
    movement,
    pack_unpack_inverse,
    shapes_and_dtypes,
)

CHECKS: tuple[Check, ...] = (
    shapes_and_dtypes,
    jit_vmap_loop_agree,
    key_discipline,
    chains_and_leaves_independent,
    every_input_matters,
    every_option_matters,
    pack_unpack_inverse,
    movement,
)

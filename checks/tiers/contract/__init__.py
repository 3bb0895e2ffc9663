"""Interface: types, shapes, keys."""

from sgmcmc_verification.checks.tiers.contract.interface import (
    chains_and_leaves_independent,
    every_input_matters,
    every_option_matters,
    jit_vmap_loop_agree,
    key_discipline,
    movement,
    pack_unpack_inverse,
    shapes_and_dtypes,
)

__all__ = [
    "chains_and_leaves_independent",
    "every_input_matters",
    "every_option_matters",
    "jit_vmap_loop_agree",
    "key_discipline",
    "movement",
    "pack_unpack_inverse",
    "shapes_and_dtypes",
]

"""Mutation operators: the small changes of a function that are tried, generated from its syntax tree.

Every operator is a class of mistakes that samplers are known for. It looks at one function (a method with everything
nested in it) and yields edits; it knows nothing of any sampler.
"""

from collections.abc import Callable, Iterator

from sgmcmc_verification.checks.mutation.operators.arithmetic import (
    drop_factor,
    drop_term,
    flip_term,
    missing_root,
    scale_term,
)
from sgmcmc_verification.checks.mutation.operators.data import data_scale
from sgmcmc_verification.checks.mutation.operators.draws import (
    clipped_draw,
    first_coordinates,
    half_in_single,
    later_leaves,
    one_for_all,
    one_for_rows,
)
from sgmcmc_verification.checks.mutation.operators.guards import guarded_gradient, lost_digits
from sgmcmc_verification.checks.mutation.operators.memory import hidden_clock, kept_cache
from sgmcmc_verification.checks.mutation.operators.options import distorted_option, ignored_option, wrong_size
from sgmcmc_verification.checks.mutation.operators.randomness import constant_key, moved_noise, reused_key
from sgmcmc_verification.checks.mutation.operators.stages import dropped_stage, stale_value, swapped_stages
from sgmcmc_verification.checks.mutation.operators.tree import Edit, Scope

OPERATORS: dict[str, Callable[[Scope], Iterator[Edit]]] = {
    "drop-term": drop_term,
    "flip-term": flip_term,
    "scale-term": scale_term,
    "drop-factor": drop_factor,
    "missing-root": missing_root,
    "stale-value": stale_value,
    "swapped-stages": swapped_stages,
    "dropped-stage": dropped_stage,
    "moved-noise": moved_noise,
    "reused-key": reused_key,
    "wrong-size": wrong_size,
    "ignored-option": ignored_option,
    "distorted-option": distorted_option,
    "constant-key": constant_key,
    "one-for-all": one_for_all,
    "one-for-rows": one_for_rows,
    "later-leaves": later_leaves,
    "first-coordinates": first_coordinates,
    "clipped-draw": clipped_draw,
    "guarded-gradient": guarded_gradient,
    "lost-digits": lost_digits,
    "half-in-single": half_in_single,
    "hidden-clock": hidden_clock,
    "kept-cache": kept_cache,
    "data-scale": data_scale,
}
"""The classes of mistakes, each a generator of edits."""
HIDDEN = frozenset({"first-coordinates", "clipped-draw", "guarded-gradient", "hidden-clock"})
"""Those that show at rare draws, far states or late times, or in many dimensions only: that two steps are the same
function of a few draws near by proves nothing of them."""


def edits(scope: Scope) -> Iterator[Edit]:
    """All edits of a function, operator by operator, without repetitions."""
    seen = set()
    for operator in OPERATORS.values():
        for edit in operator(scope):
            found = (edit.operator, edit.after, *sorted(edit.swaps))
            if edit.before != edit.after and found not in seen:
                seen.add(found)
                yield edit

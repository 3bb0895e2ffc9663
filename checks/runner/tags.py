"""Tags: what a sampler says that it is not made for, and the statements that are left out for it.

    mine.verification_tags = ("shared-keys",)     # of a sampler, its class, the function that makes it, or its step

A tag leaves out statements about conduct and never one about the law. What it leaves out is in the plan of a run and in
its conclusion.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import closest


class Tag(NamedTuple):
    """One tag.

    Attributes:
        name: as a sampler has it.
        meaning: for which it is left out, in words.
        statements: names of those that are left out.
    """

    name: str
    meaning: str
    statements: tuple[str, ...]


TAGS: tuple[Tag, ...] = (
    Tag("shared-keys", "keys are used more than once on purpose", ("key_discipline",)),
    Tag("inert-options", "some options change no number, such as those for output", ("every_option_matters",)),
    Tag("one-precision", "the code is for one precision", ("shapes_and_dtypes", "float32_law")),
    Tag(
        "one-chain",
        "the code is for one chain at a time",
        ("jit_vmap_loop_agree", "chains_and_leaves_independent", "streams_independent"),
    ),
)


def left_out(sampler: str, tags: Iterable[str]) -> dict[str, str]:
    """Statement -> the tag that leaves it out, with its meaning.

    Args:
        sampler: name, for messages.
        tags: that it has.

    Raises:
        BadInput: for a tag that there is not.
    """
    known = {tag.name: tag for tag in TAGS}
    found = {}
    for name in tags:
        if name not in known:
            raise BadInput(f"--sampler {sampler}: verification_tags has {name!r}; {closest(str(name), list(known))}")
        found |= dict.fromkeys(known[name].statements, f"{name}: {known[name].meaning}")
    return found

"""The run-time check of annotations: beartype, for which an integer is a float, as it is for type checkers."""

import types

from beartype import BeartypeConf, beartype

CONF = BeartypeConf(is_pep484_tower=True)
KNOWN = {}


def checked(function):
    """What beartype makes of a function; the same for all that are alike.

    jaxtyping hands over a signature without a body, and a function inside another one is decorated anew at each call of
    the outer one: to write its check takes far longer than to carry it out.
    """
    if not isinstance(function, types.FunctionType):
        return beartype(function, conf=CONF)
    defaults = len(function.__defaults__ or ()), tuple(function.__kwdefaults__ or ())
    name = function.__module__, function.__qualname__
    key = (*name, function.__code__, defaults, tuple(function.__annotations__.items()))
    try:
        if key not in KNOWN:
            KNOWN[key] = beartype(function, conf=CONF)
    except TypeError:  # an annotation without a hash
        return beartype(function, conf=CONF)
    return KNOWN[key]

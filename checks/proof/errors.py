"""Errors of a reader: a step that it cannot read, terms that it has dropped, points that are not real."""


class Unreadable(Exception):
    """A step that leaves the class of programs that can be read.

    Attributes:
        reason: what was met, in words, with the name of the primitive where there is one.
        place: file and line of the program, empty if unknown.
    """

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(f"{reason} at {place}" if place else reason)
        self.reason, self.place = reason, place


class PrecisionLost(Exception):
    """A truncated series was asked for a term that it does not have: read again with more terms."""


class NotReal(Exception):
    """A function outside of its real domain: the point at which it was evaluated is none of the state space."""


class TooManyBranches(Unreadable):
    """More branches on one path than are read: what is left of the state space cannot be read either."""

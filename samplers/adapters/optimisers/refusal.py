"""The error for an object that no adapter of optimisers can run."""


class Refused(ValueError):
    """Error for a class, function or option that is none of an optimiser; one line that says what to change."""

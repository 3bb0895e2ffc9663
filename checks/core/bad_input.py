"""The error for a request that cannot be met."""


class BadInput(ValueError):
    """Error for a request that cannot be met; the message is one line that says what to change."""

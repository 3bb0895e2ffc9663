"""The error for a request that cannot be met."""


def in_one_line(text: str) -> str:
    """The text with a line break or a control character, which a caller's words may have, as its escape."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class BadInput(ValueError):
    """Error for a request that cannot be met; the message is one line that says what to change."""

    def __init__(self, message: str) -> None:
        super().__init__(in_one_line(message))

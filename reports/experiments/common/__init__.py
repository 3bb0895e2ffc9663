"""Parts that experiments share."""

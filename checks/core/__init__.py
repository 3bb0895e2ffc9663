"""What a check is, what it returns, and the objects that it is given."""

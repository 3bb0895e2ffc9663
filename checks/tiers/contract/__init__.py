"""Interface: types, shapes, keys."""

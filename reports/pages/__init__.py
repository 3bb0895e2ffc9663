"""Pages and tables of published results."""

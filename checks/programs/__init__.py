"""Programs of JAX: what they consist of, and their values by NumPy where a compilation would take longer."""

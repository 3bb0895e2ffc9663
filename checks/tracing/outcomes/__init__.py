"""Ways that a step takes, each with its probability: of JAX, and of the host."""

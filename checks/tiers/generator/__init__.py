"""The code has the drift and diffusion that it declares."""

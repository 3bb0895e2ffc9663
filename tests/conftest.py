"""Tests of the suite itself: double precision throughout."""

import jax

jax.config.update("jax_enable_x64", True)

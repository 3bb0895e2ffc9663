"""Laws on boxes."""

"""The run loop: schedules, thinning, averaging, checkpoints, devices."""

"""Linear algebra and random variates that the samplers share."""

"""The spherical admixture model: topics and documents on the unit sphere."""

"""Programs that run inside the environments of isolated libraries."""

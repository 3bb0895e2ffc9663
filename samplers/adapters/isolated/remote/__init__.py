"""What runs inside the environments of isolated libraries."""

"""Results to tables and pages: commands that produce what `reports/published/` keeps."""

"""Static site: stored results and pages -> HTML that needs no server and no network."""

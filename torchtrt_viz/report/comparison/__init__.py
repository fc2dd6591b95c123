"""What changed between two runs, as a page."""

"""Several runs, or iterations of one: comparison, trends, variability."""

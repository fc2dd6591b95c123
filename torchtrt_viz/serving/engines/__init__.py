"""Engines of other people: what connects their own profiling commands with this package's sessions."""

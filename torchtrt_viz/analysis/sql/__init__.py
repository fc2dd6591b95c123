"""Queries in SQL over a trace's frames, or over the tables of a saved session: DuckDB, held to reading."""

"""Delegates and engines: calls, phases, layers, gaps between calls, plans, rooflines, what looks wrong."""

"""Answers about a whole capture: its totals, the six questions, and what stands out."""

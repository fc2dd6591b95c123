"""Profiles of Triton's Proton that are trees of sums (Hatchet's literal form)."""

"""What the frames of the analyses hold: every column with its dtype, unit and meaning, as data.

A module here imports neither pandas nor numpy: command lines, docstrings and `torchtrt_viz.schema` read it.
"""

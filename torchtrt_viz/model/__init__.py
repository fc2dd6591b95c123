"""The data and nothing else: the frames of one trace, the ranks of a session, and what they are made of.

`schema` says what each column is; `trace_data` and `session_data` hold frames and ranks; `args` reads details
of events on demand; `merge` and `select` make traces out of traces; `nesting` works out depth, parent and
self time; `repair` is what a loader mended.
"""

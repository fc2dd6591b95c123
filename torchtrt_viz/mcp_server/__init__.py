"""Traces for agents: a Model Context Protocol server over stdio, read-only and confined to given folders.

`folders` says what may be read, `held` keeps what was loaded, `questions` answers, `descriptions` says what
can be asked, and `server` speaks the protocol. No model is inside, and nothing from a trace ever stands where
instructions do: names and texts are values of JSON documents (`torchtrt_viz.evidence`).
"""

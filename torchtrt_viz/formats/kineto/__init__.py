"""Trace-event JSON, as torch.profiler (Kineto), Chrome and their relatives write it: `reader` reads it."""

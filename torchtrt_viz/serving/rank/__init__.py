"""One rank's profiling, on the engine's own thread: annotations, recordings, sessions of one process."""

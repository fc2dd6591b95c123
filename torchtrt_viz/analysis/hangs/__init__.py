"""Where the ranks of a job hang, out of the dumps of their Flight Recorders."""

"""One session over many workers: the coordinator, its messages, and the ways they travel."""

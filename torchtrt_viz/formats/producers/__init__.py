"""What writers of traces call their processes, threads and ranks, for every format that has such names."""

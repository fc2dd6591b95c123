"""Two runs aligned by their trees of modules, operators and kernels: what moved, was fused, added or lost."""

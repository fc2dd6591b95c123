"""From what a caller names to its data: what each file is, which belong together, and reading them."""

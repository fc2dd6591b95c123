"""Small complete programs that use the package as an engine's author would."""

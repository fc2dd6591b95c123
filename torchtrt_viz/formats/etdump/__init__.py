"""ETDump and ETRecord of ExecuTorch, read without executorch: `reader` reads a dump, `etrecord` a record."""

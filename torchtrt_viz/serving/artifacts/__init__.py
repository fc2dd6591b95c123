"""From an export to a verified archive: staging, parsing, packing, publishing, and recovery after a crash."""

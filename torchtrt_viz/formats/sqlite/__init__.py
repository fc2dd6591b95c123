"""SQLite databases, read natively and never executed: for the formats that tools store in one."""

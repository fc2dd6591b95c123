"""Lines of logs, one sort of line a module; nothing here knows of files or engines."""

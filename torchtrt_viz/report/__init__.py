"""Output as files or text: tables, HTML pages, static pictures."""

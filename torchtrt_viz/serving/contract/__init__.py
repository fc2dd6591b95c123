"""What all parts of serving agree on: configuration, identity, settings, status, errors, the mailbox."""

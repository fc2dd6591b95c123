"""What pages and widgets tell of single events beyond what the scene holds."""

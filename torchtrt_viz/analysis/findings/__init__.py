"""What a capture shows, finding by finding: `explain` and `verdict` choose among them."""

"""What a timeline draws, independent of widgets and pages; both are made from it."""

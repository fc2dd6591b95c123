"""What a timeline draws, with no widget and no page in sight: reports and widgets are made from it."""

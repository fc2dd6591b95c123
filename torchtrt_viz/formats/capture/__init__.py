"""What a saved capture writes beside the formats of others: its document, and the columns of engines."""

"""A verdict in words, and these words as text and as markup."""

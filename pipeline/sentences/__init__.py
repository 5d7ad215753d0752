"""Text to sentences: where one ends, and what only looks like an end. Pure."""

"""Drafts of live runs: what is heard in the open group, above the final path and without influence on it."""

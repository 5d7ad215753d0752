"""The languages of a server: those it is configured for, those it can fetch, and those of a session."""

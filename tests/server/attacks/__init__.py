"""What strangers, readers and others can do to a server, and what it may cost; docs/security.md has the table of these tests."""

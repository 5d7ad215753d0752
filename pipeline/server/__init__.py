"""HTTP and WebSocket server: one speaker and many readers per session, models shared by all sessions."""

"""Speech recognition by faster-whisper."""

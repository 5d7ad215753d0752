"""Audio sources. All yield the same: mono int16 at 16 kHz, in short chunks."""

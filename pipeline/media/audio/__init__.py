"""Audio sources. All deliver mono int16 samples at 16 kHz in short chunks."""

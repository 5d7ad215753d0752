"""The engine: speech in, text as it grows out. It imports no model: recognisers, translators and detectors are handed in."""

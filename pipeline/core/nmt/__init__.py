"""The NMT stage: sentences in, translations as they grow out."""

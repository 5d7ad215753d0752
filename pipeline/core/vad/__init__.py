"""Voice activity detection: frame decisions and, separately, the pure rules that confirm them and find endpoints."""

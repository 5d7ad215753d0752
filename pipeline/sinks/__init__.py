"""Where events go: the terminal, subtitle files, JSON lines, latency logs. One file each."""

"""Sound in; subtitles, terminal and logs out."""

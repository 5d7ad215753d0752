"""Subtitle files that are translated."""

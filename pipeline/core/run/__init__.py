"""Shared by all stages: worker threads, overload control, statistics, progress bars."""

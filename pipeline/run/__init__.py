"""What every run needs: worker threads, overload control, statistics, progress bars."""

"""Services that captions are pushed to."""

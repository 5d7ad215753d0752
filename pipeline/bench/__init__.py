"""Benchmarks. No other package imports from here."""

"""Measurements on this machine: nothing in the product imports from here."""

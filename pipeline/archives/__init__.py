"""Recordings by the thousand: what is done already, and who does the rest."""

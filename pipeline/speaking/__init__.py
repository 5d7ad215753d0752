"""Translations spoken by a small voice. Nothing else imports this package unless a voice is asked for."""

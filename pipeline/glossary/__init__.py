"""Glossary: names and terms to recognise and translate as the user writes them."""

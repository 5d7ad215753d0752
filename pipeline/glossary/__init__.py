"""Glossary: names and terms to recognise and translate as the user writes them."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .candidates import Candidate, term_candidates
    from .current import CurrentGlossary, GlossaryFile
    from .document_text import text_of_document
    from .files import load_glossary, normalized_form, parse_glossary
    from .masked import load_masked
    from .near import NearMiss, NearMisses
    from .table import TableError
    from .terms import Glossary, Match, Term, in_word
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "candidates": "Candidate term_candidates",
            "current": "CurrentGlossary GlossaryFile",
            "document_text": "text_of_document",
            "files": "load_glossary normalized_form parse_glossary",
            "masked": "load_masked",
            "near": "NearMiss NearMisses",
            "table": "TableError",
            "terms": "Glossary Match Term in_word",
        },
    )

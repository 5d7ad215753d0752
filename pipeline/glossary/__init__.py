"""Glossary: names and terms to recognise and translate as the user writes them."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .candidates import *
    from .current import *
    from .document_text import *
    from .files import *
    from .masked import *
    from .near import *
    from .table import *
    from .terms import *
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

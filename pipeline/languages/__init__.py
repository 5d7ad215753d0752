"""What is known of languages: their tags and scripts, their marks, and the rules of each."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .chinese import *
    from .detection import *
    from .marks import *
    from .noun_agreement import *
    from .numbers import *
    from .options import *
    from .scripts import *
    from .sounds import *
    from .tags import *
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "chinese": "Convert converted_parts settled simplified traditional",
            "detection": "detected written_language",
            "marks": "CLAUSE_MARKS CLOSERS MARKS final_marks letters",
            "noun_agreement": "is_before_noun numbered plural with_noun",
            "numbers": "in_digits",
            "options": "AUTO_SOURCE LanguageConfig MOST_SPOKEN as_codes",
            "scripts": "check_script choose_code needed_conversion",
            "sounds": "sound_label",
            "tags": (
                "CHINESE LONGEST_CODE LanguageTag confusable english_name is_tag_of known_language language_tag "
                "named_language nearest normalized_code same_language same_text sets_sentences_apart spaced"
            ),
        },
    )

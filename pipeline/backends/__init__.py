"""What recognises and translates: each kind loads its models, and has a protocol of the engine."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .asr_options import *
    from .by_language import *
    from .engines import *
    from .guessed_language import *
    from .machine import *
    from .marian.compile.build import *
    from .marian.compiled import *
    from .marian.decode.settings import *
    from .marian.decode.students import *
    from .marian.inspection import *
    from .marian.load import *
    from .marian.model import *
    from .marian.model_text import *
    from .marian.pairs import *
    from .marian.pivot import *
    from .marian.preparation import *
    from .marian.routing import *
    from .marian.search.sentence_text import *
    from .marian.terms.markup import *
    from .marian.text_translation import *
    from .nmt_options import *
    from .onnx_session import *
    from .script import *
    from .turns import *
    from .vad.detector import *
    from .vad.silero import *
    from .vad.sounds import *
    from .voices import *
    from .whisper.engine import *
    from .whisper.files import *
    from .whisper.recognizer import *
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "asr_options": "AsrConfig DraftModel RECOGNIZERS backend_of",
            "by_language": "translator_by_language",
            "engines": "engine",
            "guessed_language": "first_speech guessed_languages",
            "machine": "give_back_memory keep_freed_memory usable_cores",
            "marian.compile.build": "SHORTLIST_SIZE compile_model",
            "marian.compiled": "cached_compiled drop_damaged_compiled find_translation_model is_compiled translator_ref",
            "marian.decode.settings": "read_json",
            "marian.decode.students": "StudentFiles find_student",
            "marian.inspection": "as_text inspect_model",
            "marian.load": "find_translation_models in_sequence load_translation_model loaded_as loaded_translator",
            "marian.model": "MarianModel",
            "marian.model_text": "UNDETERMINED",
            "marian.pivot": "PivotTranslator",
            "marian.preparation": "ALL_RULES TextRule",
            "marian.pairs": "Pair all_pairs route route_line student_routes weights",
            "marian.routing": (
                "AUTO LanguagePair check_shared is_same_pair language_code looked_up may_translate names_pair resolve "
                "translates_all"
            ),
            "marian.search.sentence_text": "SentenceCache",
            "marian.terms.markup": "NEXT",
            "marian.text_translation": "Markup TextTranslation",
            "nmt_options": "NmtConfig",
            "onnx_session": "open_session quiet_options",
            "script": "script_conversions usual_script",
            "turns": "with_speakers",
            "vad.detector": "SpeechDetector",
            "vad.silero": "load_silero",
            "vad.sounds": "FireRedDetector",
            "voices": "VoiceModel voice_model_folder",
            "whisper.engine": "WhisperEngine",
            "whisper.files": "find_recognizer",
            "whisper.recognizer": "WhisperRecognizer",
        },
    )

"""What recognises and translates: each kind loads its models, and has a protocol of the engine."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .asr_options import RECOGNIZERS, AsrConfig, DraftModel, backend_of
    from .by_language import translator_by_language
    from .engines import engine
    from .guessed_language import first_speech, guessed_languages
    from .machine import give_back_memory, keep_freed_memory, usable_cores
    from .marian.compile.build import SHORTLIST_SIZE, compile_model
    from .marian.compiled import (
        cached_compiled,
        drop_damaged_compiled,
        find_translation_model,
        is_compiled,
        translator_ref,
    )
    from .marian.decode.settings import read_json
    from .marian.decode.students import StudentFiles, find_student
    from .marian.inspection import as_text, inspect_model
    from .marian.load import find_translation_models, in_sequence, load_translation_model, loaded_as, loaded_translator
    from .marian.model import MarianModel
    from .marian.model_text import UNDETERMINED
    from .marian.pivot import PivotTranslator
    from .marian.preparation import ALL_RULES, TextRule
    from .marian.routing import (
        AUTO,
        LanguagePair,
        Pair,
        all_pairs,
        check_shared,
        is_same_pair,
        language_code,
        looked_up,
        may_translate,
        names_pair,
        resolve,
        route,
        route_line,
        student_routes,
        translates_all,
        weights,
    )
    from .marian.search.sentence_text import SentenceCache
    from .marian.terms.markup import NEXT
    from .marian.text_translation import Markup, TextTranslation
    from .nmt_options import NmtConfig
    from .onnx_session import open_session, quiet_options
    from .script import script_conversions, usual_script
    from .turns import with_speakers
    from .vad.detector import SpeechDetector
    from .vad.silero import load_silero
    from .vad.sounds import FireRedDetector
    from .voices import VoiceModel, voice_model_folder
    from .whisper.engine import WhisperEngine
    from .whisper.files import find_recognizer
    from .whisper.recognizer import WhisperRecognizer
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
            "marian.routing": (
                "AUTO LanguagePair Pair all_pairs check_shared is_same_pair language_code looked_up may_translate "
                "names_pair resolve route route_line student_routes translates_all weights"
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
            "whisper.recognizer": "WhisperRecognizer",
            "whisper.engine": "WhisperEngine",
            "whisper.files": "find_recognizer",
        },
    )

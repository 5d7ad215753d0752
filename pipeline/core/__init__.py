"""The engine: speech in, text as it grows out. It imports no model: recognisers, translators and detectors are handed in."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .asr.context import *
    from .asr.final import *
    from .asr.groups import *
    from .asr.language_segmenter import *
    from .asr.matching import *
    from .asr.recognizer import *
    from .asr.stage import *
    from .asr.terms import *
    from .bounds import *
    from .captions.append import *
    from .captions.changes import *
    from .captions.masking import *
    from .captions.policy import *
    from .captions.states import *
    from .events import *
    from .models import *
    from .nmt.draft_tokens import *
    from .nmt.same_language import *
    from .nmt.stage import *
    from .nmt.targets import *
    from .nmt.translator import *
    from .notices import *
    from .run.options import *
    from .run.overload import *
    from .run.stats import *
    from .run.worker import *
    from .sentences.assembler import *
    from .sentences.splitting import *
    from .sentences.stage import *
    from .source import *
    from .stages import *
    from .translator import *
    from .vad.endpointing import *
    from .vad.gate import *
    from .vad.options import *
    from .vad.sounds import *
    from .vad.stage import *
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "asr.context": "fits gaps",
            "asr.final": "FinalRecognition",
            "asr.groups": "Groups",
            "asr.language_segmenter": "FRAME_S levels_db",
            "asr.matching": "first_new_word resembles_part",
            "asr.recognizer": (
                "BatchRecognizer ConcurrentRecognizer DEFAULT DraftRecognizer DraftRefusedError LanguageDetector "
                "LanguageGuesser MultilingualRecognizer PartialText RecognitionOptions RecognitionStream Recognizer "
                "StreamingRecognizer VocabularyRecognizer by_segment"
            ),
            "asr.stage": "AsrStage",
            "asr.terms": "HeardTerms Replacement",
            "bounds": "CheckedOptions mistake name_in one_of within",
            "captions.append": "AppendOnlySentences AppendOnlyText Piece joined_text",
            "captions.changes": "Change ChangeEvent Changes Delta SourceDelta States edit",
            "captions.masking": "MASK Masking",
            "captions.policy": "rewritten",
            "captions.states": "State TextChangeError common_length key place_of",
            "events": (
                "Confidence Correction EndOfInput MissingSpeech Pause PipelineEvent SAMPLE_RATE Samples SegmentSoFar SoundEvent "
                "SourceSentence SourceText SpeechSegment TargetText TargetToken Transcript TranscriptSoFar "
                "Translation Word"
            ),
            "models": "AddSpeakers Models RunConfig",
            "nmt.draft_tokens": "DraftTokens PartDraft SteadySource Token attends steady_sources",
            "nmt.same_language": "SameLanguageText",
            "nmt.stage": "DirectedGlossary NmtContext NmtStage",
            "nmt.targets": "LateTargets TranslationStage",
            "nmt.translator": (
                "Decoding MultiSourceTranslator OnStart TermTranslator TextTranslator TranslationRequest passes "
                "unspellable warn_unspellable"
            ),
            "notices": (
                "AudioLost DeviceBack DeviceLost InputLevel LoadChanged Notice Paused Resumed SourceNotice "
                "TranslationLost"
            ),
            "run.options": "CaptionOptions DraftOptions GlossaryOptions QueueConfig SentenceOptions SoundOptions SpeakerOptions",
            "run.overload": "OverloadOptions",
            "run.stats": "PipelineStats",
            "run.worker": "FAILED Worker",
            "sentences.assembler": "SentenceAssembler",
            "sentences.splitting": "fit split_sentences trimmed_words",
            "sentences.stage": "SentenceStage",
            "source": "Address AudioSource CHUNK_SAMPLES LiveSource",
            "stages": "StageSpec import_stages standard_stages with_stage",
            "translator": "SpeechTranslator",
            "vad.endpointing": "Endpointer",
            "vad.gate": "FrameDecision FrameDetector SpeechGate",
            "vad.options": "VadConfig",
            "vad.sounds": "Heard SoundDetector",
            "vad.stage": "VadStage",
        },
    )

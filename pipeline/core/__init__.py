"""The engine: speech in, text as it grows out. It imports no model: recognisers, translators and detectors are handed in."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .asr.context import fits, gaps
    from .asr.final import FinalRecognition
    from .asr.groups import Groups
    from .asr.language_segmenter import FRAME_S, levels_db
    from .asr.matching import first_new_word, resembles_part
    from .asr.recognizer import (
        DEFAULT,
        BatchRecognizer,
        ConcurrentRecognizer,
        DraftRecognizer,
        DraftRefusedError,
        LanguageDetector,
        LanguageGuesser,
        MultilingualRecognizer,
        PartialText,
        RecognitionOptions,
        RecognitionStream,
        Recognizer,
        StreamingRecognizer,
        VocabularyRecognizer,
        by_segment,
    )
    from .asr.stage import AsrStage
    from .asr.terms import HeardTerms, Replacement
    from .bounds import CheckedOptions, mistake, name_in, one_of, within
    from .captions.append import AppendOnlySentences, AppendOnlyText, Piece, joined_text
    from .captions.changes import Change, ChangeEvent, Changes, Delta, SourceDelta, States, edit
    from .captions.masking import MASK, Masking
    from .captions.policy import rewritten
    from .captions.states import State, TextChangeError, common_length, key, place_of
    from .events import (
        SAMPLE_RATE,
        Confidence,
        Correction,
        EndOfInput,
        MissingSpeech,
        Pause,
        PipelineEvent,
        Samples,
        SegmentSoFar,
        SoundEvent,
        SourceSentence,
        SourceText,
        SpeechSegment,
        TargetText,
        TargetToken,
        Transcript,
        TranscriptSoFar,
        Translation,
        Word,
    )
    from .models import AddSpeakers, Models, RunConfig
    from .nmt.draft_tokens import PartDraft, SteadySource, Token, attends, steady_sources
    from .nmt.same_language import SameLanguageText
    from .nmt.stage import DirectedGlossary, NmtContext, NmtStage
    from .nmt.targets import LateTargets, TranslationStage
    from .nmt.translator import (
        Decoding,
        MultiSourceTranslator,
        OnStart,
        TermTranslator,
        TextTranslator,
        TranslationRequest,
        passes,
        unspellable,
        warn_unspellable,
    )
    from .notices import (
        AudioLost,
        DeviceBack,
        DeviceLost,
        InputLevel,
        LoadChanged,
        Notice,
        Paused,
        Resumed,
        SourceNotice,
        TranslationLost,
    )
    from .run.options import (
        CaptionOptions,
        DraftOptions,
        GlossaryOptions,
        QueueConfig,
        SentenceOptions,
        SoundOptions,
        SpeakerOptions,
    )
    from .run.overload import OverloadOptions
    from .run.stats import PipelineStats
    from .run.worker import FAILED, Worker
    from .sentences.assembler import SentenceAssembler
    from .sentences.splitting import fit, split_sentences, trimmed_words
    from .sentences.stage import SentenceStage
    from .source import CHUNK_SAMPLES, Address, AudioSource, LiveSource
    from .stages import StageSpec, standard_stages, with_stage
    from .translator import SpeechTranslator
    from .vad.endpointing import Endpointer
    from .vad.gate import FrameDecision, FrameDetector, SpeechGate
    from .vad.options import VadConfig
    from .vad.sounds import Heard, SoundDetector
    from .vad.stage import VadStage
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
            "nmt.draft_tokens": "PartDraft SteadySource Token attends steady_sources",
            "nmt.same_language": "SameLanguageText",
            "nmt.stage": "DirectedGlossary NmtContext NmtStage",
            "nmt.targets": "LateTargets TranslationStage",
            "nmt.translator": (
                "Decoding MultiSourceTranslator OnStart TermTranslator TextTranslator TranslationRequest passes unspellable "
                "warn_unspellable"
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
            "stages": "StageSpec standard_stages with_stage",
            "translator": "SpeechTranslator",
            "vad.endpointing": "Endpointer",
            "vad.gate": "FrameDecision FrameDetector SpeechGate",
            "vad.options": "VadConfig",
            "vad.sounds": "Heard SoundDetector",
            "vad.stage": "VadStage",
        },
    )

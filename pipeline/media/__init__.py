"""Sound in; subtitles, terminal and logs out."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .audio.capture import Converter
    from .audio.devices import (
        find_device,
        library_messages_logged,
        list_devices,
        loopback_device,
        portaudio,
        settings_for,
    )
    from .audio.level import SILENCE_DBFS
    from .audio.microphone import Microphone
    from .audio.network import is_stream, open_stream
    from .audio.pcm import PcmStream
    from .audio.recording import PcmRecording, Recording, read_audio
    from .latency.alignment import aligned
    from .latency.delay_measures import Reference, Scores, mean_scores, normalized_erasure, stream_scores
    from .latency.emissions import Emission, TextSoFar, Unit, unit_of, units
    from .sinks.blank import is_blank
    from .sinks.cue_file import timestamp
    from .sinks.files import FORMATS, SINKS, SPOKEN, MakeSink, file_suffix, open_sinks, sink_makers
    from .sinks.jsonl import Text, line, read_event
    from .sinks.latency_log import LatencyLog, open_latency_log
    from .sinks.queued import Delivery, QueuedSink
    from .sinks.sink import SINK_FAILURES, BlockFile, FanOut, Sink, close_all, in_use, open_locked, write_all
    from .sinks.srt import SrtSink
    from .sinks.terminal import TerminalClosedError, TerminalSink
    from .sinks.vtt import VttSink
    from .subtitles.bidi import directed
    from .subtitles.check import ReadCue, both_languages, read_cues, violations
    from .subtitles.cues import Cue, CueBuilder
    from .subtitles.early import EarlySentenceBuilder
    from .subtitles.lines import layout
    from .subtitles.rules import PRESETS, SubtitleRules
    from .subtitles.sentences import Sentence, SentenceBuilder
    from .subtitles.spoken import whisper_segment
    from .subtitles.text import line_limit, reading_ms, width
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "audio.capture": "Converter",
            "audio.devices": "find_device library_messages_logged list_devices loopback_device portaudio settings_for",
            "audio.level": "SILENCE_DBFS",
            "audio.microphone": "Microphone",
            "audio.network": "is_stream open_stream",
            "audio.pcm": "PcmStream",
            "audio.recording": "PcmRecording Recording read_audio",
            "latency.alignment": "aligned",
            "latency.delay_measures": "Reference Scores mean_scores normalized_erasure stream_scores",
            "latency.emissions": "Emission TextSoFar Unit unit_of units",
            "sinks.blank": "is_blank",
            "sinks.cue_file": "timestamp",
            "sinks.files": "FORMATS MakeSink SINKS SPOKEN file_suffix open_sinks sink_makers",
            "sinks.jsonl": "Text line read_event",
            "sinks.latency_log": "LatencyLog open_latency_log",
            "sinks.queued": "Delivery QueuedSink",
            "sinks.sink": "BlockFile FanOut SINK_FAILURES Sink close_all in_use open_locked write_all",
            "sinks.srt": "SrtSink",
            "sinks.terminal": "TerminalClosedError TerminalSink",
            "sinks.vtt": "VttSink",
            "subtitles.bidi": "directed",
            "subtitles.check": "ReadCue both_languages read_cues violations",
            "subtitles.cues": "Cue CueBuilder",
            "subtitles.early": "EarlySentenceBuilder",
            "subtitles.lines": "layout",
            "subtitles.rules": "PRESETS SubtitleRules",
            "subtitles.sentences": "Sentence SentenceBuilder",
            "subtitles.spoken": "whisper_segment",
            "subtitles.text": "line_limit reading_ms width",
        },
    )

"""Sound in; subtitles, terminal and logs out."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .audio.capture import *
    from .audio.devices import *
    from .audio.level import *
    from .audio.microphone import *
    from .audio.network import *
    from .audio.pcm import *
    from .audio.recording import *
    from .latency.alignment import *
    from .latency.delay_measures import *
    from .latency.emissions import *
    from .sinks.blank import *
    from .sinks.block_file import *
    from .sinks.cue_file import *
    from .sinks.files import *
    from .sinks.jsonl import *
    from .sinks.latency_log import *
    from .sinks.queued import *
    from .sinks.sink import *
    from .sinks.srt import *
    from .sinks.terminal import *
    from .sinks.vtt import *
    from .subtitles.bidi import *
    from .subtitles.check import *
    from .subtitles.cues import *
    from .subtitles.early import *
    from .subtitles.lines import *
    from .subtitles.rules import *
    from .subtitles.sentences import *
    from .subtitles.spoken import *
    from .subtitles.text import *
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
            "sinks.block_file": "BlockFile in_use open_locked",
            "sinks.cue_file": "timestamp",
            "sinks.files": "FORMATS MakeSink SINKS SPOKEN file_suffix open_sinks sink_makers",
            "sinks.jsonl": "Text line read_event",
            "sinks.latency_log": "LatencyLog open_latency_log",
            "sinks.queued": "Delivery QueuedSink",
            "sinks.sink": "FanOut SINK_FAILURES Sink close_all write_all",
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

"""Options of the ASR stage."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.bounds import one_of, within


@dataclass(frozen=True)
class AsrConfig:
    # A directory, a Whisper size ("small") or a hub id of a CTranslate2 model.
    model: str = "Systran/faster-whisper-small"
    # Commit of the hub repository; None takes the one that is known, else the newest.
    revision: str | None = None
    # What the encoder computes on: the speech and padding up to so many seconds. Whisper was trained on 30 s; a third of
    # that is enough, and three to five times as fast. Longer speech has a longer window, with a second of padding.
    window_s: float = within(10.0, 1, 30)
    # Hypotheses that the search keeps; 1 is greedy. Five in a short window are as accurate as one in the full window.
    beam_size: int = within(5, 1, 20)
    compute_type: str = one_of("int8", "default", "auto", "int8", "int8_float32", "float32")
    threads: int = within(0, 0, 256)  # 0: CTranslate2's choice, as many as the machine has cores but four at most
    # Of what is no live source, speech recognised in one call, in milliseconds; 0 recognises each segment by itself.
    # None is 28,000 in pipeline.translate and 0 elsewhere. Text comes later, is heard in its context, and costs less.
    join_ms: int | None = within(None, 0, 29_000)
    # What Chinese is written in, for Whisper mixes both: "simplified", "traditional" or "as-heard". None is simplified for
    # Mandarin (zh), and as heard for all else. It is what is shown; the translator of Mandarin is given simplified text
    # whatever is shown, unless its files say that it was trained on traditional text.
    script: str | None = one_of(None, "simplified", "traditional", "as-heard")
    # Whether subtitles get the times of their words; otherwise sentences share a segment's time by their letters.
    word_timestamps: bool = True
    # Words that will be said and are spelt like this, such as names.
    hotwords: str = ""
    # Text that the speech continues, in its language and style. Both are kept short: each token costs time.
    prompt: str = ""
    # When a transcript is not believed; None takes what is known of the model. Whisper's own rules (openai/whisper,
    # transcribe.py): silence if both of the first two fire, a loop above the third.
    no_speech_threshold: float | None = within(None, 0, 1)
    log_probability_threshold: float | None = within(None, -100, 0)
    compression_ratio_threshold: float | None = within(None, 1, 100)

"""Options of the sentence assembler."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.bounds import within


@dataclass(frozen=True)
class SentenceOptions:
    """How a sentence may go on over a pause, in milliseconds of audio."""

    # A pause of this length ends a sentence that has no final mark. 0 ends every sentence with its segment.
    long_pause_ms: int = within(2_000, 0, 10_000)
    # A sentence that has been spoken for this long is not continued after the next pause.
    max_sentence_ms: int = within(20_000, 1_000, 60_000)

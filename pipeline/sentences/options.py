"""Options of the sentence assembler."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.bounds import Checked, within


@dataclass(frozen=True)
class SentenceOptions(Checked):
    """When a sentence ends, in milliseconds of audio."""

    # A pause of this length ends a sentence that has its final mark. A shorter one does not: the recogniser writes a full
    # stop at every pause, and only the next words show whether the sentence has ended.
    pause_ms: int = within(1_800, 0, 10_000)
    # A pause of this length ends any sentence. 0 ends every sentence with its segment.
    long_pause_ms: int = within(2_000, 0, 10_000)
    # A sentence that has been spoken for this long ends at the next pause; an unfinished one is cut at a clause mark a quarter
    # before.
    max_sentence_ms: int = within(20_000, 1_000, 60_000)

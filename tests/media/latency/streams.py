"""An artificial stream of two sentences, in Chinese and in English, with the arrival times of its tokens."""

from collections.abc import Iterator
from pathlib import Path

from pipeline.events import EndOfInput, PipelineEvent, Transcript
from pipeline.media.latency.emissions import Unit
from pipeline.media.sinks.latency_log import LatencyLog, open_latency_log
from tests.streams import spoken, translated

DURATION_S = 7.5
# Unit → sentence → the texts of its tokens; they were heard after 2.5 and 6 s.
TEXTS: dict[Unit, list[list[str]]] = {
    "char": [["早", "上好", "。", ""], ["会议", "在", "三楼", "。"]],
    "word": [["Good", " morn", "ing", ".", ""], ["The", " meeting", " is", " upst", "airs", "."]],
}
HEARD_S = (2.5, 6.0)
REFERENCES: dict[Unit, str] = {"char": "早上好！会议在三楼。", "word": "Good morning! The meeting is up stairs."}


def events(unit: Unit) -> list[PipelineEvent]:
    found: list[PipelineEvent] = []
    for number, (texts, heard_s) in enumerate(zip(TEXTS[unit], HEARD_S, strict=True)):
        start_s, end_s = heard_s - 2.0, heard_s - 0.1
        found.append(Transcript(number, start_s, end_s, "source", "en", heard_s=heard_s))
        found += spoken(number, "source", start_s, end_s, heard_s=heard_s)
        found += translated(number, texts, heard_s=heard_s)
    return [*found, EndOfInput(DURATION_S)]


def received_s(unit: Unit) -> Iterator[float]:
    """Arrival times: 0.4 s after the sentence was heard for its first token, then every 30 ms."""
    for texts, heard_s in zip(TEXTS[unit], HEARD_S, strict=True):
        for number in range(len(texts)):
            yield heard_s + 0.4 + 0.03 * number


def written(path: Path, unit: Unit, streams: int = 1) -> LatencyLog:
    """The log of one or more consecutive streams."""
    log = open_latency_log(path, unit)
    for number in range(streams):
        log.start(f"talk{number}.wav", received_s(unit).__next__, REFERENCES[unit])
        for event in events(unit):
            log.write(event)
    log.close()
    return log

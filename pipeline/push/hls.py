"""WebVTT segments and a live playlist for HLS (RFC 8216), in a folder that a web server serves beside the video's.

Media time 0 is the beginning of the stream here: a segment's program date-time says when its audio was heard, and its
timestamp map places it at an MPEG-TS time of 10 s. A segment is written a while after its time. A cue that comes later
still is shown from the beginning of the next segment on, for as long as it leaves its successor time, and counted.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ..core import EndOfInput, PipelineEvent
from ..errors import SinkError, UsageError
from ..media import Cue, CueBuilder, SubtitleRules, directed, timestamp
from ..media.subtitles import escapes
from .push import Clock, replace_text

log = logging.getLogger(__name__)

_SEGMENT_S = 6
# Committed text comes when a sentence has ended; players are three segments behind the newest.
_WAIT_S = 6.0
_LISTED = 10
_HEADER = "WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000\n\n"
_BLOCK = re.compile(r"(?:#EXT-X-(?:DISCONTINUITY|PROGRAM-DATE-TIME:[^\n]*)\n)*#EXTINF[^\n]*\ncaptions-(\d+)\.vtt\n")


class Push:
    """Writes ``captions.m3u8`` and its segments, and removes segments that are no longer listed.

    Another run into the same folder goes on after a discontinuity.
    """

    def __init__(self, where: str, languages: Sequence[str], rules: SubtitleRules) -> None:
        """Open the folder ``where``; it is made if it is missing."""
        self.lost = self.late = 0
        self.problem = ""
        self._folder = Path(where)
        self._playlist = self._folder / "captions.m3u8"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            old = self._playlist.read_text("utf-8") if self._playlist.exists() else ""
            replace_text(self._playlist, old or f"#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:{_SEGMENT_S}\n")
        except (OSError, ValueError) as error:
            raise UsageError(f"--push hls={where}: {error}; name a folder that can be written") from None
        blocks = [(int(match[1]), match[0]) for match in _BLOCK.finditer(old)]
        self._blocks = deque(blocks)
        sequence = re.search(r"DISCONTINUITY-SEQUENCE:(\d+)", old)
        self._discontinuities = int(sequence[1]) if sequence else 0
        self._first = blocks[-1][0] + 1 if blocks else 0
        """Number of the segment at media time 0."""
        self._written = 0
        """Number of segments written in this run."""
        self._builder, self._rules, self._gap_s = CueBuilder(rules, languages[0]), rules, rules.gap_ms / 1000
        self._end_s = -self._gap_s
        """The end of the last cue, in seconds."""
        self._cues: list[Cue] = []
        self._clock: Clock | None = None
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._work, name="hls", daemon=True)
        self._thread.start()

    def begin(self, clock: Clock) -> None:
        """Tell the time of the stream."""
        self._clock = clock

    def write(self, event: PipelineEvent) -> None:
        with self._lock:
            if self._failure is not None:
                raise SinkError(f"cannot write to {self._folder} ({self._failure.strerror})")
            self._take(self._builder.push(event))
            if isinstance(event, EndOfInput):
                last_s = max([event.duration_s, *(cue.end_s for cue in self._cues)])
                while self._written * _SEGMENT_S < last_s:
                    self._write_segment()

    def close(self) -> None:
        """End the playlist. Later calls do nothing."""
        self._closed.set()
        self._thread.join()
        with self._lock:
            self._take(self._builder.flush())
            try:
                while any(cue.end_s > self._written * _SEGMENT_S for cue in self._cues):
                    self._write_segment()
                if self._written:
                    self._list("#EXT-X-ENDLIST\n")
            except OSError as error:
                raise SinkError(f"cannot write to {self._folder} ({error.strerror})") from error
        if self.late:
            log.warning("hls (%s): %d captions came later than their segments", self._folder, self.late)

    def _work(self) -> None:
        """Write each segment when its time has passed, also while nobody speaks."""
        while not self._closed.wait(0.25):
            with self._lock:
                while self._clock is not None and self._clock() >= (self._written + 1) * _SEGMENT_S + _WAIT_S:
                    try:
                        self._write_segment()
                    except OSError as error:
                        self._failure = error
                        return

    def _take(self, cues: Sequence[Cue]) -> None:
        for cue in cues:
            open_s, least_s = float(self._written * _SEGMENT_S), self._rules.min_duration_ms / 1000
            start_s, least_end_s = cue.start_s, cue.end_s
            if start_s < open_s and cue.end_s < open_s + least_s:
                self.late += 1
                start_s, least_end_s = open_s, 0.0
                least_s = cue.end_s - cue.start_s
            elif self._cues and start_s < self._end_s + self._gap_s and self._cues[-1].start_s >= open_s:
                before = self._cues[-1]  # was late, and makes room
                self._end_s = min(before.end_s, max(start_s - self._gap_s, before.start_s + least_s))
                self._cues[-1] = replace(before, end_s=self._end_s)
            start_s = max(start_s, self._end_s + self._gap_s)
            self._end_s = max(least_end_s, start_s + least_s)
            self._cues.append(replace(cue, start_s=start_s, end_s=self._end_s))

    def _write_segment(self) -> None:
        begin_s = self._written * _SEGMENT_S
        end_s, number = begin_s + _SEGMENT_S, self._first + self._written
        # Sentences that wait for the next one to share a cue.
        if self._clock is not None and self._clock() >= end_s:
            self._take(self._builder.flush())
        text = _HEADER
        for cue in self._cues:
            if cue.start_s < end_s:  # one that spans two segments is in both
                lines = "\n".join(escapes.vtt(line) for line in directed((*cue.lines, *cue.source_lines)))
                text += f"{timestamp(cue.start_s, '.')} --> {timestamp(cue.end_s, '.')}\n{lines}\n\n"
        self._cues = [cue for cue in self._cues if cue.end_s > end_s]
        replace_text(self._folder / _name(number), text)
        heard = datetime.now(UTC) - timedelta(seconds=(self._clock() if self._clock else end_s) - begin_s)
        gap = "#EXT-X-DISCONTINUITY\n" if self._first and not self._written else ""
        date = f"#EXT-X-PROGRAM-DATE-TIME:{heard.isoformat(timespec='milliseconds')}\n"
        self._blocks.append((number, f"{gap}{date}#EXTINF:{_SEGMENT_S:.3f},\n{_name(number)}\n"))
        self._written += 1
        while len(self._blocks) > _LISTED:
            old, block = self._blocks.popleft()
            self._discontinuities += "DISCONTINUITY" in block
            # Players may still fetch what was just listed.
            (self._folder / _name(old - _LISTED)).unlink(missing_ok=True)
        self._list()

    def _list(self, end: str = "") -> None:
        head = (
            f"#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:{_SEGMENT_S}\n"
            f"#EXT-X-MEDIA-SEQUENCE:{self._blocks[0][0]}\n#EXT-X-DISCONTINUITY-SEQUENCE:{self._discontinuities}\n"
        )
        replace_text(self._playlist, head + "".join(block for _, block in self._blocks) + end)


def _name(number: int) -> str:
    return f"captions-{number}.vtt"

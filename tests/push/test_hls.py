"""WebVTT segments for HLS, read by FFmpeg and webvtt-py."""

import html
import re
import threading
from pathlib import Path

import av
import pytest
import webvtt

from pipeline.errors import SinkError
from pipeline.events import EndOfInput, PipelineEvent
from pipeline.media.subtitles.cues import Cue
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.push.hls import Push
from tests.conftest import HANG_S
from tests.streams import spoken, translated


class Stream:
    """A stream into a folder, whose time the test sets."""

    def __init__(self, folder: Path) -> None:
        self.now_s, self.folder = 0.0, folder
        self.sink = Push(str(folder), ["de"], SubtitleRules())
        self.sink.begin(lambda: self.now_s)
        self._count = 0

    def say(self, text: str, start_s: float, end_s: float) -> None:
        events = [*spoken(self._count, "Hi.", start_s, end_s), *translated(self._count, [text], language="de")]
        self._count += 1
        self.write(*events)

    def write(self, *events: PipelineEvent) -> None:
        for event in events:
            self.sink.write(event)

    def until(self, now_s: float, segment: int) -> None:
        """Let time pass, and wait until a segment is listed."""
        self.now_s = now_s
        waiting = threading.Event()
        for _ in range(int(HANG_S / 0.02)):
            if f"captions-{segment}.vtt\n" in self.playlist:
                return
            waiting.wait(0.02)
        pytest.fail(f"segment {segment} is not listed:\n{self.playlist}")

    @property
    def playlist(self) -> str:
        path = self.folder / "captions.m3u8"
        return path.read_text("utf-8") if path.exists() else ""

    def texts(self, segment: int) -> list[str]:
        return [html.unescape(caption.text) for caption in webvtt.read(str(self.folder / f"captions-{segment}.vtt"))]


def test_ffmpeg_reads_the_playlist_and_cues_keep_their_times(tmp_path):
    stream = Stream(tmp_path)
    stream.say("Eins <b>& zwei.", 1.0, 3.0)
    stream.say("Über die Grenze hinweg.", 5.0, 7.5)
    stream.say("Drei.", 13.0, 15.0)
    stream.write(EndOfInput(20.0))
    stream.sink.close()
    assert stream.texts(0) == ["Eins <b>& zwei.", "Über die Grenze hinweg."]
    assert stream.texts(1) == ["Über die Grenze hinweg."]
    assert (
        (tmp_path / "captions-0.vtt")
        .read_text("utf-8")
        .startswith("WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000\n\n00:00:01.000 --> 00:00:0")
    )
    assert stream.playlist.endswith("captions-3.vtt\n#EXT-X-ENDLIST\n")
    options = {"allowed_extensions": "ALL", "extension_picky": "0"}
    with av.open(str(tmp_path / "captions.m3u8"), options=options) as container:
        packets = [packet for packet in container.demux() if packet.size]
    starts = {bytes(packet).decode(): float(packet.pts * packet.time_base) for packet in packets}
    assert [starts[text] for text in ("Über die Grenze hinweg.", "Drei.")] == [5.0, 13.0]
    assert stream.sink.lost == stream.sink.late == 0


def test_a_cue_is_in_each_segment_that_has_some_of_it(tmp_path):
    stream = Stream(tmp_path)
    stream.say("Bis sechs.", 4.0, 6.0)
    stream.say("Ab elf.", 11.0, 12.5)
    stream.write(EndOfInput(18.0))
    stream.sink.close()
    assert [stream.texts(segment) for segment in range(3)] == [["Bis sechs."], ["Ab elf."], ["Ab elf."]]


def test_segments_come_with_time_also_in_silence_and_late_cues_are_shown_next(tmp_path, caplog):
    stream = Stream(tmp_path)
    stream.until(13.0, 0)
    stream.until(19.0, 1)
    assert stream.texts(0) == stream.texts(1) == []
    assert "ENDLIST" not in stream.playlist
    stream.say("Zu spät.", 2.0, 4.0)
    stream.until(25.0, 2)
    (late,) = webvtt.read(str(tmp_path / "captions-2.vtt"))
    assert (late.start, late.text) == ("00:00:12.000", "Zu spät.")
    stream.sink.close()
    assert "1 captions came later than their segments" in caplog.text


def test_a_late_cue_leaves_its_successors_their_times(tmp_path, caplog):
    stream = Stream(tmp_path)
    stream.until(19.0, 1)
    stream.say("Zu spät, und zwar sehr lang.", 2.0, 5.5)
    stream.say("Auch zu spät.", 6.0, 8.0)
    stream.say("Rechtzeitig.", 13.0, 15.0)
    stream.until(25.0, 2)
    stream.say("Danach.", 16.5, 18.5)  # some of it would be seen
    stream.say("Und dann.", 20.0, 22.0)
    stream.until(31.0, 3)
    stream.sink.close()
    cues = [cue for number in (2, 3) for cue in webvtt.read(str(tmp_path / f"captions-{number}.vtt"))]
    texts = [html.unescape(cue.text) for cue in cues]
    assert texts == ["Zu spät, und zwar sehr lang.", "Auch zu spät.", "Rechtzeitig.", "Danach.", "Und dann."]
    ends = [0.0, *(cue.end_in_seconds for cue in cues)]
    assert all(cue.start_in_seconds >= end for cue, end in zip(cues, ends, strict=False))
    assert all(cue.end_in_seconds - cue.start_in_seconds > 0.8 for cue in cues)
    assert (cues[-1].start, cues[-1].end) == ("00:00:20.000", "00:00:22.000")
    assert [record.getMessage().partition("): ")[2] for record in caplog.records] == [
        "3 captions came later than their segments"
    ]


@pytest.mark.parametrize(
    ("first", "written", "second", "shown"),
    [
        ((5.0, 9.0), 1, (8.0, 10.0), [(5.0, 9.0), (9.083, 10.0)]),  # is in a segment that players have
        ((2.0, 4.0), 1, (7.0, 8.0), [(6.0, 6.917), (7.0, 8.0)]),  # was late, and makes room
        ((2.0, 4.0), 1, (6.2, 8.0), [(6.0, 6.833), (6.916, 8.0)]),  # but is shown for the least time
        ((2.0, 4.0), 0, (5.0, 6.0), [(2.0, 4.0), (5.0, 6.0)]),
    ],
)
def test_a_late_cue_is_cut_for_its_successor_unless_players_have_it(tmp_path, first, written, second, shown):
    sink = Push(str(tmp_path), ["de"], SubtitleRules())
    sink.close()
    sink._written = written if first == (2.0, 4.0) else 0
    sink._take([Cue(1, *first, ("Eins.",))])
    sink._written = written
    sink._take([Cue(2, *second, ("Zwei.",))])
    assert [(cue.start_s, cue.end_s) for cue in sink._cues] == [
        (pytest.approx(start_s), pytest.approx(end_s)) for start_s, end_s in shown
    ]


def test_a_short_sentence_does_not_wait_for_the_next_one_beyond_its_segment(tmp_path):
    stream = Stream(tmp_path)
    stream.write(*spoken(0, "Hi.", 1.0, 1.4, before_pause=False), *translated(0, ["Ja."], language="de"))
    stream.until(13.0, 0)
    assert stream.texts(0) == ["Ja."]
    stream.sink.close()


def test_the_playlist_slides_and_another_run_goes_on(tmp_path):
    first = Stream(tmp_path)
    first.until(30 * 6 + 6.0, 29)
    listed = re.findall(r"captions-(\d+)\.vtt", first.playlist)
    assert listed == [str(number) for number in range(20, 30)]
    assert "#EXT-X-MEDIA-SEQUENCE:20\n" in first.playlist
    assert len(list(tmp_path.glob("*.vtt"))) == 20
    first.sink.close()
    second = Stream(tmp_path)
    second.until(13.0, 30)
    assert "#EXT-X-DISCONTINUITY\n" in second.playlist
    assert "ENDLIST" not in second.playlist
    second.until(12 * 6 + 6.0, 41)
    assert "#EXT-X-DISCONTINUITY-SEQUENCE:1\n" in second.playlist
    second.sink.close()


def test_a_folder_that_is_gone_is_told(tmp_path):
    stream = Stream(tmp_path / "hls")
    for path in (tmp_path / "hls").iterdir():
        path.unlink()
    (tmp_path / "hls").rmdir()
    stream.now_s = 13.0
    stream.sink._thread.join(HANG_S)
    with pytest.raises(SinkError, match="cannot write to"):
        stream.say("Eins.", 1.0, 3.0)
    stream.sink._cues.append(Cue(1, 1.0, 3.0, ("Eins.",)))
    with pytest.raises(SinkError, match="cannot write to"):
        stream.sink.close()


def test_a_run_without_text_leaves_an_empty_playlist_and_the_one_of_an_earlier_run_as_it_was(tmp_path):
    Stream(tmp_path).sink.close()
    assert (tmp_path / "captions.m3u8").read_text("utf-8").startswith("#EXTM3U\n")
    assert not list(tmp_path.glob("*.vtt"))
    first = Stream(tmp_path)
    first.say("Eins.", 1.0, 3.0)
    first.sink.close()
    before = first.playlist
    assert "ENDLIST" in before
    Stream(tmp_path).sink.close()
    assert first.playlist == before

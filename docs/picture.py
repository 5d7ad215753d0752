"""Draw the moving picture of the README: the terminal during a live run of the demo, as an animated SVG.

python docs/picture.py examples/audio/travel.wav docs/terminal.svg, or `make pictures`
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
import time
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from rich.console import Console, Group
from rich.segment import Segment

from pipeline import PipelineEvent, SourceSentence, SourceText, SpeechTranslator, Translation, load_config
from pipeline.core.captions.states import State, key
from pipeline.media.audio.recording import Recording
from pipeline.media.sinks.terminal import Passage, drawn

COLUMNS, ROWS = 76, 10
FONT_PX, LINE_PX, MARGIN_PX, TITLE_PX = 14, 20, 14, 30
COLUMN_PX = 0.602 * FONT_PX
"""Advance of a usual monospaced font."""
STEP_S = 0.1
"""Frames are at least this far apart."""
HOLD_S = 3.0
"""The last frame stays this long."""
COLOURS = {"cyan": "#68a0b3", "bright_black": "#9a9b99"}
BACKGROUND, TEXT = "#292929", "#e5e5e5"

Lines = tuple[str, ...]
"""A frame: one <text> element's content per row."""


@dataclass(frozen=True)
class Frame:
    at_s: float
    lines: Lines


class Screen:
    """The terminal's lower rows after each event."""

    def __init__(self) -> None:
        self._console = Console(width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
        self._passages: dict[int, Passage] = {}
        self._finished: set[int] = set()

    def take(self, event: PipelineEvent) -> None:
        if not isinstance(event, State):
            return
        before = self._passages.get(event.sentence, Passage(0, 0, ""))
        number, language = key(event)
        steady = {**before.steady, language: event.steady}
        if isinstance(event, SourceText | SourceSentence):
            after = Passage(event.start_s, event.end_s, event.text, before.translations, steady=steady)
        else:
            after = replace(before, translations=((language, event.text),), steady=steady)
        if isinstance(event, Translation):
            self._finished.add(number)
        self._passages[number] = after

    def lines(self, limit: int = ROWS) -> Lines:
        """The last rows, ``limit`` at most."""
        shown = [(number, each) for number, each in sorted(self._passages.items()) if each.source]
        group = Group(*(drawn(each, number not in self._finished) for number, each in shown))
        rows = self._console.render_lines(group, pad=False)
        return tuple("".join(map(_span, row)).rstrip() for row in rows[-limit:])


def _span(segment: Segment) -> str:
    style = segment.style
    text = escape(segment.text)
    if style is None or not text.strip():
        return text
    colour = COLOURS.get(style.color.name, TEXT) if style.color else TEXT
    attributes = "".join(
        [
            f' fill="{colour}"' if colour != TEXT else "",
            ' font-weight="bold"' if style.bold else "",
            ' opacity=".5"' if style.dim else "",
        ]
    )
    return f"<tspan{attributes}>{text}</tspan>" if attributes else text


def words(text: str) -> tuple[str, ...]:
    """What is compared of a text or row: a microphone's audio is not quite that of the file, which may change a comma or a tenth."""
    return tuple(re.findall(r"\w+", re.sub(r"^[\d:.]+–[\d:.]+", "", text).lower()))


async def finished(audio: Path) -> list[PipelineEvent]:
    """The events of the demo with a recording, as fast as they come: the pictures show no other final text."""
    async with SpeechTranslator(load_config("demo")) as translator:
        return [event async for event in translator.run(Recording(audio))]


async def recorded(audio: Path) -> list[Frame]:
    """What the terminal shows while the recording is played at its own pace."""
    screen, frames = Screen(), [Frame(0, ())]
    async with SpeechTranslator(load_config("demo"), live=True) as translator:
        began = time.perf_counter()
        async for event in translator.run(Recording(audio), paced=True):
            screen.take(event)
            now, lines = time.perf_counter() - began, screen.lines()
            if lines == frames[-1].lines:
                continue
            if now - frames[-1].at_s < STEP_S:
                frames[-1] = Frame(frames[-1].at_s, lines)
            else:
                frames.append(Frame(now, lines))
    return frames


def svg(frames: list[Frame], title: str) -> str:
    """The frames one below the other, moved up by one at a time behind a window."""
    width, height = round(COLUMNS * COLUMN_PX + 2 * MARGIN_PX), ROWS * LINE_PX + MARGIN_PX
    total_s = frames[-1].at_s + HOLD_S
    steps = "".join(
        f"{100 * frame.at_s / total_s:.2f}%{{transform:translateY({-number * height}px)}}"
        for number, frame in enumerate(frames)
    )
    still = -(2 * len(frames) // 3) * height  # where nothing moves: a frame with drafts
    strip = "\n".join(
        f'<text x="{MARGIN_PX}" y="{number * height + row * LINE_PX + FONT_PX}">{line}</text>'
        for number, frame in enumerate(frames)
        for row, line in enumerate(frame.lines)
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + TITLE_PX}" width="{width}" height="{height + TITLE_PX}">
<!-- Written by docs/picture.py -->
<style>
text{{font:{FONT_PX}px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:{TEXT};white-space:pre}}
#film{{transform:translateY({still}px);animation:play {total_s:.2f}s step-end infinite}}
@media (prefers-reduced-motion:reduce){{#film{{animation:none}}}}
@keyframes play{{{steps}}}
</style>
<rect width="{width}" height="{height + TITLE_PX}" rx="8" fill="{BACKGROUND}"/>
<text x="{MARGIN_PX}" y="20" opacity=".7">$ {escape(title)}</text>
<svg y="{TITLE_PX}" width="{width}" height="{height}" overflow="hidden"><g id="film">
{strip}
</g></svg>
</svg>
"""


def main(audio: Path, picture: Path) -> None:
    frames = asyncio.run(recorded(audio))
    picture.write_text(svg(frames, f"speech-translate live {audio} --config demo"), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

"""Subtitles in the terminal: the source line, and below it the translation as it grows token by token."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...core import EndOfInput, PipelineEvent, SourceSentence, SourceText, TargetText, Translation, TranslationLost
from ...errors import SinkError
from ...languages import same_language
from ..subtitles.bidi import RIGHT_TO_LEFT_MARK, harmless, right_to_left


class TerminalClosedError(SinkError):
    """The terminal that showed the subtitles is gone."""


@dataclass(frozen=True)
class Passage:
    """A sentence as shown."""

    start_s: float
    end_s: float
    source: str
    translations: tuple[tuple[str, str], ...] = ()
    """(language, text) in the order shown; the language is shown only if there are several."""
    steady: Mapping[str, int] = field(default_factory=dict)
    """Length of the text that is expected to stay, by language, "" for the source. Text that is not listed is final."""


@dataclass
class _Open:
    """A sentence that is not complete yet, or waits for one before it."""

    source: SourceText | SourceSentence
    translations: dict[str, TargetText | Translation] = field(default_factory=dict)

    def passage(self, languages: Sequence[str]) -> Passage:
        """The sentence with its translations into ``languages``; the text of one that has not begun is empty."""
        texts = {language: self.translations.get(language) for language in languages}
        steady = {language: text.steady for language, text in (("", self.source), *texts.items()) if text}
        shown = tuple((language, text.text if text else "") for language, text in texts.items())
        return Passage(self.source.start_s, self.source.end_s, self.source.text, shown, steady=steady)

    @property
    def closed(self) -> bool:
        return isinstance(self.source, SourceSentence)

    @property
    def blank(self) -> bool:
        """Whether nothing is left of it: a draft of noise was withdrawn."""
        return not self.closed and not self.source.text

    @property
    def finished(self) -> set[str]:
        return {language for language, text in self.translations.items() if isinstance(text, Translation)}


class TerminalSink:
    """Redraws the sentences in progress in place on a terminal; prints whole sentences elsewhere.

    Rejected transcripts are not shown, since their text may be invented; the summary of the run lists their times.
    """

    def __init__(
        self, console: Console, languages: Sequence[str] = (), rewritten: Sequence[str] = (), *, whole: bool = False
    ) -> None:
        """``languages``: those translated into, in the order shown. ``rewritten``: those that are what was said in another script.
        ``whole``: the texts of sentences are shown when they are final, and not before.

        By default, a sentence is complete with its first translation.
        """
        self._console, self._whole = console, whole
        # Check now: a closed terminal no longer says it is one. FORCE_COLOR does not make a file a terminal.
        self.is_terminal = console.file.isatty()
        self._order, self._rewritten = tuple(languages), tuple(rewritten)
        self._languages = list(languages)  # without those that were lost
        self._open: dict[int, _Open] = {}  # in order
        self._live: Live | None = None
        self._drawing = False  # whether the live display started; it cannot without a reader
        self._status = ""

    def show_status(self, line: str) -> None:
        """Show the run's status below the subtitles; terminals only."""
        if not self.is_terminal:
            return
        self._status = line
        with suppress(OSError, SystemExit):  # the next event reports it
            self._start()
            self._draw()

    def write(self, event: PipelineEvent) -> None:
        """Take one event.

        Raises:
            TerminalClosedError: the terminal is gone.
            SinkError, BrokenPipeError: the output cannot be written.
        """
        try:
            self._take(event)
        except BrokenPipeError:
            raise
        except SystemExit as error:  # raised by rich if the reader of a pipe is gone
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from error
        except OSError as error:
            if self.is_terminal:
                raise TerminalClosedError(f"cannot write to the terminal ({error.strerror})") from error
            raise SinkError(f"cannot write to standard output ({error.strerror})") from error

    def _take(self, event: PipelineEvent) -> None:
        self._start()
        match event:
            case SourceText() | TargetText() if self._whole:
                return
            case SourceText() | SourceSentence():
                self._open.setdefault(event.sentence, _Open(event)).source = event
            case TargetText(sentence=number) | Translation(sentence=number) if self._shows(event):
                self._open[number].translations[event.language] = event
            case TranslationLost(language) if language in self._languages:
                self._languages.remove(language)
            case EndOfInput():
                self._finish(everything=True)
                return
            case _:
                return
        self._draw()
        self._finish()

    def close(self) -> None:
        with suppress(OSError, SystemExit):  # closed, or its reader is gone: already reported
            self._finish(everything=True)
        with suppress(OSError, SystemExit):  # restores standard error even if nothing more can be drawn
            if self._live and self._drawing:
                self._live.stop()

    def _start(self) -> None:
        if self._live is None and self._console.is_terminal:
            # Started by the first event: until then, download progress bars draw on the same terminal. Text on standard
            # error is drawn above the display, unless one of the two is a file.
            redirect = self.is_terminal and sys.stderr is not None and sys.stderr.isatty()
            self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stderr=redirect)
            self._live.start()
            self._drawing = True

    def _draw(self) -> None:
        if self._live:
            growing = [
                drawn(self._passage(each, growing=True), growing=True) for each in self._open.values() if not each.blank
            ]
            status = [Text(self._status, style="dim", no_wrap=True, overflow="ellipsis")] if self._status else []
            self._live.update(Group(*growing, *status), refresh=True)

    def _passage(self, opened: _Open, *, growing: bool) -> Passage:
        """A sentence with its translations in the configured order; a growing one has a line for each from the start."""
        shown = {*opened.translations, *(self._expected(opened) if growing else ())}
        others = [language for language in opened.translations if language not in self._order]
        return opened.passage([*(language for language in self._order if language in shown), *others])

    def _expected(self, opened: _Open) -> list[str]:
        """The languages into which a sentence is translated."""
        return [language for language in self._languages if self._has_line(language, opened.source.language)]

    def _shows(self, event: TargetText | Translation) -> bool:
        """Whether a line is for the translation: what is in the language spoken is shown once, as it was said."""
        opened = self._open.get(event.sentence)
        return opened is not None and self._has_line(event.language, opened.source.language)

    def _has_line(self, language: str, spoken: str) -> bool:
        return not same_language(language, spoken) or language in self._rewritten

    def _finish(self, *, everything: bool = False) -> None:
        """Print the sentences that are complete, in order, permanently and continue below them."""
        numbers = list(self._open)[: None if everything else self._complete()]
        # A blank one may get text again, and then it comes after these.
        for number in [sentence for sentence in numbers if not self._open[sentence].blank]:
            passage = self._passage(self._open.pop(number), growing=False)
            self._draw()
            if self._console.is_terminal:
                self._console.print(drawn(passage, growing=False))
            else:
                self._console.out(plain(passage), highlight=False)

    def _complete(self) -> int:
        """Number of the sentences at the beginning to which nothing will be added.

        The source and each language come in the order of the sentences. So what a sentence lacks that a later one has was
        lost on a slow terminal.
        """
        count, closed, finished = 0, False, set[str]()
        for number, opened in reversed(list(enumerate(self._open.values(), 1))):
            if opened.blank:
                continue
            closed |= opened.closed
            finished |= opened.finished
            complete = closed and finished.issuperset(self._expected(opened)) and bool(finished or self._languages)
            if not complete:
                count = 0
            elif count == 0:
                count = number
        return count


def drawn(passage: Passage, growing: bool) -> Table:
    """A sentence as shown in a terminal: times, source, and below it the translation, with a cursor while growing.

    Text that is not steady is dim.
    """

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(overflow="fold")  # Chinese has no spaces to wrap at
    grid.add_row(_times(passage), _styled(passage.source or "…", passage.steady.get(""), "bright_black"))
    for language, translation in passage.translations or (("", ""),) * growing:
        label = Text(language, style="cyan") if len(passage.translations) > 1 else Text("")
        grid.add_row(
            label,
            _styled(translation, passage.steady.get(language), "bold") + Text(" ▌" if growing else "", style="cyan"),
        )
    return grid


def _styled(text: str, steady: int | None, style: str) -> Text:
    """``text`` for a terminal, dim after its first ``steady`` characters."""
    shown = Text(_shown(text), style=style)
    if steady is not None:
        marks = (len(shown) - len(harmless(text))) // 2  # direction marks at each end
        shown.stylize("not bold dim", marks + len(harmless(text[:steady])), len(shown) - marks)
    return shown


def plain(passage: Passage) -> str:
    """A sentence as lines of text for pipes and files, without direction marks."""
    times = f"{_times(passage)}  "
    several = len(passage.translations) > 1
    below = [f"{language}: {harmless(text)}" if several else harmless(text) for language, text in passage.translations]
    return "\n".join([f"{times}{harmless(passage.source) or '…'}", *(" " * len(times) + line for line in below)])


def _times(passage: Passage) -> str:
    return f"{_clock(passage.start_s)}–{_clock(passage.end_s)}"


def _shown(text: str) -> str:
    """``text`` for a terminal, in logical order, as terminals that lay out Arabic and Hebrew expect.

    Right-to-left marks at both ends place neutral characters there. No embeddings: terminals differ in handling them.
    """
    text = harmless(text)
    return f"{RIGHT_TO_LEFT_MARK}{text}{RIGHT_TO_LEFT_MARK}" if right_to_left(text) else text


def _clock(seconds: float) -> str:
    tenths = round(10 * seconds)
    return f"{tenths // 600:02}:{tenths % 600 // 10:02}.{tenths % 10}"

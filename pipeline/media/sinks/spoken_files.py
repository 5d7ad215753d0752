"""Files of what was said, with the times of its words: JSON and TSV as openai/whisper writes them, LRC, and ASS for karaoke."""

from __future__ import annotations

import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from ...core import EndOfInput, PipelineEvent, SourceSentence, Transcript, Word, trimmed_words
from ...languages import sets_sentences_apart, spaced
from ..subtitles import escapes
from ..subtitles.lines import layout
from ..subtitles.rules import SubtitleRules
from ..subtitles.spoken import whisper_segment, whisper_words, words_in_lines
from ..subtitles.text import is_cjk, normalized
from .ass import ass_event, ass_header
from .block_file import BlockFile

# Text that is longer waits for the end of the input in a temporary file.
_MOST_IN_MEMORY = 1 << 20


class _SpokenFile(ABC):
    """A file with one block per sentence. The languages translated into make no difference."""

    header = footer = ""

    def __init__(
        self, path: Path, rules: SubtitleRules, *, resume: bool = False, languages: Sequence[str] = ()
    ) -> None:
        self._file = BlockFile(path, self.header, self.footer, resume=resume)
        self._rules, self._resume = rules, resume
        self._speaker: str | None = None

    @abstractmethod
    def block(self, sentence: SourceSentence) -> str:
        """The text of one sentence that has some."""

    def write(self, event: PipelineEvent) -> None:
        self._file.begin()
        if isinstance(event, SourceSentence) and normalized(event.text):
            self._file.append(self.block(event))
        if isinstance(event, EndOfInput):
            self._file.finish()

    def close(self) -> None:
        self._file.close()

    def _named(self, sentence: SourceSentence) -> str:
        """The name of a new speaker, as it is before the text."""
        if sentence.speaker == self._speaker:
            return ""
        self._speaker = sentence.speaker
        return "" if sentence.speaker is None else sentence.speaker + ("：" if is_cjk(sentence.text) else ": ")


class TsvSink(_SpokenFile):
    """Tab-separated: start and end in milliseconds, and the text."""

    header = "start\tend\ttext\n"

    def block(self, sentence: SourceSentence) -> str:
        text = self._named(sentence) + normalized(sentence.text)
        return f"{round(1000 * sentence.start_s)}\t{round(1000 * sentence.end_s)}\t{text}\n"


class LrcSink(_SpokenFile):
    """Enhanced LRC: the time of each line in brackets, and that of each word in angle brackets."""

    def block(self, sentence: SourceSentence) -> str:
        words = trimmed_words(sentence)
        blank = " " if spaced(sentence.language) else ""
        text = blank.join(f"<{_lrc_time(word.start_s)}>{escapes.lrc(normalized(word.text))}" for word in words)
        name = escapes.lrc(normalized(self._named(sentence)))
        return f"[{_lrc_time(words[0].start_s)}]{name}{text}<{_lrc_time(words[-1].end_s)}>\n"


class KaraokeSink(_SpokenFile):
    """ASS in which each word lights up when it is said."""

    def __init__(
        self, path: Path, rules: SubtitleRules, *, resume: bool = False, languages: Sequence[str] = ()
    ) -> None:
        self.header = ass_header(("Source", 64, rules.position), unsaid="&H00909090")
        super().__init__(path, rules, resume=resume, languages=languages)

    def block(self, sentence: SourceSentence) -> str:
        cues = layout(normalized(sentence.text), self._rules)
        return "".join(self._event(sentence, lines) for lines in words_in_lines(sentence, cues))

    @staticmethod
    def _event(sentence: SourceSentence, lines: Sequence[Sequence[tuple[Word, str]]]) -> str:
        shown = []
        for line in lines:
            shown += [(word, escapes.ass(text)) for word, text in line]
            if line is not lines[-1]:
                word, text = shown.pop()
                shown.append((word, text + r"\N"))
        first, last = shown[0][0], shown[-1][0]
        ends_s = [*(word.start_s for word, _ in shown[1:]), last.end_s]
        begin_cs, text = _centiseconds(first.start_s), ""
        for (_, said), end_s in zip(shown, ends_s, strict=True):
            end = max(begin_cs, _centiseconds(end_s))
            text += rf"{{\k{end - begin_cs}}}{said}"
            begin_cs = end
        return ass_event(first.start_s, max(first.start_s, last.end_s), "Source", sentence.speaker, text)


class WhisperJsonSink(_SpokenFile):
    """The result of openai/whisper with the times of words: segments, then all text and the language of the first sentence.

    A file that was cut off has its segments.
    """

    header, footer = '{"segments": [\n', "\n]}\n"

    def __init__(
        self, path: Path, rules: SubtitleRules, *, resume: bool = False, languages: Sequence[str] = ()
    ) -> None:
        super().__init__(path, rules, resume=resume, languages=languages)
        self._count, self._language = 0, ""
        self._heard: list[Transcript] = []
        self._text = tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY, "w+", encoding="utf-8")  # noqa: SIM115

    def write(self, event: PipelineEvent) -> None:
        if isinstance(event, Transcript) and event.rejected is None:
            self._heard.append(event)
        super().write(event)
        if isinstance(event, EndOfInput):
            self._finish()

    def block(self, sentence: SourceSentence) -> str:
        # Sentences come in the order of their beginnings.
        self._heard = [transcript for transcript in self._heard if transcript.end_s > sentence.start_s]
        text = (" " if sets_sentences_apart(sentence.language) else "") + sentence.text
        segment = whisper_segment(self._count, sentence, text, self._heard) | {"words": whisper_words(sentence)}
        if sentence.speaker is not None:
            segment["speaker"] = sentence.speaker
        self._count += 1
        self._language = self._language or sentence.language
        self._text.write(text)
        return (",\n" if self._count > 1 else "") + json.dumps(segment, ensure_ascii=False)

    def close(self) -> None:
        try:
            if self._count and not self._resume:
                self._finish()
        finally:
            self._text.close()
            super().close()

    def _finish(self) -> None:
        self._text.seek(0)
        fields = {"text": self._text.read(), "language": self._language}
        self._file.finish("\n], " + json.dumps(fields, ensure_ascii=False)[1:] + "\n")


def _lrc_time(seconds: float) -> str:
    minutes, hundredths = divmod(_centiseconds(seconds), 6000)
    return f"{minutes:02}:{hundredths // 100:02}.{hundredths % 100:02}"


def _centiseconds(seconds: float) -> int:
    return max(0, round(100 * seconds))

"""Append-only translation of a sentence in progress: which target tokens are final, and the text that they make. Pure.

Committed tokens are forced in every later translation of the sentence, so what follows them may change and they may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import UsageError
from pipeline.events import Delta, SourceSentence, Translation
from pipeline.nmt.drafts import masked_length, whole_words
from pipeline.nmt.generation import OnStart, Token
from pipeline.run.drafts import DraftOptions
from pipeline.sentences.growing import GrowingText, TextChangeError, common_length

# A token is committed if at most this share of its attention is on what may still change: source tokens after the committed
# words, and the source's end token, which is attended where the sentence lacks something. Cf. AlignAtt (Papi, Turchi and
# Negri, 2023), which looks at the most attended position only. Measured with the demo's translator and head 1:0, 200 sentences
# of 10 to 20 words, the words committed 3 and drafted 1 after they were said: lag in words, chrF against the translation of the
# whole sentence, and share of the sentences of which nothing is committed before the end, most often because the first token
# attends to the end token: 0.1 5.0, 75 and 34 %, 0.15 4.8, 66 and 30 %, 0.2 4.6, 61 and 27 %, 0.3 4.3, 52 and 21 %; agreement
# 5.0, 63 and 8 %. If the first token's attention to the end token does not count: 0.05 5.0, 75 and 18 %, 0.1 4.7, 63 and 11 %,
# 0.2 4.1, 46 and 5 %; but on 20 longer sentences unlike the training 0.1 5.9 and 21, where 0.2 with it gives 6.0 and 35. On
# 108 s of such speech, means of four runs on a busy machine, StreamLAAL and chrF: 0.1 4.0 s and 76, 0.15 3.2 and 53, 0.2 2.4
# and 45, 0.3 2.5 and 42.
_UNCERTAIN_ATTENTION = 0.2
# Translations of different source texts that must agree (LocalAgreement-2: Liu, Spanakis and Niehues, 2020). On the same speech,
# with the default mask, 2 gave 3.4 s and 42; without a mask 2.8 s and 36.
_AGREEING = 2


@dataclass(frozen=True)
class CertainSource:
    """How much of one part of the source is committed."""

    tokens: int = 0
    """Number of source tokens at its beginning."""
    complete: bool = False
    """All of the part is committed, and so are words after it: nothing can be added to it."""


@dataclass(frozen=True)
class PartDraft:
    """The translation of one part of a sentence in progress."""

    tokens: tuple[Token, ...]
    """With the end token."""
    texts: tuple[str, ...]
    """The text of each token."""
    language: str
    certain: CertainSource | None = None
    """None: unknown."""
    attention: NDArray[np.float32] | None = None
    """Attention of the tokens after the committed ones over the source: [tokens, S]. None: the model does not tell."""


@dataclass(frozen=True)
class _Translated:
    """What is remembered of a translation of one part."""

    source: str
    """The committed text of the source."""
    text: str
    """The whole text of the source."""
    ids: tuple[int, ...]
    """Of the target, without the end token."""


class Commitment:
    """The committed tokens of one sentence's translation, part by part."""

    def __init__(self, options: DraftOptions | None = None) -> None:
        self._options = options or DraftOptions()
        self.source = ""
        """The committed text of the source. The caller sets it before each translation."""
        self.text = ""
        """The whole text of the source, as it is translated. The caller sets it too."""
        self._parts: list[tuple[Token, ...]] = []
        self._drafts: list[list[_Translated]] = []
        """For each part, the newest translations of different source texts."""

    def tokens(self, part: int) -> tuple[Token, ...]:
        """The committed tokens of a part, counted from 0. The last is the end token if the part is complete."""
        return self._parts[part] if part < len(self._parts) else ()

    def laid_out(self, sources: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """A source for each part that is to be translated.

        If the source has fewer parts than are committed, because its sentences are divided otherwise than before, the
        last one stands for all that follow; () if there is none.
        """
        missing = len(self._parts) - len(sources)
        return [*sources, *([sources[-1] if sources else ()] * missing)]

    def push(self, part: int, draft: PartDraft) -> int:
        """Take the newest translation of a part; return how many of its tokens are committed now.

        A part is only committed when the ones before it are complete. A translation that was cut commits nothing.
        """
        before = len(self.tokens(part))
        if draft.tokens[-1].truncated or not all(_complete(self.tokens(other)) for other in range(part)):
            return before
        complete = draft.certain is not None and draft.certain.complete
        found = len(draft.tokens) if complete else self._certain_tokens(part, draft, before)
        if found > before:
            self._parts[part : part + 1] = [draft.tokens[:found]]
        return max(before, found)

    def _certain_tokens(self, part: int, draft: PartDraft, before: int) -> int:
        agreed = self._agreed_tokens(part, draft)
        if draft.attention is None or draft.certain is None:
            count = agreed
        else:
            count = before + attending(draft.attention, draft.certain.tokens)
        return whole_tokens(draft.texts, count, draft.language)

    def _agreed_tokens(self, part: int, draft: PartDraft) -> int:
        """How many tokens the newest translations of different source texts share, without the last words."""
        while len(self._drafts) <= part:
            self._drafts.append([])
        ids = tuple(token.id for token in draft.tokens[:-1])
        # The same text has the same translation, however much of the text is committed.
        others = [one for one in self._drafts[part] if one.source != self.source and one.text != self.text]
        newest = [*others, _Translated(self.source, self.text, ids)][-_AGREEING:]
        self._drafts[part] = newest
        if len(newest) < _AGREEING:
            return 0
        shared = min(common_length(one.ids, ids) for one in newest)
        options = self._options
        length = masked_length("".join(draft.texts), draft.language, options.mask_words, options.mask_characters)
        return min(shared, _tokens_within(draft.texts, length))


def certain_sources(sources: Sequence[tuple[int, ...]], committed: Sequence[tuple[int, ...]]) -> list[CertainSource]:
    """How much of each part of a source is committed. Both are ids by part, with end tokens; ``committed`` of its beginning."""
    found = []
    for part, source in enumerate(sources):
        known = committed[part] if part < len(committed) else ()
        tokens = common_length(source[:-1], known[:-1])
        found.append(CertainSource(tokens, complete=known == source and part < len(committed) - 1))
    return found


def attending(attention: NDArray[np.float32], certain: int) -> int:
    """How many tokens in a row attend to the first ``certain`` source tokens; see ``_UNCERTAIN_ATTENTION``.

    ``attention``: [tokens, S], each row sums to 1.
    """
    uncertain = attention[:, certain:].sum(axis=1) > _UNCERTAIN_ATTENTION
    return int(np.argmax(uncertain)) if uncertain.any() else len(attention)


def whole_tokens(texts: Sequence[str], count: int, language: str) -> int:
    """The greatest number of tokens, up to ``count``, that ends with a whole word and not with the marks at the end.

    ``texts``: the text of each token of an unfinished sentence, whose last word may go on.
    """
    whole = "".join(texts)
    words = len(whole)
    while words and not whole[words - 1].isalnum():
        words -= 1
    count = min(count, _tokens_within(texts, words))
    while count:
        end = len("".join(texts[:count]))
        # A token without text may be a part of the next character.
        if texts[count - 1] and whole_words(whole[:words] + "x", end, language) == end:
            break
        count -= 1
    return count


def _tokens_within(texts: Sequence[str], length: int) -> int:
    """How many tokens have a text that ends within ``length`` characters."""
    count = end = 0
    for text in texts:
        end += len(text)
        if end > length:
            break
        count += 1
    return count


def _complete(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and tokens[-1].last


@runtime_checkable
class AppendingTranslator(Protocol):
    """A translator that can commit the beginning of a translation; see ``MarianModel.append``."""

    def append(
        self,
        sentence: SourceSentence,
        commitment: Commitment,
        target: str | None,
        on_start: OnStart | None = None,
        beams: int | None = None,
        draft: bool = False,
    ) -> Iterator[Delta | Translation]: ...


def appending(translator: object, target: str | None) -> AppendingTranslator:
    """``translator``, if it can commit words.

    Raises:
        UsageError: it cannot.
    """
    if isinstance(translator, AppendingTranslator):
        return translator
    raise UsageError(
        f'[drafts] commit is "word", but the translator into {target or "the target language"} '
        f"({type(translator).__name__}) cannot go on from committed words: it has no method append, as MarianModel has; "
        'set commit = "sentence", or use another translator'
    )


def appended(
    shown: GrowingText, events: Iterator[Delta | Translation], *, final: bool
) -> Iterator[Delta | Translation]:
    """The events of a translation as one change of ``shown``, which appends what is newly committed.

    The change has the log-probabilities of the tokens whose text it completes. Without new committed text there is
    none, unless the translation is ``final``: then its ``Translation`` follows.

    Raises:
        TextChangeError: the translation does not begin with ``shown``.
    """
    text, before = GrowingText(), len(shown)
    waiting: list[tuple[int, Delta]] = []  # (length of the text up to the token's end, the token's change)
    for event in events:
        if isinstance(event, Translation):
            if final:
                _check_kept(shown.text, event.text)
                yield event
            continue
        text.apply(replace(event, committed=0))
        waiting = [(end, token) for end, token in waiting if end <= len(text) - len(event.text)]
        waiting.append((len(text), event))
        if not event.complete or not (final or event.committed > before):
            continue
        _check_kept(shown.text, text.text)
        told = [token for end, token in waiting if before < end <= event.committed or (final and token is event)]
        yield replace(
            event,
            text=text.text[before : event.committed],
            withdrawn=0,
            token=told[0].token if len(told) == 1 else None,
            log_probability=sum(token.log_probability for token in told),
        )


def _check_kept(committed: str, text: str) -> None:
    if not text.startswith(committed):
        raise TextChangeError(
            f"the translation {text!r} does not begin with the committed text {committed!r}, which must not change"
        )

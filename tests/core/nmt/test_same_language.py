"""Captions in the language that is spoken: the transcript, at once, beside translations."""

import asyncio
import pickle
from dataclasses import replace

import numpy as np
import pytest

from pipeline import EndOfInput, PipelineEvent, Translation
from pipeline.core.nmt.same_language import SameLanguageStage, SameLanguageText
from pipeline.core.nmt.stage import NmtContext
from pipeline.core.nmt.targets import TranslationStage
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.core.run.stats import PipelineStats
from pipeline.errors import UsageError
from pipeline.events import SAMPLE_RATE, SourceSentence, SourceText, SpeechSegment, TargetText, Word
from tests.conftest import HANG_S

SAID = SourceSentence(0, "en", "So they say.", 0.0, 2.0, 2.5)
GROWING = [
    SourceText(0, "en", "So there", steady=2, heard_s=1.0),
    SourceText(0, "en", "So they say", steady=7, heard_s=2.0),
    SourceText(0, "en", "So they say.", steady=12, heard_s=2.5),
    SAID,
]


def translated(models, texts, *, live):
    """What the stage adds to these texts."""

    async def work():
        inbox: asyncio.Queue[SourceText | SourceSentence | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue()
        for each in (*texts, EndOfInput()):
            inbox.put_nowait(each)
        async with asyncio.timeout(HANG_S):
            await TranslationStage(models, inbox, outbox, NmtContext(lambda: live)).run()
        return [
            event for _ in range(outbox.qsize()) if isinstance(event := outbox.get_nowait(), TargetText | Translation)
        ]

    return asyncio.run(work())


def test_text_that_becomes_steady_is_put_out_though_it_is_the_same():
    texts = [replace(GROWING[0], steady=steady) for steady in (2, 8)]
    found = translated({"en-GB": SameLanguageText("en-GB")}, texts, live=True)
    assert [(each.text, each.steady) for each in found if isinstance(each, TargetText)] == [
        ("So there", 2),
        ("So there", 8),
    ]


def test_the_text_of_the_source_is_that_of_the_captions():
    found = translated({"en-GB": SameLanguageText("en-GB")}, GROWING, live=True)
    assert [(each.text, each.steady) for each in found if isinstance(each, TargetText)] == [
        ("So there", 2),
        ("So they say", 7),
        ("So they say.", 12),
        ("So they say.", 12),
    ]
    assert [each.heard_s for each in found] == [1.0, 2.0, 2.5, 2.5, 2.5]
    assert found[-1] == Translation(0, "en-GB", SAID.text, heard_s=2.5)


def test_a_recordings_captions_come_with_each_sentence():
    words = (Word(" So", 0.0, 1.0), Word(" they", 1.0, 1.5), Word(" say.", 1.5, 2.0))
    said = SourceSentence(0, "en", SAID.text, 0.0, 2.0, 2.5, words)
    found = translated({"en": SameLanguageText("en")}, [*GROWING[:-1], said], live=False)
    assert [each.text for each in found] == ["So", "So they", SAID.text, SAID.text]
    *_, whole, _ = found
    assert [token.end for token in whole.tokens] == [2, 7, 12]  # the words are places to break at
    assert [each.steady for each in found] == [0, 0, 12, 12]


@pytest.mark.parametrize("live", [True, False])
def test_chinese_is_written_in_the_script_of_the_target(live):
    said = [
        SourceText(0, "zh", "头", steady=1, heard_s=1.0),
        SourceText(0, "zh", "头发很干。", steady=5, heard_s=2.0),
        SourceSentence(0, "zh", "头发很干。", 0.0, 2.0, 2.0),
    ]
    found = translated({"zh-TW": SameLanguageText("zh-TW")}, said, live=live)
    *_, shown, end = found
    assert shown.steady_text == shown.text == "頭髮很乾。"
    assert end == Translation(0, "zh-TW", "頭髮很乾。", heard_s=2.0)


def test_a_script_that_cannot_be_written_is_refused():
    with pytest.raises(UsageError, match="in the script Cyrl, as 'en-Cyrl' asks"):
        SameLanguageText("en-Cyrl")


async def test_text_that_is_heard_again_as_it_was_leaves_no_lag():
    stats = PipelineStats(2 * SAMPLE_RATE, 9 * SAMPLE_RATE, languages={"en"}, clock=lambda: 9.0)
    stats.spoken_from(0.0)
    stats.segment_closed(SpeechSegment(0, 0, np.zeros(2 * SAMPLE_RATE, np.int16)))
    stats.audio_samples = stats.received_samples
    inbox: asyncio.Queue[SourceText | SourceSentence | EndOfInput] = asyncio.Queue()
    for each in (GROWING[0], replace(GROWING[0], heard_s=2.0), EndOfInput()):
        inbox.put_nowait(each)
    assert stats.lag_s == 7.0
    await SameLanguageStage(SameLanguageText("en"), inbox, asyncio.Queue(), "en", stats).run()
    assert stats.lag_s == 0.0


async def test_what_is_kept_does_not_grow_with_the_run():
    inbox: asyncio.Queue[SourceText | SourceSentence | EndOfInput] = asyncio.Queue()
    stage = SameLanguageStage(SameLanguageText("en"), inbox, asyncio.Queue(), "en", PipelineStats())
    kept = []
    for number in range(20):
        for each in GROWING:
            inbox.put_nowait(replace(each, sentence=number))
        inbox.put_nowait(EndOfInput())
        await stage.run()
        kept.append(len(pickle.dumps((stage._sources, stage._shown))))
    assert kept == kept[:1] * 20


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        ((" So", " they", " say. "), [2, 7, 12]),
        ((" So", " they", " said."), [12]),  # the words of another text
        ((" So they say.",), [12]),
        ((), [12]),
    ],
)
def test_a_caption_has_a_token_for_each_word_of_its_text(words, ends):
    said = replace(SAID, words=tuple(Word(word, 0.0, 1.0) for word in words))
    *texts, end = SameLanguageText("en").stream(TranslationRequest(said, "en"))
    assert [token.end for token in texts[-1].tokens] == ends
    assert [text.text for text in texts] == [SAID.text[:at] for at in ends]
    assert [(text.steady, text.complete) for text in texts] == [*[(0, False)] * (len(ends) - 1), (12, True)]
    assert end.text == SAID.text


@pytest.mark.parametrize(("target", "steady"), [("zh", 1), ("zh-TW", 0)])
def test_a_draft_in_other_characters_is_steady_with_its_sentence(target, steady):
    (draft,) = translated({target: SameLanguageText(target)}, [SourceText(0, "zh", "头发", steady=1)], live=True)
    assert (draft.text, draft.steady) == ({"zh": "头发", "zh-TW": "頭髮"}[target], steady)


class Echo:
    """Remembers with which texts before it each is to be translated."""

    def __init__(self):
        self.asked = []

    def stream(self, request):
        self.asked.append((request.sentence.text, request.before))
        yield TargetText(request.sentence.sentence, request.target, "Sim.", 4, complete=True)
        yield Translation(request.sentence.sentence, request.target, "Sim.")


@pytest.mark.parametrize("live", [False, True])
def test_a_caption_of_a_sound_is_the_label_of_each_language(live):
    music = SourceSentence(0, "en", "[music]", 0.0, 3.0, 4.5, sound="music")
    said, translator = SourceSentence(1, "en", "Yes.", 5.0, 6.0, 6.5), Echo()

    async def work():
        inbox, outbox = asyncio.Queue(), asyncio.Queue()
        for each in (music, said, EndOfInput()):
            inbox.put_nowait(each)
        context = NmtContext(lambda: live)
        await TranslationStage({"pt-BR": translator, "en-GB": SameLanguageText("en-GB")}, inbox, outbox, context).run()
        return [outbox.get_nowait() for _ in range(outbox.qsize())]

    events = [each for each in asyncio.run(work()) if isinstance(each, TargetText | Translation)]
    found = [each for each in events if each.sentence == 0]
    assert {(type(each), each.language, each.text, each.steady, each.heard_s) for each in found} == {
        (kind, language, text, len(text), 4.5)
        for kind in (TargetText, Translation)
        for language, text in (("pt-BR", "[música]"), ("en-GB", "[music]"))
    }
    assert len(found) == 4
    assert translator.asked == [("Yes.", ())]

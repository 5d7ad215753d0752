"""Cues from sentences and their translations: their texts and times."""

import re
from dataclasses import replace
from itertools import chain, count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.sentences.assembler import SentenceAssembler
from pipeline.events import EndOfInput, Pause, PipelineEvent, SourceSentence, Transcript, Translation, Word
from pipeline.media.subtitles.cues import Cue, CueBuilder
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.media.subtitles.text import normalized, reading_ms
from tests.media.subtitles.strategies import RULES, TEXTS
from tests.streams import spoken, streams, translated

DEFAULT = SubtitleRules()


Events = list[PipelineEvent]
_numbers = count()  # sentences are in order, across tests too


def sentence(
    text: str,
    start_s: float,
    end_s: float,
    *,
    source: str = "source",
    before_pause: bool = True,
    words: tuple[Word, ...] = (),
) -> Events:
    """A sentence and its translation, a token for each character."""
    number = next(_numbers)
    said = spoken(number, source, start_s, end_s, words=words, before_pause=before_pause)
    return [*said, *translated(number, text)]


def pushed(builder: CueBuilder, events: Events) -> list[Cue]:
    return [cue for event in events for cue in builder.push(event)]


def built(sentences: list[Events], rules: SubtitleRules = DEFAULT) -> list[Cue]:
    return pushed(CueBuilder(rules), [*chain(*sentences), EndOfInput()])


def times(cues: list[Cue]) -> list[tuple[float, float]]:
    return [(cue.start_s, cue.end_s) for cue in cues]


@st.composite
def runs(draw: st.DrawFn) -> list[Events]:
    """Sentences in order, some overlapping a little, some without text, of any length, and with pauses or without."""
    sentences: list[Events] = []
    at = 0.0
    for _ in range(draw(st.integers(1, 8))):
        start = max(0.0, at + draw(st.floats(-0.5, 3)))
        at = start + draw(st.one_of(st.floats(1, 2), st.floats(0, 12)))  # including fast speech
        text, source = draw(TEXTS), draw(TEXTS)
        sentences.append(sentence(text, start, at, source=source, before_pause=draw(st.booleans())))
    return sentences


@given(runs(), RULES)
def test_durations_and_gaps_are_kept_and_cues_never_go_back(said, rules):
    cues = built(said, rules)
    assert [cue.index for cue in cues] == list(range(1, len(cues) + 1))
    for cue in cues:
        duration_ms = round(1000 * (cue.end_s - cue.start_s))
        assert rules.min_duration_ms <= duration_ms <= rules.max_duration_ms
        assert len(cue.lines) <= rules.max_lines
        assert len(cue.source_lines) <= rules.max_lines
    for before, after in pairwise(cues):
        assert round(1000 * (after.start_s - before.end_s)) >= rules.gap_ms


@given(TEXTS.filter(normalized), st.floats(1, 60))
def test_the_screen_is_not_empty_while_a_sentence_is_spoken_but_after_the_longest_cues(text, spoken_s):
    cues = built([sentence(text, 5.0, 5.0 + spoken_s)])
    ends_s = [cue.end_s for cue in cues]
    starts_s = [*(cue.start_s for cue in cues[1:]), 5.0 + spoken_s]
    for cue, end_s, start_s in zip(cues, ends_s, starts_s, strict=True):
        longest = round(1000 * (cue.end_s - cue.start_s)) == DEFAULT.max_duration_ms
        assert longest or start_s - end_s < (DEFAULT.gap_ms + 2) / 1000


@given(runs(), RULES)
def test_no_text_is_lost(said, rules):
    text = "".join(event.text for event in chain(*said) if isinstance(event, Translation))
    shown = "".join(line for cue in built(said, rules) for line in cue.lines)
    assert "".join(shown.split()) == "".join(normalized(text).split())


@given(runs(), RULES)
def test_a_cue_stands_long_enough_to_be_read_unless_a_limit_ends_it(said, rules):
    builder = CueBuilder(rules)
    for events in said:
        _, source, *_, last = events
        assert isinstance(source, SourceSentence)
        assert isinstance(last, Translation)
        cues = pushed(builder, events)
        cues += builder.flush() if source.before_pause else []
        if source.before_pause and normalized(last.text).strip():
            cue = cues[-1]  # of this sentence, and perhaps of a short one before it
            duration_ms = round(1000 * (cue.end_s - cue.start_s))
            if duration_ms < max(reading_ms("".join(lines), rules) for lines in (cue.lines, cue.source_lines)):
                assert (
                    duration_ms in (rules.max_duration_ms, rules.min_duration_ms)
                    # Lingering starts when the speech has ended.
                    or 1000 * cue.end_s >= 1000 * source.end_s + rules.linger_ms - 1
                )


@given(runs(), RULES, st.integers(0, 60))
def test_a_cue_does_not_depend_on_later_events(said, rules, known):
    early = pushed(CueBuilder(rules), list(chain(*said))[:known])
    assert built(said, rules)[: len(early)] == early


def test_a_sentence_is_a_cue_when_its_translation_is_finished():
    builder = CueBuilder(DEFAULT)
    *before, finished = sentence("你好。", 1.0, 2.0)
    assert pushed(builder, [Transcript(0, 1.0, 2.0, "source", "en"), *before]) == []
    assert builder.push(finished) == [Cue(1, 1.0, 2.0, ("你好。",))]


@given(streams(TEXTS), RULES)
def test_drafts_and_other_languages_do_not_change_the_cues(stream, rules):
    """The same cues as from the final texts of one language."""
    alone = [
        event
        for event in stream.events
        if isinstance(event, SourceSentence | Translation) and event.language in ("en", "zh")
    ]
    once = CueBuilder(rules, "zh")
    expected = pushed(once, [*alone, EndOfInput()])
    found = pushed(CueBuilder(rules, "zh"), stream.events)
    # Seams between tokens differ, and with them the lines.
    shown, wanted = ("".join("".join(line for cue in cues for line in cue.lines).split()) for cues in (found, expected))
    assert shown == wanted
    assert {cue.language for cue in found} <= {"zh"}


def test_a_sentence_without_text_is_no_cue():
    assert [cue.index for cue in built([sentence("", 1, 2), sentence(" ", 2, 3), sentence("字", 4, 5)])] == [1]


def test_a_cue_that_takes_longer_to_read_than_to_say_lingers():
    # 18 characters take two seconds at nine a second.
    assert times(built([sentence("字" * 18, 1.0, 2.5)])) == [(1.0, 3.0)]
    assert times(built([sentence("字" * 18, 1.0, 2.5)], SubtitleRules(linger_ms=200))) == [(1.0, 2.7)]


def test_the_next_cue_waits_for_one_that_lingers_and_pauses_catch_up():
    cues = built([sentence("字" * 18, 1.0, 2.0), sentence("字", 2.5, 4.0), sentence("字", 6.0, 7.0)])
    assert times(cues) == [(1.0, 3.0), (3.083, 4.0), (6.0, 7.0)]


def test_a_short_answer_shares_a_cue_with_what_follows_without_a_pause():
    cues = built([sentence("好。", 1.0, 1.4, before_pause=False), sentence("我们走吧。", 1.4, 3.0)])
    assert [(cue.lines, cue.start_s, cue.end_s) for cue in cues] == [(("好。我们走吧。",), 1.0, 3.0)]
    cues = built([sentence("Yes.", 1.0, 1.4, before_pause=False), sentence("Let us go.", 1.4, 3.0)])
    assert cues[0].lines == ("Yes. Let us go.",)


def test_a_short_answer_before_a_pause_is_shown_at_once_for_the_least_time():
    builder = CueBuilder(DEFAULT)
    assert pushed(builder, sentence("好。", 1.0, 1.2)) == [Cue(1, 1.0, 1.833, ("好。",))]


def test_a_short_answer_does_not_share_a_cue_over_a_long_pause():
    builder = CueBuilder(DEFAULT)
    assert pushed(builder, sentence("Yes.", 10.0, 10.4, before_pause=False)) == []
    shown, later = pushed(builder, sentence("No, never.", 12.4, 13.9))
    assert (shown.lines, shown.start_s, shown.end_s) == (("Yes.",), 10.0, 10.833)
    assert (later.lines, later.start_s) == (("No, never.",), 12.4)
    both = built([sentence("Yes.", 10.0, 10.4, before_pause=False), sentence("No, never.", 12.3, 13.9)])
    assert [cue.lines for cue in both] == [("Yes. No, never.",)]


def test_short_utterances_spoken_steadily_do_not_fall_behind_without_end():
    """Each sentence is shorter than its cue: 0.78 s, while a cue takes 0.92 s."""
    said = [0.78 * n for n in range(150)]
    cues = built([sentence(f"{n};", start, start + 0.26) for n, start in enumerate(said)])
    shown = {int(number): cue.start_s for cue in cues for line in cue.lines for number in line.split(";") if number}
    assert list(shown) == list(range(150))
    assert max(shown[n] - start for n, start in enumerate(said)) < 4


@pytest.mark.parametrize(("start_s", "waits"), [(1.083, False), (1.082, True)])
def test_a_short_sentence_waits_over_a_pause_if_its_cue_would_be_later_than_others_linger(start_s, waits):
    builder = CueBuilder(DEFAULT)
    assert times(pushed(builder, sentence("字" * 32, 0.0, 1.0))) == [(0.0, 3.0)]
    assert times(pushed(builder, sentence("好。", start_s, start_s + 0.3))) == ([] if waits else [(3.083, 3.916)])


def test_two_short_sentences_share_a_cue_if_they_are_short_together():
    rules = SubtitleRules(max_duration_ms=2_000)
    for end_s, cues in ((3.0, [("好。走吧。",)]), (3.1, [("好。",), ("走吧。",)])):
        said = [sentence("好。", 1.0, 1.4, before_pause=False), sentence("走吧。", 1.5, end_s)]
        assert [cue.lines for cue in built(said, rules)] == cues


def test_a_cue_names_the_language_of_a_source_that_it_shows():
    for bilingual, language in ((True, "en"), (False, "")):
        (cue,) = built([sentence("好。", 1.0, 2.0)], SubtitleRules(bilingual=bilingual))
        assert cue.source_language == language


def test_a_short_answer_before_a_long_sentence_is_a_cue_of_its_own():
    cues = built([sentence("好。", 1.0, 1.4, before_pause=False), sentence("字" * 40, 1.4, 8.0)])
    assert cues[0].lines == ("好。",)
    assert len(cues) == 3


def test_long_speech_is_shown_in_cues_of_its_own_pace():
    text = "我妹妹明天早上将在北京介绍新产品，经理和司机都会来，请不要迟到。"
    cues = built([sentence(text, 10.0, 20.0)])
    assert len(cues) == 2
    assert cues[0].start_s == 10.0
    assert cues[1].end_s == 20.0
    assert round(cues[1].start_s - cues[0].end_s, 3) == 0.083
    first, second = ("".join(cue.lines) for cue in cues)
    assert cues[1].start_s == pytest.approx(10 + 10 * len(first) / len(first + second), abs=0.001), "not late"
    # Slow speech with little text: split at a clause if there is one …
    slow = built([sentence("首先我要说的是，谢谢大家。", 0.0, 12.0)])
    assert [cue.lines for cue in slow] == [("首先我要说的是，",), ("谢谢大家。",)]
    # … else the cue ends before the speech: the same text again would look like a flicker.
    assert built([sentence("好的", 0.0, 12.0)]) == [Cue(1, 0.0, 7.0, ("好的",))]


def test_both_languages_keep_the_rules_of_lines():
    source = "My sister will present the new product in Beijing tomorrow morning, and the manager and the driver will both come."
    cues = built([sentence("我妹妹明天介绍产品，大家都来。", 0.0, 6.0, source=source)], SubtitleRules(bilingual=True))
    assert len(cues) == 2
    assert [cue.lines for cue in cues] == [("我妹妹明天介绍产品，",), ("大家都来。",)]
    assert " ".join(line for cue in cues for line in cue.source_lines) == source
    assert all(len(line) <= 42 for cue in cues for line in cue.source_lines)


def test_both_languages_can_be_read_at_their_speed():
    source = "And Mr. John Dashwood had then leisure to consider how much there might be prudently in his power to do for them."
    text = "E o Sr. John Dashwood tinha então descansadamente para considerar o quanto poderia haver prudentemente em seu poder."
    cues = built([sentence(text, 0.0, 8.66, source=source)], SubtitleRules(bilingual=True))
    assert len(cues) == 2
    for cue in cues:
        for lines in (cue.lines, cue.source_lines):
            assert len("".join(lines)) / (cue.end_s - cue.start_s) <= 17
    # A short translation stays as long as its source takes to read.
    (cue,) = built(
        [sentence("好的。", 0.0, 1.0, source="Yes, of course, all right then.")], SubtitleRules(bilingual=True)
    )
    assert cue.end_s == pytest.approx(31 / 17, abs=0.001)


def test_japanese_has_shorter_lines_and_more_time_than_chinese():
    (japanese,) = built([sentence("明日の会議で新しい製品を紹介します。", 0.0, 4.0)])
    assert all(len(line) <= 13 for line in japanese.lines)
    assert len(japanese.lines) == 2
    assert japanese.end_s == 4.5  # 18 characters at 4 a second
    (chinese,) = built([sentence("明天的会议上将介绍新产品。", 0.0, 1.0)])
    assert (len(chinese.lines), chinese.end_s) == (1, pytest.approx(13 / 9, abs=0.001))


def test_a_translation_with_no_place_to_break_still_shows_the_whole_source():
    source = "This long source sentence goes on and on, and nobody knows why it should need so many words to say yes."
    cues = built([sentence("Ja", 0.0, 6.0, source=source)], SubtitleRules(bilingual=True))
    assert [cue.lines for cue in cues] == [("Ja",), ()]
    assert " ".join(line for cue in cues for line in cue.source_lines) == source


def test_bilingual_cues_show_captions_in_the_language_spoken_once():
    number = next(_numbers)
    said = [*spoken(number, "So it is.", 0.0, 2.0), *translated(number, ["So it is."], language="en")]
    assert [(cue.lines, cue.source_lines) for cue in built([said], SubtitleRules(bilingual=True))] == [
        (("So it is.",), ())
    ]


def test_bilingual_cues_show_a_source_without_translation():
    said = [
        sentence("", 0.0, 2.0, source="Hm, hm, hm."),
        sentence("", 3.0, 3.2, source="Ah.", before_pause=False),
        sentence("好的。", 3.2, 6.0, source="All right."),
    ]
    cues = built(said, SubtitleRules(bilingual=True))
    assert [(cue.lines, cue.source_lines) for cue in cues] == [
        ((), ("Hm, hm, hm.",)),
        (("好的。",), ("Ah. All right.",)),
    ]
    assert times(cues) == [(0.0, 2.0), (3.0, 6.0)]
    assert [cue.lines for cue in built(said)] == [("好的。",)]


def in_words(text: str, start_s: float, end_s: float) -> tuple[Word, ...]:
    """The words of ``text``, all equally long."""
    pieces = re.findall(r"\S+\s*", text)
    each_s = (end_s - start_s) / len(pieces)
    return tuple(Word(piece, start_s + each_s * at, start_s + each_s * (at + 1)) for at, piece in enumerate(pieces))


def test_the_cues_of_a_sentence_with_a_pause_follow_its_words():
    words = (
        *in_words("In the morning ", 10.0, 11.5),
        *in_words("we leave at eight and arrive before dark.", 13.4, 17.4),
    )
    source = "".join(word.text for word in words)
    text = "我们今天早上八点从家里出发，晚上七点以前会到达罗马火车站。"
    rules = SubtitleRules(max_lines=1)
    first, second = built([sentence(text, 10.0, 17.4, source=source, words=words)], rules)
    assert (first.lines, second.lines) == (("我们今天早上八点从家里出发，",), ("晚上七点以前会到达罗马火车站。",))
    # 14 of 29 characters are in the first cue; as much of the source has been said in "eight".
    assert (first.start_s, second.start_s, second.end_s) == (10.0, words[6].start_s, 17.4)
    # Without word times the text is divided evenly: during the pause.
    _, evenly = built([sentence(text, 10.0, 17.4, source=source)], rules)
    assert evenly.start_s == pytest.approx(10 + 7.4 * 14 / 29, abs=0.001)


@st.composite
def talks(draw: st.DrawFn) -> tuple[Events, list[tuple[float, float]]]:
    """Sentences as the assembler makes them of segments with word times and of pauses, with translations of any length;
    and the pauses of 2 s or more."""
    assembler, events = SentenceAssembler(), Events()
    pauses: list[tuple[float, float]] = []
    at_s = 1.0
    for number in range(draw(st.integers(1, 6))):
        start_s, words = at_s, []
        for text in draw(st.lists(st.sampled_from([" so", " leave", " it,", " there.", " 3.5", " Dr."]), min_size=1)):
            words.append(Word(text, at_s, at_s + draw(st.sampled_from([0.125, 0.5]))))
            at_s = words[-1].end_s
        text = "".join(word.text for word in words).strip()
        heard = Transcript(number, start_s - 0.25, at_s + 0.25, text, "en", speech_end_s=at_s, words=tuple(words))
        pause_s = draw(st.sampled_from([0.5, 1.0, 1.75, 2.0, 6.0]))
        events += assembler.push(heard)
        for limit_s in (1.5, 2.0):
            events += assembler.pause(Pause(at_s, limit_s)) if limit_s <= pause_s else []
        if pause_s >= 2:
            pauses.append((at_s, at_s + pause_s))
        at_s += pause_s
    events += assembler.end()
    texts = st.integers(0, 40).map("字".__mul__)
    with_translations = [
        each
        for event in events
        for each in (event, *(translated(event.sentence, draw(texts)) if isinstance(event, SourceSentence) else ()))
    ]
    return with_translations, pauses


@pytest.mark.slow
@given(talks(), RULES, st.integers(0, 2_000))
def test_no_cue_spans_a_long_pause(talk, rules, linger_ms):
    events, pauses = talk
    cues = built([events], replace(rules, linger_ms=linger_ms))
    for begin_s, end_s in pauses:
        assert not [cue for cue in cues if cue.start_s < begin_s and cue.end_s > end_s + 0.001]


def by(speaker: str | None, *events: PipelineEvent) -> Events:
    return [replace(event, speaker=speaker) if isinstance(event, SourceSentence) else event for event in events]


def test_a_cue_has_one_speaker():
    short = [sentence(text, 2 * n, 2 * n + 0.3, before_pause=False) for n, text in enumerate(("Sim.", "Não.", "Bem."))]
    assert [cue.lines for cue in built(short)] == [("Sim. Não.",), ("Bem.",)]
    said = [by(name, *events) for name, events in zip(("Ana", "Ben", "Ben"), short, strict=True)]
    assert [(cue.speaker, cue.lines) for cue in built(said)] == [("Ana", ("Sim.",)), ("Ben", ("Não. Bem.",))]


def test_a_text_names_its_speaker_where_that_changes():
    texts = (("Ana", "O avião chega."), ("Ana", "Às sete."), ("Ben", "Onde?"), ("张伟", "在柏林。"), (None, "Fim."))
    said = [by(name, *sentence(text, 5 * n, 5 * n + 2)) for n, (name, text) in enumerate(texts)]
    cues = pushed(CueBuilder(DEFAULT, named=True), [*chain(*said), EndOfInput()])
    assert [cue.lines for cue in cues] == [
        *(("Ana: O avião chega.",), ("Às sete.",), ("Ben: Onde?",), ("张伟：在柏林。",), ("Fim.",))
    ]
    long = by("Ana", *sentence("uma palavra e mais uma " * 8, 40, 60))
    for cue in pushed(CueBuilder(DEFAULT, named=True), long):
        assert max(map(len, cue.lines)) <= DEFAULT.line_columns


@given(runs(), RULES, st.lists(st.sampled_from(["Ana", "Ben", None]), min_size=8, max_size=8))
def test_no_cue_mixes_speakers(said, rules, names):
    whole = [by(name, *events) for name, events in zip(names, said, strict=False)]
    texts = dict.fromkeys(names, "")
    for cue in built(whole, rules):
        texts[cue.speaker] += "".join(cue.lines)
    for name in texts:
        own = [event for events, by_whom in zip(said, names, strict=False) if by_whom == name for event in events]
        text = "".join(event.text for event in own if isinstance(event, Translation))
        assert "".join(texts[name].split()) == "".join(normalized(text).split())


def test_a_translation_whose_source_was_not_seen_is_left_out():
    builder = CueBuilder(DEFAULT)
    unseen = translated(next(_numbers), "Ohne Quelle.")
    said, written = (following := sentence("Mit Quelle.", 4.0, 6.0))[:2], following[2:]
    assert [cue.lines for cue in pushed(builder, [*said, *unseen, *written])] == [("Mit Quelle.",)]

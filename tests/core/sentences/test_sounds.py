"""Which sounds get captions, and where these are among the sentences."""

import pytest

from pipeline.core.sentences.sounds import SoundCaptions
from pipeline.core.sentences.stage import SentenceStage
from pipeline.events import EndOfInput, Pause, SoundEvent, SourceSentence, SourceText, Transcript, TranscriptSoFar, Word
from pipeline.glossary import Glossary, Term
from tests.chain import through


def captions():
    return SoundCaptions("en")


def music(start_s, kind="music"):
    return SoundEvent(kind, start_s, start_s + 3, start_s + 4.5)


def said(start_s, end_s, text="So it is.", **more):
    return Transcript(0, start_s, end_s, text, "en", heard_s=end_s, **more)


def shown(*items):
    """The starts of the sounds with a caption."""
    found = captions()
    starts = []
    for item in items:
        if isinstance(item, Transcript):
            found.heard(item)
        elif found.caption(item) is not None:
            starts.append(item.start_s)
    return starts


def test_a_sound_that_goes_on_has_one_caption_and_one_that_comes_back_another():
    assert shown(*map(music, (0, 3, 6, 15))) == [0]
    assert shown(music(0), music(14)) == [0, 14]
    assert shown(music(0), music(3, "singing"), music(6), music(9, "singing")) == [0, 3]


def test_there_is_none_where_something_is_said():
    assert shown(said(1.0, 2.0), music(0), music(3)) == [3]
    assert shown(said(2.9, 8.0), music(0)) == []
    words = (Word("So", 4.0, 4.5), Word(" it is.", 5.0, 5.5))  # only a part of the segment has words
    assert shown(said(0.0, 9.0, words=words), music(3), music(6)) == [6]


def test_there_is_none_before_text_that_has_come_already():
    assert shown(said(3.0, 8.0), music(0)) == []
    assert shown(said(3.0, 8.0), said(8.0, 12.0, rejected="repetition"), music(0), music(9)) == [9]


@pytest.mark.parametrize("reason", ["silence", "repetition", "uncertain", "empty"])
def test_text_that_is_not_shown_leaves_room(reason):
    assert shown(said(0.0, 3.0, rejected=reason), music(0)) == [0]


def run(*items, sounds=True, glossary=Glossary(())):  # noqa: B008  # never changed
    """What the stage puts out, without drafts of final text."""
    made = captions() if sounds else None
    found = through(lambda *queues: SentenceStage(*queues, None, lambda: glossary, made), *items)
    return [each for each in found if not isinstance(each, Transcript | EndOfInput)]


def test_a_caption_is_a_sentence_between_others():
    before, sound, after = said(0.0, 2.0), music(2.5), said(7.0, 9.0)
    found = [each for each in run(before, Pause(2.0, 2.0), sound, after) if isinstance(each, SourceSentence)]
    assert [(each.sentence, each.text, each.sound) for each in found] == [
        (0, "So it is.", None), (1, "[music]", "music"), (2, "So it is.", None),
    ]  # fmt: skip
    assert (found[1].start_s, found[1].end_s, found[1].heard_s) == (2.5, 5.5, 7.0)


def test_a_sentence_that_may_go_on_has_none_in_it():
    begun, rest = said(0.0, 2.0, "So it"), said(3.5, 9.0, "is.")
    for sound in (music(1.0), music(2.0)):
        found = [each for each in run(begun, sound, rest) if isinstance(each, SourceSentence)]
        assert [each.text for each in found] == ["So it is."]


def test_the_words_are_the_same_with_and_without_captions():
    items = [said(0.0, 2.0, "So it"), music(4.5), said(8.0, 9.0, "is."), Pause(9.0, 2.0), music(9.0, "singing")]
    found, plain = (
        [each.text for each in run(*items, sounds=on) if isinstance(each, SourceSentence) and each.sound is None]
        for on in (True, False)
    )
    assert found == plain == ["So it", "is."]


def test_a_draft_makes_room_for_a_caption():
    draft = Transcript(0, 6.0, 7.0, "And so", "en")
    found = run(TranscriptSoFar((draft,)), music(0), TranscriptSoFar((draft,)))
    assert [(type(each), each.sentence, each.text) for each in found] == [
        (SourceText, 0, "And so"), (SourceSentence, 0, "[music]"), (SourceText, 1, "And so"), (SourceText, 1, ""),
    ]  # fmt: skip


def test_a_term_of_the_glossary_is_not_sought_in_a_caption():
    (caption,) = run(music(0), glossary=Glossary((Term("music", None),)))
    assert caption.terms == ()

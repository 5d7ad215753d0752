"""Sentences that go on over pauses: when they end, and that nothing is lost, doubled or taken back."""

import copy
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.captions.states import OpenTexts
from pipeline.core.run.options import SentenceOptions
from pipeline.core.sentences.assembler import SentenceAssembler, final_marks
from pipeline.events import Pause, SourceSentence, SourceText, Transcript, Word

OPTIONS = SentenceOptions()


def heard(number, text, start_s, end_s, language="en", words=True, previous_end=None):
    """A transcript whose words, if it has any, take the same time each."""
    parts = text.split(" ") if words and text else []
    each_s = (end_s - start_s) / max(1, len(parts))
    timed = tuple(
        Word((" " if at else "") + part, start_s + at * each_s, start_s + (at + 1) * each_s)
        for at, part in enumerate(parts)
    )
    return Transcript(
        number,
        start_s,
        end_s,
        text,
        language,
        previous_end=previous_end,
        speech_end_s=end_s,
        heard_s=end_s,
        words=timed,
    )


def events(*inputs, options=OPTIONS):
    assembler = SentenceAssembler(options)
    found = []
    for item in inputs:
        found += assembler.push(item) if isinstance(item, Transcript) else assembler.pause(item)
    return found + assembler.end()


def sentences(*inputs, options=OPTIONS):
    return [event for event in events(*inputs, options=options) if isinstance(event, SourceSentence)]


def texts(*inputs, options=OPTIONS):
    return [one.text for one in sentences(*inputs, options=options)]


def test_a_sentence_goes_on_over_pauses():
    (whole,) = sentences(
        heard(0, "And so my fellow Americans,", 0.0, 3.0),
        heard(1, "ask not", 3.1, 4.9),
        heard(2, "what your country can do for you,", 5.3, 7.7),
        heard(3, "ask what you can do for your country.", 8.1, 11.0),
    )
    assert whole.text == (
        "And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country."
    )
    assert (whole.sentence, whole.start_s, whole.end_s, whole.heard_s) == (0, 0.0, 11.0, 11.0)
    assert "".join(word.text for word in whole.words) == whole.text
    assert [word.start_s for word in whole.words if word.text == " ask"] == [3.1, 8.1]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ((), ["So I was going there and what then"]),
        ((0,), ["So I was", "going there and what then"]),
        ((2,), ["So I was going there", "and what then"]),
        ((0, 2, 4), ["So I was", "going there", "and what", "then"]),
    ],
)
def test_a_sentence_ends_before_each_word_with_which_another_voice_begins(turns, expected):
    before, after = heard(0, "So I was", 0.0, 1.5), heard(1, "going there and what then", 2.0, 4.5)
    found = sentences(before, replace(after, turns=turns))
    assert [one.text for one in found] == expected
    assert found[-1].start_s == (2.0 + 0.5 * turns[-1] if turns else 0.0)
    assert [one.before_pause for one in found] == [one.end_s in (1.5, 4.5) for one in found]


def test_turns_of_words_without_times_end_no_sentence():
    assert texts(replace(heard(0, "So I was there", 0.0, 2.0, words=False), turns=(2,))) == ["So I was there"]


def test_what_has_ended_does_not_wait_for_what_has_not():
    assembler = SentenceAssembler(OPTIONS)
    whole, ended, rest = assembler.push(heard(0, "Hello. My name is", 0.0, 4.0))
    assert ended == SourceSentence(0, "en", "Hello.", 0.0, 1.0, 4.0, (Word("Hello.", 0.0, 1.0),), before_pause=False)
    assert (whole.text, rest.sentence, rest.text, rest.steady) == ("Hello.", 1, "My name is", 10)
    (more,) = assembler.push(heard(1, "Ann.", 5.0, 6.0))
    assert (more.sentence, more.text, more.steady) == (1, "My name is Ann.", 14)
    *_, last = assembler.end()
    assert (last.text, last.start_s, last.end_s, last.before_pause) == ("My name is Ann.", 1.0, 6.0, True)
    assert assembler.end() == []


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (heard(1, "ask not.", 6.0, 7.0), ["My fellow Americans,", "ask not."]),  # after a long pause
        (heard(1, "frag nicht.", 3.5, 5.0, "de"), ["My fellow Americans,", "frag nicht."]),
        (replace(heard(1, "hm", 3.5, 5.0), rejected="uncertain"), ["My fellow Americans,"]),
        (heard(1, "ask not.", 3.5, 5.0), ["My fellow Americans, ask not."]),
        (replace(heard(1, "hm", 3.5, 5.0), rejected="silence"), ["My fellow Americans,"]),
    ],
)
def test_what_ends_an_open_sentence(second, expected):
    assert texts(heard(0, "My fellow Americans,", 0.0, 3.0), second) == expected


def test_uncertain_text_stands_in_sentences_of_its_own():
    said = ("My fellow Americans,", "ask not what", "your country", "can do for you.")
    unsure = [replace(heard(at, said[at], at + 1.5, at + 2.4), uncertain=at in (1, 2)) for at in range(4)]
    found = sentences(*unsure)
    assert [(one.text, one.uncertain) for one in found] == [
        (said[0], False),
        ("ask not what your country", True),
        (said[3], False),
    ]


@pytest.mark.parametrize(
    ("text", "sure", "length_s", "ends"),
    [
        ("My fellow Americans", False, 1.9, False),
        ("My fellow Americans", False, 2.0, True),
        ("I am here.", False, 0.7, False),
        ("I am here.", False, 0.8, True),
        ("I am here.", True, 0.4, False),
        ("I am here.", True, 0.5, True),
        ("I saw Dr.", True, 1.5, False),
        ("He came at 5 p.m.", True, 0.7, False),
        ("This is No.", True, 0.7, False),
        ("This is No.", True, 0.8, True),
        ("It costs 3.5", False, 1.5, False),
    ],
)
def test_how_long_a_pause_ends_a_sentence(text, sure, length_s, ends):
    assembler = SentenceAssembler(OPTIONS)
    assembler.push(replace(heard(0, text, 0.0, 3.0), ends_surely=sure))
    found = assembler.pause(Pause(3.0, length_s))
    assert [event.text for event in found if isinstance(event, SourceSentence)] == ([text] if ends else [])
    assert bool(assembler.end()) != ends


def test_a_mark_that_is_sure_in_the_middle_of_a_text_says_nothing_of_its_end():
    for order, ends in (((True, False), False), ((False, True), True)):
        assembler = SentenceAssembler(OPTIONS)
        for number, sure in enumerate(order):
            assembler.push(replace(heard(number, "it is so.", 3.0 * number, 3.0 * number + 2.9), ends_surely=sure))
        assert any(isinstance(event, SourceSentence) for event in assembler.pause(Pause(5.9, 0.5))) == ends


def test_the_last_word_may_be_aligned_a_little_beyond_the_speech():
    for late_s, ends in ((0.2, True), (0.4, False)):
        assembler = SentenceAssembler(OPTIONS)
        assembler.push(heard(0, "I am here.", 0.0, 3.0 + late_s))
        assert bool(assembler.pause(Pause(3.0, 2.0))) == ends


def test_a_pause_before_the_open_sentence_ends_nothing():
    assembler = SentenceAssembler(OPTIONS)
    assembler.push(heard(0, "And then.", 2.0, 3.0))
    assert assembler.pause(Pause(1.0, 5.0)) == []


@pytest.mark.parametrize(
    ("marks", "following", "expected"),
    [
        ("", "ask not.", ["And so my fellow Americans ask not."]),
        (",", "ask not.", ["And so my fellow Americans, ask not."]),
        (".", "Ask not.", ["And so my fellow Americans.", "Ask not."]),
        ("?", "Ask not.", ["And so my fellow Americans?", "Ask not."]),
        (None, "Ask not.", ["And so my fellow Americans.", "Ask not."]),
        (None, "ask not.", ["And so my fellow Americans ask not."]),
        (".", "ask not.", ["And so my fellow Americans ask not."]),
    ],
)
def test_the_next_words_decide_on_the_full_stop_before_them(marks, following, expected):
    first = heard(0, "And so my fellow Americans.", 0.0, 3.0)
    second = heard(1, following, 3.5, 5.0, previous_end=marks)
    assert texts(first, second) == expected


@pytest.mark.parametrize(("text", "marks"), [("“No.”", "."), ("“No.”", ".”"), ("“No”", ","), ("No.", ".”")])
def test_marks_with_quotation_marks_are_left_as_they_are(text, marks):
    found = texts(heard(0, text, 0.0, 2.0), heard(1, "Yes.", 2.5, 3.0, previous_end=marks))
    assert " ".join(found) == f"{text} Yes."


@pytest.mark.parametrize(
    ("first", "second", "marks", "expected"),
    [
        ("It grew by 50%", "in one year.", "", "It grew by 50% in one year."),
        ("It is written in C++", "and fast.", "", "It is written in C++ and fast."),
        ("We met at 5 p.m.", "in the evening.", ".", "We met at 5 p.m. in the evening."),
        ("C'est vrai ?", "que tu viens.", "", "C'est vrai que tu viens."),
        ("You are here", "now.", ",", "You are here, now."),
        ("Wait…", "and see.", ",", "Wait, and see."),
    ],
)
def test_only_marks_change_at_a_pause(first, second, marks, expected):
    (whole,) = sentences(heard(0, first, 0.0, 2.0), heard(1, second, 2.5, 3.0, previous_end=marks))
    assert whole.text == expected
    assert "".join(word.text for word in whole.words).strip() == expected


def test_a_corrected_mark_was_heard_with_the_next_words():
    first, _ = sentences(heard(0, "You are here.", 0.0, 3.0), heard(1, "Why not?", 3.5, 5.0, previous_end="?"))
    assert (first.text, first.heard_s) == ("You are here?", 5.0)


@pytest.mark.parametrize(("speech_end_s", "end_s"), [(2.4, 2.4), (1.7, 1.7), (None, 3.0)])
def test_the_last_word_ends_with_the_speech(speech_end_s, end_s):
    words = (Word("Thank", 1.0, 1.5), Word(" you.", 1.5, 2.0))
    (said,) = sentences(Transcript(0, 1.0, 3.0, "Thank you.", "en", speech_end_s=speech_end_s, words=words))
    assert said.words[-1] == Word(" you.", 1.5, end_s)


def test_no_word_is_said_after_the_speech():
    words = (Word("Well.", 1.0, 1.6), Word(" Thank", 1.7, 1.9), Word(" you.", 1.9, 2.0))
    well, thanks = sentences(Transcript(0, 1.0, 3.0, "Well. Thank you.", "en", speech_end_s=1.5, words=words))
    assert [(word.start_s, word.end_s) for word in (*well.words, *thanks.words)] == [(1.0, 1.5), (1.5, 1.5), (1.5, 1.5)]
    assert (thanks.start_s, thanks.end_s) == (1.5, 1.5)


@pytest.mark.parametrize(
    ("rejected", "ends"),
    [
        ("silence", False),
        ("empty", False),
        ("uncertain", True),
        ("repetition", True),
        ("language", True),
        ("failed", True),
    ],
)
def test_a_noise_does_not_end_a_sentence_and_other_speech_that_is_withheld_does(rejected, ends):
    withheld = replace(heard(1, "", 2.5, 2.8), rejected=rejected)
    found = texts(heard(0, "My fellow", 0.0, 2.0), withheld, heard(2, "Americans.", 3.0, 4.0))
    assert found == (["My fellow", "Americans."] if ends else ["My fellow Americans."])


@pytest.mark.parametrize(
    ("pause_ms", "long_pause_ms", "ends"),
    [(600, 2_000, True), (1_800, 2_000, False), (1_800, 600, True), (1_000, 2_000, True), (1_001, 2_000, False)],
)
def test_a_pause_between_transcripts_ends_a_sentence_as_one_that_is_announced(pause_ms, long_pause_ms, ends):
    parts = [heard(0, "Let us go.", 0.0, 2.0), heard(1, "and he left.", 3.0, 4.0)]
    options = SentenceOptions(pause_ms=pause_ms, long_pause_ms=long_pause_ms)
    assert texts(*parts, options=options) == (["Let us go.", "and he left."] if ends else ["Let us go and he left."])


def test_the_mark_at_the_end_of_a_segment_is_a_draft():
    (first,) = SentenceAssembler(OPTIONS).push(heard(0, "And so my fellow Americans.", 0.0, 3.0))
    assert first.steady_text == "And so my fellow Americans"


def test_a_sentence_keeps_the_time_at_which_its_last_word_was_heard():
    first, second = sentences(heard(0, "It is over.", 0.0, 2.0), heard(1, "Thank you. Bye.", 2.8, 4.0))[:2]
    assert (first.heard_s, second.heard_s) == (2.0, 4.0)


def test_a_sentence_does_not_go_on_for_ever():
    parts = [heard(n, f"and then {n}", 3.0 * n, 3.0 * n + 2.5) for n in range(20)]
    found = sentences(*parts)
    assert len(found) > 1
    assert all(one.end_s - one.start_s < OPTIONS.max_sentence_ms / 1000 + 3.0 for one in found)


def test_a_sentence_that_is_too_long_is_cut_at_its_last_clause():
    parts = [heard(n, f"and this is part {n}, which" if n % 2 else "goes on", 3.0 * n, 3.0 * n + 2.5) for n in range(9)]
    assembler = SentenceAssembler(OPTIONS)
    ends = [any(isinstance(event, SourceSentence) for event in assembler.push(part)) for part in parts]
    assert ends.index(True) == 5, "as soon as three quarters of the longest time have passed"
    first, second = sentences(*parts)[:2]
    assert first.text.endswith("part 5,")
    assert second.text.startswith("which goes on")
    assert first.words[-1].text.strip() == "5,"


@pytest.mark.parametrize(
    ("first", "second", "language", "expected"),
    [
        ("I saw Dr.", "Smith.", "en", ["I saw Dr. Smith."]),
        ("It costs 3.5", "dollars.", "en", ["It costs 3.5 dollars."]),
        ("It is over.", "Thank you.", "en", ["It is over.", "Thank you."]),
        ("我们明天上午", "十点见面。", "zh", ["我们明天上午十点见面。"]),
        ("好。", "走吧。", "zh", ["好。", "走吧。"]),
        ("Wait!", "I am coming.", "en", ["Wait!", "I am coming."]),
        ("Wait…", "I am coming.", "en", ["Wait… I am coming."]),
    ],
)
def test_final_marks(first, second, language, expected):
    assert texts(heard(0, first, 0.0, 2.0, language), heard(1, second, 2.8, 4.0, language)) == expected


@pytest.mark.parametrize(("text", "marks"), [("so.", "."), ("so, ", ","), ("so", ""), ("“so.”", ""), ("好。", "。")])
def test_the_marks_at_the_end_of_a_text(text, marks):
    assert final_marks(text) == marks


def test_without_a_pause_that_joins_every_segment_stands_alone():
    parts = [heard(0, "My fellow Americans,", 0.0, 3.0), heard(1, "ask not. Ask", 3.0, 5.0)]
    options = SentenceOptions(long_pause_ms=0)
    assert texts(*parts, options=options) == ["My fellow Americans,", "ask not.", "Ask"]
    assert SentenceAssembler(options).push(parts[0])[-1] == sentences(parts[0])[0]


@pytest.mark.parametrize("gap_s", [0.1, 1.0])
def test_only_a_gap_is_a_pause_after_a_sentence(gap_s):
    first, _ = sentences(heard(0, "It is over.", 0.0, 2.0), heard(1, "Thank you.", 2.0 + gap_s, 4.0))
    assert first.before_pause == (gap_s > 0.5)


def test_times_are_shared_out_where_those_of_words_are_not_known():
    (whole,) = sentences(heard(0, "My fellow Americans,", 0.0, 3.0, words=False), heard(1, "ask not.", 3.5, 5.0))
    assert whole.words == ()
    assert (whole.start_s, whole.end_s) == (0.0, 5.0)
    assert whole.begin_at(0.5) == 2.5


def test_a_share_of_the_text_begins_with_a_word():
    (whole,) = sentences(heard(0, "abcd", 0.0, 1.0), heard(1, "efgh", 2.5, 3.5))
    assert [whole.begin_at(share) for share in (0.0, 0.2, 0.3, 0.5, 0.7, 0.8, 1.0)] == [
        0.0,
        0.0,
        2.5,
        2.5,
        2.5,
        3.5,
        3.5,
    ]


def so_far(text, steady, number=0, start_s=0.0, **options):
    """What is heard of a segment in progress, half a second a word."""
    found = heard(number, text, start_s, start_s + 0.5 * len(text.split()), **options)
    return replace(found, steady_words=steady)


def shown(events):
    """ "sentence: steady|draft" of each sentence in progress that changed."""
    return [f"{event.sentence}: {event.steady_text}|{event.draft}" for event in events if isinstance(event, SourceText)]


def test_words_are_shown_while_their_segment_is_in_progress():
    assembler = SentenceAssembler(OPTIONS)
    assert shown(assembler.so_far([so_far("My fellow", 0)])) == ["0: |My fellow"]
    assert shown(assembler.so_far([so_far("My fellow", 0)])) == []
    drafts = so_far("My fellow Americans. Ask", 2)
    assert shown(assembler.so_far([drafts])) == ["0: My fellow| Americans.", "1: |Ask"]
    assert shown(assembler.so_far([so_far("My fellow Americans, ask not", 3)])) == [
        "0: My fellow Americans|, ask not",
        "1: |",
    ]
    assert [event.text for event in copy.deepcopy(assembler).so_far([so_far("ask not. eBay and ßo", 0)])] == [
        "Ask not.", "eBay and ßo"
    ], "a draft begins with a capital"  # fmt: skip
    found = assembler.push(so_far("My fellow Americans, ask not.", 0))
    assert shown(found) == ["0: My fellow Americans, ask not|."]
    assert [event.text for event in assembler.end()][-1] == "My fellow Americans, ask not."


def test_drafts_stand_in_the_sentences_that_they_would_make_after_the_final_text():
    assembler = SentenceAssembler(OPTIONS)
    assembler.push(heard(0, "Hello. My name", 0.0, 1.5))
    first, second = so_far("is Ann. I am", 4, 1, 1.6), so_far("here. Good", 1, 2, 4.0)
    assert shown(assembler.so_far([first, second])) == ["1: My name is Ann.|", "2: I am here|.", "3: |Good"]
    (ended, *found) = assembler.push(replace(first, steady_words=0))
    assert (ended.sentence, ended.text) == (1, "My name is Ann.")
    assert shown(found) == []  # what stands there already does not change


def test_a_draft_is_not_cut_for_its_length():
    long = heard(0, "He spoke of it, and of all that had been said, and of what", 0.0, 17.0)
    assembler = SentenceAssembler(OPTIONS)
    assert [event.text for event in assembler.so_far([long])] == [long.text]
    assert [event.text for event in assembler.push(long) if isinstance(event, SourceSentence)] == [
        "He spoke of it, and of all that had been said,"
    ]


def test_drafts_are_withdrawn_at_the_end_of_the_input():
    assembler = SentenceAssembler(OPTIONS)
    assembler.so_far([so_far("My fellow", 0)])
    assert shown(assembler.end()) == ["0: |"]


def test_words_of_a_draft_after_its_speech_are_not_steady_for_those_before():
    words = (Word("Well", 1.0, 1.6), Word(" thank", 1.7, 1.9), Word(" you", 1.9, 2.0))
    draft = Transcript(0, 1.0, 3.0, "Well thank you", "en", speech_end_s=1.5, words=words, steady_words=2)
    (shown,) = SentenceAssembler(OPTIONS).so_far([draft])
    assert shown.text[: shown.steady] == "Well"


def test_steady_words_of_a_rejected_draft_make_no_other_steady():
    rejected = replace(so_far("um yes", 2, 1, 1.6), rejected="uncertain")
    drafts = [so_far("My fellow Americans", 1), rejected]
    assert shown(SentenceAssembler(OPTIONS).so_far(drafts)) == ["0: My| fellow Americans"]


def test_final_text_begins_as_it_was_recognised():
    assembler = SentenceAssembler(OPTIONS)
    assert shown(assembler.push(heard(0, "my name is", 0.0, 1.5))) == ["0: my name is|"]
    assert shown(assembler.so_far([so_far("ann", 0, 1, 1.6)])) == ["0: my name is| ann"]


def test_drafts_in_the_time_of_a_transcript_are_over_with_it():
    assembler = SentenceAssembler(OPTIONS)
    assembler.so_far([so_far("My fellow", 0), so_far("Americans", 0, 1, 1.6)])
    assert shown(assembler.push(heard(0, "My fellow Americans.", 0.0, 3.0))) == ["0: My fellow Americans|."]


def test_a_draft_never_changes_what_is_final():
    parts = [heard(0, "It was the", 0.0, 1.5), heard(1, "best of times. It", 1.6, 3.6), heard(2, "was.", 3.8, 4.2)]
    plain = sentences(*parts)
    assembler, found = SentenceAssembler(OPTIONS), []
    for part in parts:
        assembler.so_far([so_far("nonsense. No sense at all", 2, part.segment_id, part.start_s)])
        found += assembler.push(part)
        assembler.so_far([replace(so_far("um", 0, part.segment_id + 1, part.end_s), rejected="uncertain")])
    assert [event for event in found + assembler.end() if isinstance(event, SourceSentence)] == plain


def test_a_draft_that_is_withheld_in_the_end_is_withdrawn():
    assembler = SentenceAssembler(OPTIONS)
    assembler.so_far([so_far("Thank you", 0)])
    (withdrawn,) = assembler.push(replace(so_far("Thank you.", 0), rejected="silence"))
    assert (withdrawn.sentence, withdrawn.text) == (0, "")
    assert assembler.end() == []
    assert shown(assembler.so_far([so_far("Yes", 0, number=1, start_s=5.0)])) == ["0: |Yes"]


def test_a_draft_may_turn_out_to_be_in_another_language():
    assembler = SentenceAssembler(OPTIONS)
    assert shown(assembler.so_far([so_far("Guten Tag", 0, language="de")])) == ["0: |Guten Tag"]
    assert shown(assembler.so_far([so_far("Good day to", 0)])) == ["0: |Good day to"]


TEXTS = st.lists(
    st.sampled_from(
        ["Hello.", "my", "name", "is", "Dr.", "Ann,", "3.5", "Why?", "“No.”", "yes", "M.", "…", "etc.", 'it."', '"so']
    ),
    max_size=6,
).map(" ".join)
PARTS = st.tuples(
    TEXTS,
    st.floats(0.1, 4.0),
    st.floats(0.0, 3.0),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, None, "", ".", ",", "?!"]),
)


@given(st.lists(PARTS, max_size=8), st.booleans())
def test_nothing_is_lost_or_taken_back(parts, pauses):
    inputs = []
    at = 0.0
    for number, (text, length_s, pause_s, words, rejected, marks) in enumerate(parts):
        one = heard(number, text, at, at + length_s, words=words, previous_end=marks)
        inputs.append(replace(one, rejected="uncertain") if rejected else one)
        at += length_s
        if pauses:
            inputs += [Pause(at, limit_s) for limit_s in (1.8, 2.0) if limit_s <= pause_s]
        at += pause_s
    said = "".join(one.text for one in inputs if isinstance(one, Transcript) and one.rejected is None)
    _check(events(*inputs), said)


@given(st.lists(PARTS, max_size=6), st.data())
def test_drafts_lose_and_change_nothing(parts, data):
    """Whatever drafts say before a transcript, the final text is that of the transcripts alone."""
    assembler, plain = SentenceAssembler(OPTIONS), SentenceAssembler(OPTIONS)
    found, expected = [], []
    at, said = 0.0, ""
    for number, (text, length_s, pause_s, _, rejected, marks) in enumerate(parts):
        final = heard(number, text, at, at + length_s, previous_end=marks)
        for _ in range(data.draw(st.integers(0, 4)) if final.words else 0):
            words = final.words[: data.draw(st.integers(0, len(final.words)))]
            words += (Word(" guess.", at + length_s, at + length_s),) if data.draw(st.booleans()) else ()
            draft = replace(final, text="".join(word.text for word in words).strip(), words=words)
            found += assembler.so_far([replace(draft, steady_words=data.draw(st.integers(0, len(words))))])
        final = replace(final, rejected="uncertain") if rejected else final
        said += "" if rejected else final.text
        at += length_s + pause_s
        found += [*assembler.push(final), *assembler.pause(Pause(at - pause_s, pause_s))]
        expected += [*plain.push(final), *plain.pause(Pause(at - pause_s, pause_s))]
    found, expected = found + assembler.end(), expected + plain.end()
    _check(found, said)
    ended = [[event for event in events if isinstance(event, SourceSentence)] for events in (found, expected)]
    assert ended[0] == ended[1]


def _check(found, said):
    ended = [event for event in found if isinstance(event, SourceSentence)]
    assert _letters("".join(one.text for one in ended)) == _letters(said)
    open_texts = OpenTexts()
    for event in found:
        before = open_texts.push(event)  # raises an error if final text changes
        if isinstance(event, SourceText):
            now = event.text, event.steady, event.language
            assert now != ((before.text, before.steady, before.language) if before else ("", 0, ""))
        else:
            assert before.text == before.steady_text == event.text
    assert [one.sentence for one in ended] == list(range(len(ended)))
    for one in ended:
        assert one.text == one.text.strip() != ""
        assert "".join(word.text for word in one.words).strip() in (one.text, "")
        assert one.start_s <= one.end_s
        times = [time for word in one.words for time in (word.start_s, word.end_s)]
        assert all(before <= after + 1e-9 for before, after in pairwise(times))
    for before, after in pairwise(ended):
        assert before.end_s <= after.start_s + 1e-9
        assert before.heard_s <= after.heard_s


def _letters(text):
    return "".join(c for c in text if c.isalnum())

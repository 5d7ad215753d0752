"""When each word was first shown, settled and final, and whether it changed: hand-computed."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.bench.words import (
    Newest,
    ReceivedEvent,
    ShownUnit,
    erased_units,
    scored_units,
    shown_units,
    source_texts,
    steady_units,
    target_texts,
)
from pipeline.events import EndOfInput, SourceSentence, SourceText, TargetText, Translation
from tests.media.subtitles.strategies import CHINESE, ENGLISH
from tests.streams import spoken, streams


def states(*steps: tuple[float, str]) -> list[Newest]:
    """States of one sentence: (received at, text). The last one is final."""
    *drafts, (final_s, text) = steps
    found = [Newest(SourceText(0, "en", draft), elapsed_s) for elapsed_s, draft in drafts]
    return [*found, Newest(SourceSentence(0, "en", text), final_s)]


def test_a_word_settles_when_it_first_stands_as_it_stays():
    assert shown_units(
        states((1.0, "The bus"), (1.5, "The bus is"), (2.5, "The bus is."), (4.0, "The bus is.")), "en"
    ) == [
        ShownUnit("the", 0, 1.0, 1.0, 1.0, 4.0),
        ShownUnit("bus", 0, 1.0, 1.0, 1.0, 4.0),
        ShownUnit("is", 0, 1.5, 1.5, 1.5, 4.0),
    ]


def test_a_word_that_replaces_another_is_shown_with_its_own_text_and_has_changed():
    found = shown_units(states((1.0, "the whether"), (2.0, "the weather is"), (3.0, "the weather is")), "en")
    assert [(unit.text, unit.placed_s, unit.shown_s, unit.changed) for unit in found] == [
        ("the", 1.0, 1.0, False),
        ("weather", 1.0, 2.0, True),
        ("is", 2.0, 2.0, False),
    ]


def test_a_word_keeps_its_first_time_when_one_before_it_is_corrected():
    found = shown_units(states((1.0, "I have cat"), (2.0, "I have a cat now"), (3.0, "We have a cat now")), "en")
    assert [(unit.text, unit.shown_s, unit.changed) for unit in found] == [
        ("we", 3.0, True),
        ("have", 1.0, False),
        ("a", 2.0, False),
        ("cat", 1.0, False),
        ("now", 2.0, False),
    ]


def test_a_word_that_comes_back_keeps_its_first_time_and_settles_anew():
    found = shown_units(states((1.0, "go home"), (2.0, "go Rome"), (3.0, "go home")), "en")
    assert [(unit.text, unit.shown_s, unit.settled_s, unit.changed) for unit in found] == [
        ("go", 1.0, 1.0, False),
        ("home", 1.0, 3.0, True),
    ]


def test_marks_and_capitals_are_no_change():
    found = shown_units(states((1.0, "Yes."), (2.0, "Yes, it"), (3.0, "Yes, It is")), "en")
    assert [(unit.text, unit.settled_s, unit.final_s, unit.changed) for unit in found] == [
        ("yes", 1.0, 3.0, False),
        ("it", 2.0, 3.0, False),
        ("is", 3.0, 3.0, False),
    ]


def test_a_word_that_moves_into_another_sentence_has_not_changed():
    drafts = SourceText(0, "en", "We walk."), SourceText(1, "en", "To town.")
    finals = SourceText(1, "en", ""), SourceSentence(0, "en", "We walk to town.")
    for order in finals, finals[::-1]:  # at once, so nobody sees one without the other
        texts = [Newest(drafts[0], 1.0), Newest(drafts[1], 2.0), *(Newest(final, 3.0) for final in order)]
        assert [(unit.text, unit.settled_s, unit.changed) for unit in shown_units(texts, "en")] == [
            ("we", 1.0, False),
            ("walk", 1.0, False),
            ("to", 2.0, False),
            ("town", 2.0, False),
        ]
        assert erased_units(texts, "word") == 3  # "walk. To town."


def test_what_is_erased_is_counted_by_pictures():
    texts = [Newest(SourceText(0, "en", text), at_s) for at_s, text in ((1.0, "a b c"), (1.001, "a"), (1.002, "a b d"))]
    assert erased_units(texts, "word") == 0
    assert erased_units([Newest(texts[0].state, 0.5), *texts[2:]], "word") == 1


def test_a_word_that_has_been_read_changes_late():
    found = shown_units(states((1.0, "go Rome"), (4.0, "go home"), (4.5, "go home")), "en")
    assert [unit.changed_late for unit in found] == [False, False]
    found = shown_units(states((1.0, "go Rome"), (4.5, "go home")), "en")
    assert [unit.changed_late for unit in found] == [False, True]


def test_steady_words_that_the_final_text_lacks_are_not_kept():
    texts = [
        Newest(SourceText(0, "en", "Howdy, Mary, to", steady=12), 1.0),  # two words are steady
        Newest(SourceText(0, "en", "Had he married a", steady=0), 2.0),  # and are called so no more
        Newest(SourceText(1, "en", "Woman.", steady=6), 2.0),  # what is before it is not
        Newest(SourceSentence(0, "en", "Howdy, Mary, to a"), 3.0),
        Newest(SourceSentence(1, "en", "Woman."), 3.0),
    ]
    assert [(unit.place, unit.called_s) for unit in steady_units(texts, "en")] == [
        (0, 1),
        (1, 1),
        (2, 3),
        (3, 3),
        (4, 3),
    ]
    texts[3] = Newest(SourceSentence(0, "en", "had he Mary to a"), 3.0)
    places = [unit.place for unit in steady_units(texts, "en")]
    assert places == [None, None, 2, 3, 4, 5], "the words after the steady ones are final"
    assert steady_units([], "en") == []


def test_text_that_is_dropped_leaves_no_word():
    assert shown_units([Newest(SourceText(0, "en", "um"), 1.0), Newest(SourceText(0, "en", ""), 2.0)], "en") == []
    assert shown_units([], "en") == []


def test_chinese_is_followed_by_characters():
    texts = [Newest(TargetText(0, "zh", "早上。"), 1.0), Newest(Translation(0, "zh", "早上好。"), 2.0)]
    assert [(unit.text, unit.shown_s, unit.final_s) for unit in shown_units(texts, "zh")] == [
        ("早", 1.0, 2.0), ("上", 1.0, 2.0), ("好", 2.0, 2.0),
    ]  # fmt: skip


def test_sentences_are_in_order_and_languages_apart():
    targets = TargetText(0, "de", "Ja."), TargetText(0, "zh", "是。")
    events = [*spoken(0, "Yes."), *spoken(1, "No."), *targets, EndOfInput(3.0)]
    received = [ReceivedEvent(event, float(at)) for at, event in enumerate(events)]
    assert [unit.text for unit in shown_units(source_texts(received), "en")] == ["yes", "no"]
    assert [newest.elapsed_s for newest in target_texts(received, "zh")] == [5.0]


@given(streams(st.one_of(ENGLISH, CHINESE), languages=["zh"]))
def test_a_word_is_placed_shown_settled_and_final_in_this_order(stream):
    received = [ReceivedEvent(event, float(at)) for at, event in enumerate(stream.events)]
    for found, texts, language in (
        (shown_units(source_texts(received), "en"), stream.sources, "en"),
        (shown_units(target_texts(received, "zh"), "zh"), {n: t for (n, _), t in stream.translations.items()}, "zh"),
    ):
        expected = [unit for _, text in sorted(texts.items()) for unit in scored_units(text, language)]
        assert [unit.text for unit in found] == expected
        for unit in found:
            assert unit.placed_s <= unit.shown_s <= unit.settled_s <= unit.final_s < len(received)
        finals = [unit.final_s for unit in found]
        assert finals == sorted(finals)

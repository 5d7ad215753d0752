"""The figures of a live run, from artificial events with hand-computed results."""

import pytest

from pipeline.bench.measures import SpokenUnit, Spread, WordErrors, diagonal_ends, ends_of, measured, word_errors
from pipeline.bench.words import ReceivedEvent, ShownUnit
from pipeline.events import EndOfInput, PipelineEvent, SourceSentence, SourceText, TargetText, Word
from pipeline.media.latency.delay_measures import Reference, Scores
from tests.streams import translated

LANGUAGES = ("en", "zh")
WORDS = (Word(" We", 0.0, 0.5), Word(" walk", 0.5, 1.0), Word(" to", 1.0, 1.5), Word(" town.", 1.5, 2.0))
SENTENCE = SourceSentence(0, "en", "We walk to town.", 0.0, 2.0, 2.4, WORDS)
# Draft words come 0.5 s after they were said, one is wrong at first, and all is final at 3 s.
DRAFTS: list[tuple[float, PipelineEvent]] = [
    (1.0, SourceText(0, "en", "We", 0, heard_s=0.8)),
    (1.2, TargetText(0, "zh", "我们", 0, heard_s=0.8, complete=True)),
    (1.5, SourceText(0, "en", "We work", 2, heard_s=1.3)),
    (1.8, TargetText(0, "zh", "我们工作", 0, heard_s=1.3, complete=True)),
    (2.0, SourceText(0, "en", "We walk to", 2, heard_s=1.8)),
    (2.5, SourceText(0, "en", "We walk to town.", 10, heard_s=2.3)),
    (3.0, SourceText(0, "en", "We walk to town.", 16, heard_s=2.8)),
    (3.0, SENTENCE),
    (3.2, TargetText(0, "zh", "我们走到城里。", 7, heard_s=2.8, complete=True)),
    (3.3, translated(0, ["我们走到城里。"], heard_s=2.8)[-1]),
    (3.4, EndOfInput(3.0)),
]


def received(*timed: tuple[float, PipelineEvent]) -> list[ReceivedEvent]:
    return [ReceivedEvent(event, elapsed_s) for elapsed_s, event in timed]


def spread(*values_s: float) -> Spread:
    found = Spread.of(values_s)
    assert found is not None
    return Spread(found.count, *(pytest.approx(value) for value in (found.mean_s, found.p50_s, found.p90_s)))


def test_the_spread_of_delays():
    assert Spread.of([]) is None
    assert Spread.of([2.0]) == Spread(1, 2.0, 2.0, 2.0)
    # Interpolated: p90 is at 0.9 · 4 = 3.6 steps from the lowest.
    assert Spread.of([0.0, 1.0, 2.0, 3.0, 9.0]) == Spread(5, 3.0, 2.0, pytest.approx(6.6))


def test_the_source_of_a_run_with_drafts():
    source = measured(received(*DRAFTS), LANGUAGES, 3.0, offline=[SENTENCE]).source
    assert (source.unit, source.units) == ("word", 4)
    # We 1.0 - 0.5, walk 2.0 - 1.0, to 2.0 - 1.5, town 2.5 - 2.0.
    assert source.first_shown == spread(0.5, 1.0, 0.5, 0.5)
    assert source.settled == source.first_shown
    assert source.final == spread(2.5, 2.0, 1.5, 1.0)
    # We 1.5 - 0.5, walk 2.5 - 1.0, to 2.5 - 1.5, town 3.0 - 2.0.
    assert (source.kept, source.steady) == (1.0, spread(1.0, 1.5, 1.0, 1.0))
    assert source.erasure == 1 / 4  # "ork" of "work"
    assert source.changed == 1 / 4
    # Displayed: delays 0.8, 1.8, 1.8, 2.3 of 2 s; the fourth word is the first to have heard it all. The ideal is 0, 0.5, 1, 1.5.
    assert laal(source.displayed_lagging) == means([0.8, 1.8 - 0.5, 1.8 - 1.0, 2.3 - 1.5], [1.0, 2.0 - 0.5])
    assert laal(source.final_lagging) == means([2.4], [3.0])


def laal(lagging: Scores | None) -> tuple[float, float]:
    assert lagging is not None
    assert (lagging.sentences, lagging.empty) == (1, 0)
    return lagging.laal_ms, lagging.computation_aware_laal_ms


def means(delays_s: list[float], elapsed_s: list[float]) -> tuple[float, float]:
    """LAAL as a mean of lags; that by the clock ends where a word came after the end of its sentence."""
    lag_ms: float = pytest.approx(1000 * sum(delays_s) / len(delays_s))
    aware_ms: float = pytest.approx(1000 * sum(elapsed_s) / len(elapsed_s))
    return lag_ms, aware_ms


def test_the_translation_of_a_run_with_drafts():
    found = measured(received(*DRAFTS), LANGUAGES, 3.0, offline=[SENTENCE])
    target = found.target
    assert (target.unit, target.units) == ("char", 7)
    # 我们走到城里, 6 characters for 4 words: they need ⌈4i/6⌉ = 1, 2, 2, 3, 4, 4 words.
    ends_s = [0.5, 1.0, 1.0, 1.5, 2.0, 2.0]
    shown_s = [1.2, 1.2, 3.2, 3.2, 3.2, 3.2]
    assert target.first_shown == spread(*(shown - end for shown, end in zip(shown_s, ends_s, strict=True)))
    assert target.settled == target.first_shown
    assert target.final == spread(*(3.3 - end for end in ends_s))
    assert target.erasure == 2 / 7  # 工作
    assert target.changed == 2 / 6  # 走到 stands where 工作 stood
    assert found.target_after_source == spread(0.2)
    # Scored against itself: the ideal of seven characters in 2 s.
    ideal_s = 2 / 7
    assert laal(target.displayed_lagging) == means([0.8, 0.8 - ideal_s, 2.8 - 2 * ideal_s], [1.2, 1.2 - ideal_s, 3.2 - 2 * ideal_s])  # fmt: skip
    assert laal(target.final_lagging) == means([2.8], [3.3])


def test_a_run_without_drafts_shows_final_text():
    found = measured(
        received(
            (3.0, SourceText(0, "en", "We walk to town.", 16, heard_s=2.4)),
            (3.0, SENTENCE),
            *((3.5, event) for event in translated(0, ["我们走。"], heard_s=2.8)),
        ),
        LANGUAGES,
        3.0,
        offline=[SENTENCE],
    )
    for text in (found.source, found.target):
        assert text.first_shown == text.settled == text.final
        assert (text.erasure, text.changed) == (0, 0)
        assert text.displayed_lagging == text.final_lagging
    assert found.source.first_shown == spread(2.5, 2.0, 1.5, 1.0)
    assert found.target_after_source == spread(0.5)
    assert (found.against_offline, found.against_text) == (WordErrors(4, 0, 0, 0), None)


def test_the_reference_decides_which_sentence_a_word_is_of():
    """The run made one sentence of two; the first had been said at 1 s."""
    offline = [
        SourceSentence(0, "en", "We walk.", 0.0, 1.0, words=(Word(" We", 0.0, 0.5), Word(" walk.", 0.5, 1.0))),
        SourceSentence(1, "en", "To town.", 1.0, 2.0, words=(Word(" To", 1.0, 1.5), Word(" town.", 1.5, 2.0))),
    ]
    found = measured(received(*DRAFTS), LANGUAGES, 3.0, offline=offline)
    assert found.source.displayed_lagging is not None
    assert found.source.displayed_lagging.sentences == 2
    # First: 0.8, then 1.8, which heard it all, less 0.5. Second, from 1.0 s on: 0.8, then 1.3 less 0.5.
    assert found.source.displayed_lagging.laal_ms == pytest.approx(1000 * ((0.8 + 1.3) / 2 + (0.8 + 0.8) / 2) / 2)
    # A reference translation without times covers the recording: 3 s, eight characters, of which the output has seven.
    infinite = Reference(tuple("我们正走到城里"), 0.0, float("inf"))
    target = measured(received(*DRAFTS), LANGUAGES, 3.0, references=[infinite]).target
    assert target.final_lagging is not None
    assert target.final_lagging.yaal_ms == pytest.approx(sum(2800 - at * 3000 / 7 for at in range(7)) / 7)


def test_without_the_words_spoken_there_are_no_delays():
    found = measured(received(*DRAFTS), LANGUAGES, 3.0)
    for text in (found.source, found.target):
        assert (text.first_shown, text.settled, text.final) == (None, None, None)
        assert text.displayed_lagging is not None
    assert found.source.erasure == 1 / 4
    assert found.against_offline is None


def test_a_run_without_text_has_no_figures():
    found = measured(received((1.0, EndOfInput(0.5))), LANGUAGES, 0.5, offline=[])
    for text in (found.source, found.target):
        assert (text.units, text.erasure, text.changed, text.first_shown, text.displayed_lagging) == (
            0,
            0,
            0,
            None,
            None,
        )
    assert found.target_after_source is None


def test_only_words_that_were_heard_alike_have_an_end():
    shown = [ShownUnit(text, 0) for text in ["the", "whether", "is", "fine"]]
    spoken = [SpokenUnit(text, end_s) for text, end_s in [("the", 0.2), ("weather", 0.5), ("is", 0.7), ("so", 0.8), ("fine", 1.1)]]  # fmt: skip
    assert ends_of(shown, spoken) == [0.2, None, 0.7, 1.1]


def test_a_translation_of_an_unknown_sentence_has_no_ends():
    shown = [ShownUnit("a", 0), ShownUnit("b", 1), ShownUnit("c", 1)]
    assert diagonal_ends(shown, {1: [0.5, 0.7, 0.9]}) == [None, 0.7, 0.9]


def test_errors_are_told_apart():
    found = word_errors(["one", "two", "three", "four"], ["one", "too", "three", "and", "four", "again"])
    assert found == WordErrors(4, substituted=1, missing=0, extra=2)
    assert found.rate == 3 / 4
    assert word_errors(["a", "b"], ["b"]) == WordErrors(2, 0, 1, 0)
    assert word_errors([], []).rate == 0
    found_text = measured(received(*DRAFTS), LANGUAGES, 3.0, transcript="We walk to the town!").against_text
    assert found_text == WordErrors(5, 0, 1, 0)

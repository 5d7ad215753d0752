"""The words of a recording that is recognised as a whole, and when each had been said."""

from pipeline.bench.live import offline_sentences
from pipeline.bench.measures import SpokenUnit, spoken_units
from pipeline.events import SourceSentence, Word
from tests.conftest import EXAMPLES, read_wav


def sentence(*words: tuple[str, float], language: str = "en") -> SourceSentence:
    timed = tuple(Word(text, end_s - 0.2, end_s) for text, end_s in words)
    return SourceSentence(0, language, "".join(word.text for word in timed).strip(), 0.0, 2.0, words=timed)


def test_each_unit_has_the_end_of_its_word():
    assert spoken_units([sentence((" At", 0.5), (" 25,", 1.0), (" I'm", 1.2)), sentence((" off.", 2.0))]) == [
        SpokenUnit("at", 0.5),
        SpokenUnit("twenty", 1.0),
        SpokenUnit("five", 1.0),
        SpokenUnit("im", 1.2),
        SpokenUnit("off", 2.0),
    ]
    assert spoken_units([sentence(("早上", 0.5), ("好。", 1.0), language="zh")]) == [
        SpokenUnit("早", 0.5),
        SpokenUnit("上", 0.5),
        SpokenUnit("好", 1.0),
    ]


def test_parts_without_a_blank_between_them_are_one_word():
    assert spoken_units([sentence((" 1", 0.5), (",000", 1.0), (" can", 1.2), ("'t", 1.3))]) == [
        SpokenUnit("one", 1.0),
        SpokenUnit("thousand", 1.0),
        SpokenUnit("cant", 1.3),
    ]


def test_without_word_times_a_sentence_is_divided_evenly():
    assert spoken_units([SourceSentence(0, "en", "Yes, I do.", 1.0, 4.0)]) == [
        SpokenUnit("yes", 2.0),
        SpokenUnit("i", 3.0),
        SpokenUnit("do", 4.0),
    ]
    assert spoken_units([SourceSentence(0, "en", "…", 1.0, 4.0)]) == []


def test_a_recording_is_recognised_as_a_whole(demo_models, demo_config):
    samples = read_wav(EXAMPLES / "novel.wav")
    found = offline_sentences(samples, demo_models, demo_config)
    words = spoken_units(found)
    assert len(words) >= 40
    ends = [word.end_s for word in words]
    assert ends == sorted(ends)
    assert 0 < ends[0] < ends[-1] <= len(samples) / 16_000

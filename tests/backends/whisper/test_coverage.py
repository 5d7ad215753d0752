"""Speech of which a search has made no words."""

import numpy as np

from pipeline.backends.whisper.coverage import inserted, unheard, within_sound, without_others_time
from pipeline.backends.whisper.words import TimedWord, joined_pieces
from pipeline.events import SAMPLE_RATE


def sound(*stretches):
    """Six seconds of silence with noise in some stretches."""
    samples = np.zeros(6 * SAMPLE_RATE, np.int16)
    noise = np.random.default_rng(1).normal(0, 3000, len(samples)).astype(np.int16)
    for start_s, end_s in stretches:
        part = slice(round(start_s * SAMPLE_RATE), round(end_s * SAMPLE_RATE))
        samples[part] = noise[part]
    return samples


def words(*timed):
    return [TimedWord(text, start_s, end_s) for text, start_s, end_s in timed]


def test_sound_without_words_is_found():
    heard = words((" Good", 0.0, 0.4), (" morning.", 0.4, 1.0))
    assert unheard(heard, sound((0.0, 1.0))) == []
    ((start_s, end_s),) = unheard(heard, sound((0.0, 1.0), (2.0, 4.0)))
    assert abs(start_s - 2.0) < 0.05
    assert abs(end_s - 4.0) < 0.05


def test_short_sounds_and_known_ones_are_left():
    assert unheard(words((" Good", 0.0, 0.4)), sound((0.0, 0.4), (2.0, 2.5))) == []
    assert unheard([], sound((0.0, 1.0)), from_s=1.0) == []


def test_sounds_that_are_close_are_one_stretch():
    assert len(unheard([], sound((1.0, 1.4), (1.6, 2.0)))) == 1
    assert unheard([], sound((1.0, 1.4), (1.9, 2.3))) == []


def test_a_word_in_which_nothing_sounds_keeps_its_time():
    heard = words((" post", 0.4, 1.0), (" um", 2.0, 2.5), (" office?", 3.4, 4.0))
    assert within_sound(heard, sound((0.0, 1.4), (3.2, 4.0))) == heard


def test_a_word_does_not_last_into_the_pause_after_it():
    heard = words((" post", 0.4, 1.0), (" office?", 1.0, 3.1), (" This", 3.1, 3.4))
    post, office, this = within_sound(heard, sound((0.0, 1.4), (3.2, 4.0)))
    assert (post, this) == (heard[0], heard[2])
    assert (office.start_s, round(office.end_s, 2)) == (1.0, 1.4)
    assert within_sound(heard, sound((0.0, 4.0))) == heard


def test_a_word_that_lasts_for_seconds_hides_others():
    heard = words((" it.", 0.0, 0.5), (" This", 0.5, 4.5), (" is", 4.5, 4.7))
    short = without_others_time(heard)
    assert (short[0], short[2]) == (heard[0], heard[2])
    assert short[1].end_s == 4.5
    assert short[1].start_s > 3.5
    assert unheard(heard, sound((0.0, 4.7))) == []
    assert len(unheard(short, sound((0.0, 4.7)))) == 1


def test_steady_noise_is_no_speech_without_words_and_a_hoarse_voice_is():
    level = np.repeat([3000.0, 300.0, 300.0 * 10 ** (5 / 20)], 2 * SAMPLE_RATE)
    samples = (np.random.default_rng(0).standard_normal(len(level)) * level).astype(np.int16)
    heard = words((" Good", 0.0, 1.0), (" morning.", 1.0, 2.0))
    ((start_s, end_s),) = unheard(heard, samples)
    assert (round(start_s, 1), round(end_s, 1)) == (4.0, 6.0)


def test_a_long_word_at_the_end_of_a_sentence_was_said_first():
    assert without_others_time(words((" Yes", 0.0, 0.3), (" sir.", 0.3, 4.0)))[1].start_s == 0.3
    (alone,) = without_others_time(words((" Yes.", 0.0, 4.0)))
    assert (alone.start_s, round(alone.end_s, 2)) == (0.0, 0.52)


def test_a_long_first_word_was_said_last():
    (first,) = without_others_time(words((" Yes", 0.0, 4.0)))
    assert (round(first.start_s, 2), first.end_s) == (3.48, 4.0)


def test_what_is_heard_later_takes_its_place_without_the_words_at_the_seams():
    heard = words((" one", 0.0, 0.5), (" two", 0.5, 1.0), (" five", 4.0, 4.5))
    more = words((" Two,", 0.9, 1.2), (" three", 2.0, 2.5), (" four", 2.5, 3.0), (" five.", 3.5, 4.0))
    assert [word.text for word in inserted(heard, more)] == [" one", " two", " three", " four", " five"]


def test_words_that_were_said_twice_stay_so():
    heard = words((" one", 0.0, 0.5), (" no", 0.5, 0.8), (" no", 0.8, 1.0), (" five", 4.0, 4.5))
    more = words((" no", 0.9, 1.0), (" no", 1.0, 1.1), (" three", 2.0, 2.5))
    assert [word.text for word in inserted(heard, more)] == [" one", " no", " no", " three", " five"]


def test_pieces_without_a_blank_belong_to_the_word_before():
    pieces = [" 83", ",", "200", ",000", " people", " well", "-known", "."]
    texts, lengths = joined_pieces(pieces, [1] * len(pieces), spaced=True)
    assert texts == [" 83,200,000", " people", " well-known."]
    assert lengths == [4, 1, 3]


def test_in_text_without_spaces_only_numbers_are_joined():
    pieces = ["是", "3", ".", "5", "%", "，", "好", ".", "7", "-", "8"]
    assert joined_pieces(pieces, [1] * len(pieces), spaced=False)[0] == ["是", "3.5%", "，", "好", ".", "7-8"]

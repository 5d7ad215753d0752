"""Changes of the language inside a segment."""

from dataclasses import replace

import numpy as np

from pipeline.core.asr.language_segmenter import LanguageSegmenter, certain, divided_by_language, stretches
from pipeline.events import SAMPLE_RATE, SpeechSegment

ENGLISH, CHINESE, UNSURE = 9_000, 3_000, 6_000
"""Loudness of noise that stands for speech in a language, or in one that is not certain."""


def speech(*stretches, pause_s=0.35):
    """Noise of some loudness and seconds, with pauses between."""
    random = np.random.default_rng(0)
    parts = []
    for level, seconds in stretches:
        noise = random.choice([-level, level], round(seconds * SAMPLE_RATE))
        parts += [noise.astype(np.int16), np.zeros(round(pause_s * SAMPLE_RATE), np.int16)]
    return np.concatenate(parts[:-1])


class Detector:
    def __init__(self):
        self.lengths_s = []

    def __call__(self, samples):
        self.lengths_s.append(len(samples) / SAMPLE_RATE)
        level = int(np.abs(samples.astype(int)).max())
        return {"en": 0.99, "zh": 0.01} if level == ENGLISH else {"en": 0.5 if level == UNSURE else 0.01, "zh": 0.5}


def segment(samples, *, cut=False):
    return SpeechSegment(3, SAMPLE_RATE, samples, forced_cut=cut, speech_end_sample=SAMPLE_RATE + len(samples))


def times_s(parts):
    return [(round(part.start_s, 1), round(part.end_s, 1)) for part in parts]


def test_a_segment_is_divided_in_the_pause_before_another_language():
    whole = segment(speech((ENGLISH, 1.0), (ENGLISH, 1.0), (CHINESE, 2.0), (ENGLISH, 1.0)), cut=True)
    parts = LanguageSegmenter(Detector()).parts(whole)
    # The pauses are from 2, 3.35 and 5.7 s on.
    assert times_s(parts) == [(1.0, 3.5), (3.5, 5.9), (5.9, 7.0)]
    assert [round(part.speech_end_s, 1) for part in parts] == [3.4, 5.7, 7.0]
    assert [part.forced_cut for part in parts] == [False, False, True]
    assert [part.language for part in parts] == ["en", "zh", "en"]
    assert np.array_equal(np.concatenate([part.samples for part in parts]), whole.samples)


def test_speech_in_one_language_stays_whole():
    for samples in (
        speech((ENGLISH, 1.0), (ENGLISH, 2.0)),
        speech((ENGLISH, 1.0), (UNSURE, 2.0), (ENGLISH, 1.0)),
        speech((UNSURE, 1.0), (CHINESE, 2.0)),
        speech((ENGLISH, 1.0), (CHINESE, 2.0), pause_s=0.15),
    ):
        assert len(LanguageSegmenter(Detector()).parts(segment(samples))) == 1
    one = segment(speech((ENGLISH, 1.0), (CHINESE, 1.0)))
    assert LanguageSegmenter(None).parts(one) == [one]
    both = segment(speech((ENGLISH, 1.0), (UNSURE, 1.0), (CHINESE, 2.0)))
    assert [part.language for part in LanguageSegmenter(Detector()).parts(both)] == ["en", "zh"]
    whole = segment(speech((UNSURE, 1.0), (CHINESE, 2.0)))
    assert [part.language for part in LanguageSegmenter(Detector()).parts(whole)] == ["zh"]


def test_the_language_of_a_single_stretch_is_not_detected():
    detector = Detector()
    assert len(LanguageSegmenter(detector).parts(segment(speech((ENGLISH, 3.0))))) == 1
    assert not detector.lengths_s


def test_of_a_segment_in_progress_each_part_comes_once():
    detector = Detector()
    changes = LanguageSegmenter(detector)
    whole = speech((ENGLISH, 1.0), (CHINESE, 2.0), (ENGLISH, 1.0))
    found = [
        times_s(changes.parts(segment(whole[: round(end_s * SAMPLE_RATE)]))) for end_s in (1.2, 1.6, 2.0, 3.3, 4.7)
    ]
    assert found[0] == [(1.0, 2.2)]
    assert found[1] == [(1.0, 2.2), (2.2, 2.6)]
    assert found[2:] == [[(2.2, 3.0)], [(2.2, 4.3)], [(2.2, 4.5), (4.5, 5.7)]]
    detected = len(detector.lengths_s)
    other = replace(segment(whole), id=4)
    assert len(changes.parts(other)) == 3
    assert len(detector.lengths_s) == detected + 3, "nothing is known of another segment"


def test_a_stretch_is_unsure_while_it_is_short_and_detected_again_when_it_is_longer():
    detector = Detector()
    changes = LanguageSegmenter(detector)
    whole = speech((ENGLISH, 1.0), (UNSURE, 2.0))
    unsure = []
    for end_s in (1.2, 1.6, 1.8, 2.2, 2.8):
        changes.parts(segment(whole[: round(end_s * SAMPLE_RATE)]))
        unsure.append(changes.unsure)
    assert unsure == [False, True, True, True, False]
    assert [round(each, 1) for each in detector.lengths_s] == [1.0, 0.3, 0.9, 1.5]
    changes.parts(replace(segment(speech((UNSURE, 0.6), (ENGLISH, 1.0))), id=4))
    assert not changes.unsure, "what comes last is certain"


def test_silence_before_the_speech_is_not_heard_and_belongs_to_the_first_part():
    detector, said = Detector(), speech((ENGLISH, 1.0), (CHINESE, 2.0))
    silent = np.zeros(SAMPLE_RATE // 2, np.int16)
    whole = replace(segment(np.concatenate([silent, said])), speech_start_sample=SAMPLE_RATE + len(silent))
    parts = divided_by_language(LanguageSegmenter(detector), whole)
    assert times_s(parts) == [(1.0, 2.7), (2.7, 4.8)]
    assert np.array_equal(np.concatenate([part.samples for part in parts]), whole.samples)
    assert [round(each, 1) for each in detector.lengths_s] == [1.0, 2.0]


def test_a_language_is_certain_that_is_far_more_probable_than_each_other():
    assert certain({"en": 0.97, "zh": 0.03}) == "en"
    assert certain({"en": 0.9, "zh": 0.1}) is None
    assert certain({"en": 1.0}) == "en"
    assert certain({}) is None


def test_pauses_are_found_in_noise():
    samples = speech((ENGLISH, 1.0), (CHINESE, 1.0)).astype(np.float64)
    noise = np.random.default_rng(1).standard_normal(len(samples)) * 500
    found = stretches((samples + noise).astype(np.int16))
    assert [(round(begin / SAMPLE_RATE, 2), round(end / SAMPLE_RATE, 2)) for begin, end in found] == [
        (0.0, 1.0),
        (1.34, 2.34),
    ]
    assert stretches(np.zeros(0, np.int16)) == []

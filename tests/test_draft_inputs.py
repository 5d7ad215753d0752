"""Live runs with drafts on difficult audio: gaps, long pauses, other languages, silence, noise and music."""

import asyncio
import dataclasses

import numpy as np
import pytest

from pipeline import (
    AudioLost,
    Models,
    SourceSentence,
    SourceText,
    SpeechTranslator,
    TargetText,
    Transcript,
    Translation,
    load_config,
    load_models,
)
from pipeline.bench.words import edits, scored_units
from pipeline.core.captions.states import OpenTexts
from pipeline.events import SAMPLE_RATE, Word
from tests.apps.test_targets import config_file
from tests.commands import loaded_once
from tests.conftest import CHINESE, PHRASES, read_wav, spoken_texts
from tests.core.vad.test_stage import cut
from tests.drafting import Pace, Slow, Steady, at_once, chunks


@pytest.fixture
def pace(monkeypatch):
    return Pace(monkeypatch)


def run(config, models, source, *, at_event=lambda _: None, live=True):
    """The events of a live run, and its counters. Checks that committed text is not withdrawn."""

    async def work():
        events = []
        async with SpeechTranslator(config, models, live=live) as translator:
            at_once(translator.stats)
            async for event in translator.run(source):
                events.append(event)
                at_event(event)
        return events, translator.stats

    events, stats = asyncio.run(work())
    texts = OpenTexts()
    for event in events:
        texts.push(event)  # raises if committed text is withdrawn
    sentences = [event.sentence for event in events if isinstance(event, SourceSentence)]
    translations = [event for event in events if isinstance(event, Translation)]
    assert sorted(event.sentence for event in translations) == sentences == [*range(len(sentences))]
    for language in config.languages.targets:  # each has a translator of its own, which takes its time
        assert (mine := [event.sentence for event in translations if event.language == language]) == sorted(mine)
    return events, stats


def of(events):
    return [event for event in events if isinstance(event, SourceSentence)]


def without_drafts(config):
    return dataclasses.replace(config, drafts=dataclasses.replace(config.drafts, enabled=False))


# One that is shorter than the silence that ends a segment, and one that ends it in the middle of the sentence.
@pytest.mark.parametrize("end_s", [pytest.param(2.3, marks=pytest.mark.slow), 3.0])
def test_a_gap_in_the_middle_of_a_draft_costs_no_other_text(end_s, demo_config, demo_models, pace):
    begin, end = 2 * SAMPLE_RATE, round(end_s * SAMPLE_RATE)
    speech = read_wav(PHRASES)[: 5 * SAMPLE_RATE].copy()
    speech[begin:end] = 0  # a source replaces what was lost by silence
    recognizer = Slow(demo_models.recognizer, pace, draft_s=0.4, final_s=0.4, slow=range(100))
    drafting = []

    def lose(said):
        if said == begin:
            source.notify(AudioLost(begin / SAMPLE_RATE, 0.0, "full"))
            drafting.append(recognizer.drafting)
        if said == end:
            source.notify(AudioLost(end_s, (end - begin) / SAMPLE_RATE, "there is room again"))

    source = Steady(chunks(speech), pace, lose)
    config = dataclasses.replace(demo_config, drafts=dataclasses.replace(demo_config.drafts, every_ms=500))
    events, stats = run(config, Models(recognizer, demo_models.translations), source)
    assert drafting == [True]
    assert stats.lost_s == pytest.approx(end_s - 2)
    assert sum(isinstance(event, AudioLost) for event in events) == 2
    pace.forget()
    expected, _ = run(without_drafts(demo_config), demo_models, Steady(chunks(speech), pace))
    assert [sentence.sentence for sentence in of(events)] == [sentence.sentence for sentence in of(expected)]
    for found, other in zip(of(events), of(expected), strict=True):
        assert edits(scored_units(other.text, "en"), scored_units(found.text, "en")) <= 1
        assert (found.start_s, found.end_s) == pytest.approx((other.start_s, other.end_s), abs=0.1)


def turns(pause_s):
    """What is said in turns in two languages, by two people with a pause between them, and the audio."""
    english = list(zip(spoken_texts()["phrases"], cut(read_wav(PHRASES), 1600), strict=True))
    chinese = list(zip(spoken_texts()["chinese"], cut(read_wav(CHINESE), 1600), strict=True))
    said = [("en", *english[0]), ("zh", *chinese[0]), ("en", *english[5])]
    pause = np.zeros(round(pause_s * SAMPLE_RATE), np.int16)
    return [(language, text) for language, text, _ in said], np.concatenate(
        [samples for *_, segment in said for samples in (segment.samples, pause)]
    )


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [1, 2])
def test_a_draft_in_another_language_than_the_sentence(wrong, pace, tmp_path, monkeypatch):
    """The first drafts of the Chinese sentence are made English."""
    config = load_config(config_file(tmp_path, ["zh", "en"], source="auto"))
    with loaded_once():
        models = load_models(config)
    recognizer = models.recognizer
    draft, drafts = recognizer.draft, [0]
    english = "My brother likes noodles and fish"

    def drafted(segment, options):
        drafts[0] += segment.id == 1
        if segment.id != 1 or drafts[0] > wrong:
            return draft(segment, options)
        at = segment.start_s
        words = tuple(Word(f" {text}", at + n / 20, at + (n + 1) / 20) for n, text in enumerate(english.split()))
        return Transcript(1, at, segment.end_s, english, "en", heard_s=segment.heard_s, words=words)

    monkeypatch.setattr(recognizer, "draft", drafted)
    said, speech = turns(2.2)  # a long pause: the sentence before has ended
    events, _ = run(config, models, Steady(chunks(speech), pace))
    assert any(isinstance(event, SourceText) and (event.sentence, event.text) == (1, english) for event in events)
    spoken = {sentence.start_s: sentence for sentence in of(events)}
    translations = {event.sentence: event for event in events if isinstance(event, Translation)}
    for sentence in spoken.values():
        assert translations[sentence.sentence].language == ("en" if sentence.language == "zh" else "zh")
    first, second, *_, last = spoken.values()
    for found, (language, text) in zip((first, second, last), said, strict=True):
        assert found.language == language
        assert edits(scored_units(text, language), scored_units(found.text, language)) <= len(text) / 4
    # The translation of the English draft into Chinese is withdrawn.
    shown = [
        event for event in events if isinstance(event, TargetText) and (event.sentence, event.language) == (1, "zh")
    ]
    assert any(event.text for event in shown)
    assert shown[-1].text == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "pause_s", [0.2, 0.35]
)  # with the faint sounds around them, below the silence that ends a segment
@pytest.mark.parametrize("live", [True, False])
def test_sentences_in_two_languages_may_follow_each_other_quickly(live, pause_s, pace, tmp_path):
    config = load_config(config_file(tmp_path, ["zh", "en"], source="auto"))
    said, speech = turns(pause_s)
    with loaded_once():
        models = load_models(config)
    events, stats = run(config, models, Steady(chunks(speech), pace), live=live)
    assert not stats.withheld
    found = of(events)
    assert [sentence.language for sentence in found] == [language for language, _ in said]
    for sentence, (language, text) in zip(found, said, strict=True):
        assert edits(scored_units(text, language), scored_units(sentence.text, language)) <= 1
    translated = {event.sentence: event.language for event in events if isinstance(event, Translation)}
    assert translated == {0: "zh", 1: "en", 2: "zh"}
    first, *_ = cut(read_wav(PHRASES), 1600)
    assert found[1].start_s == pytest.approx(len(first.samples) / SAMPLE_RATE + pause_s, abs=0.3)


SOUNDS = ("silence", "white noise", "pink noise", "hum", "tone", "chords and drums")


def sound(kind, seconds, level=3_000):
    """A sound that is no speech, of ``level`` root mean square, [n] int16."""
    n = round(seconds * SAMPLE_RATE)
    t = np.arange(n) / SAMPLE_RATE
    random = np.random.default_rng(0)
    wave = np.zeros(n)
    if kind == "white noise":
        wave = random.standard_normal(n)
    elif kind == "pink noise":
        spectrum = np.fft.rfft(random.standard_normal(n))
        wave = np.fft.irfft(spectrum / np.sqrt(np.maximum(1, np.arange(len(spectrum)))), n)
    elif kind == "hum":
        wave = np.sum([np.sin(2 * np.pi * 50 * harmonic * t) / harmonic for harmonic in (1, 2, 3, 5, 7)], axis=0)
    elif kind == "tone":
        wave = np.sin(2 * np.pi * 440 * t)
    elif kind == "chords and drums":
        chords = ((262, 330, 392), (349, 440, 523), (392, 494, 587))
        for begin in range(0, n, round(0.4 * SAMPLE_RATE)):
            at = t[: min(n - begin, round(0.4 * SAMPLE_RATE))]
            for note in chords[begin // round(0.4 * SAMPLE_RATE) % 3]:
                for harmonic in range(1, 6):
                    tone = np.sin(2 * np.pi * note * harmonic * at) / harmonic
                    wave[begin : begin + len(at)] += tone * np.exp(-3 * at)
            wave[begin : begin + len(at)] += random.standard_normal(len(at)) * np.exp(-30 * at)
    loud = np.sqrt(np.mean(wave**2))
    return np.clip(wave / max(loud, 1e-9) * level, -32_768, 32_767).astype(np.int16)


def heard(config, models, samples, pace):
    """Number of drafts, and the events of text that is shown."""
    pace.forget()
    events, stats = run(config, models, Steady(chunks(samples), pace))
    return stats.drafts, [event for event in events if isinstance(event, SourceText | TargetText)]


def test_silence_noise_and_music_are_not_recognised_at_all(demo_config, demo_models, pace):
    for kind in SOUNDS:
        for level in (300, 3_000):
            assert heard(demo_config, demo_models, sound(kind, 4, level), pace) == (0, [])


@pytest.mark.slow
def test_noise_and_music_that_are_taken_for_speech_show_no_draft(demo_config, demo_models, pace):
    """webrtcvad alone takes them for speech."""
    config = dataclasses.replace(demo_config, vad=dataclasses.replace(demo_config.vad, detector="webrtc"))
    for kind in SOUNDS[1:]:
        drafts, shown = heard(config, demo_models, sound(kind, 1.8), pace)
        assert drafts >= 2, kind
        assert shown == [], kind

"""Measure the shipped demo models, and write their cards from the figures.

    python models/recipes/evaluate.py --pairs cmn.txt --work /tmp/evaluation [--only NAME] [--human DIR]

Recomputes every figure in ``models/demo/*/README.md`` from the shipped files, through the pipeline itself, on sentences
that no training saw. The test speech is synthesised under --work first. ``--human`` names a folder of recordings of
people, each with its transcript beside it (``x.wav``, ``x.txt``), for the recogniser's card.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from needs import require_packages

require_packages("opencc", "sacrebleu")

import numpy as np
from card import SHIPPED, table, write_card
from corpora import spoken_pairs, translation_pairs, unseen_numbers
from lineage import Shape, check_tests, training_of
from measure import bleu_chrf, word_error_rate
from phrasebook import prices
from signs import GAP_S, SILENT, pieces, silent_share, timestamps
from speech import Clip, load_speech, make_speech, music, noise, room
from tatoeba import nearest, spoken
from voices import SAMPLE_RATE, TRAINING_VOICES, UNSEEN_VOICES, english_voice, require_voices, unseen_voice

from pipeline import Models, SpeechTranslator, load_config
from pipeline.asr.whisper import WhisperRecognizer
from pipeline.audio.recording import Recording
from pipeline.config import AsrConfig
from pipeline.events import Delta, SpeechSegment, Transcript
from pipeline.nmt.model import MarianModel

T = TypeVar("T")

NAMES = {"en": "English", "zh": "Chinese"}
PARTS = ("asr-en", "nmt-en-zh", "nmt-zh-en", "chain")
TEST_SPEECH = {
    "phrasebook-seen": "phrasebook, English voices of the training",
    "phrasebook-unseen": "phrasebook, unseen voices",
    "tatoeba-seen": "Tatoeba, English voices of the training",
    "tatoeba-unseen": "Tatoeba, unseen voices",
}
CHAIN = 100  # test sentences of either kind that go through the whole chain
MINUTES = 10  # of each sound in which nobody speaks


# --- translators ----------------------------------------------------------------------------------------------------


def translator(directory: Path, pairs: Path) -> None:
    """Measure the translation model in ``directory`` and write its card."""
    facts = json.loads((directory / "training.json").read_text())
    source, target = facts["direction"].split("-")
    training, phrases, test, test_phrases = translation_pairs(pairs, facts["direction"])
    check_tests(facts, {text for text, _ in test})
    began = time.process_time()
    model = MarianModel.load(directory, cached_sentences=0)
    load_s, rows = time.process_time() - began, []

    def score(name: str, found: list[str], rows_of: list[tuple[str, str]]) -> dict[str, Any]:
        figures = bleu_chrf(found, [wanted for _, wanted in rows_of], target)
        rows.append((name, figures["sentences"], figures["bleu"], figures["chrf"]))
        return figures

    def translated(rows_of: list[tuple[str, str]]) -> list[str]:
        return [model.translate(text, source=source, target=target) for text, _ in rows_of]

    began = time.process_time()
    found = translated(test)
    per_sentence_ms = 1000 * (time.process_time() - began) / len(test)
    signatures = score("Tatoeba", found, test)
    score("Tatoeba, spoken style", translated([(spoken(text), wanted) for text, wanted in test]), test)
    score("Tatoeba: most similar training sentence", nearest(training + phrases, [text for text, _ in test]), test)
    score("phrasebook", translated(test_phrases), test_phrases)
    exact = []
    for told in (prices(), unseen_numbers()):
        asked = told if source == "en" else [(chinese, english) for english, chinese in told]
        right = sum(text == wanted for text, (_, wanted) in zip(translated(asked), asked, strict=True))
        exact.append(f"{100 * right / len(asked):.1f} %")
    config = json.loads((directory / "config.json").read_text())
    write_card(
        directory,
        f"Demo translator, {NAMES[source]} → {NAMES[target]}",
        {
            "What it is": f"A small Marian (transformers' `MarianMTModel`): {config['encoder_layers']} + "
            f"{config['decoder_layers']} layers, d_model {config['d_model']}, in the streaming layout that `python -m "
            "pipeline.models compile --weights int8` wrote from the trained checkpoint. It makes the demo work without "
            "a download; it is no general translator.",
            "Trained on": facts["trained_on"],
            "Measured": f"Greedy, through the pipeline, the shipped files. {facts['held_out']} The third line is what "
            "copying the translation of the most similar training sentence scores: the model must beat it. The "
            "phrasebook's test sentences are unseen combinations of seen phrases.\n\n"
            + table(("test set", "sentences", "BLEU", "chrF"), rows)
            + f"\n\nOf a jacket's prices from 2 to 999 dollars {exact[0]} are translated exactly, of other sentences with these "
            f"numbers {exact[1]}; the last training had none of either."
            f"\n\nsacrebleu signatures: `{signatures['bleu_signature']}`; `{signatures['chrf_signature']}`\n\n"
            f"On one core it loads in {load_s:.2f} s and takes {per_sentence_ms:.0f} ms a sentence (processor time).",
            "Limits": "Outside the phrasebook it is often wrong: rare words are invented, long sentences lose their thread. "
            "Numbers are translated as words, not digits. Chinese is in simplified script.",
            "Licence": "Apache-2.0 for the weights; the attribution above goes with them.",
        },
    )
    print(table(("test set", "sentences", "BLEU", "chrF"), rows))


# --- recogniser -----------------------------------------------------------------------------------------------------


def speak_tests(folder: Path, pairs: Path) -> None:
    """Synthesise the test speech into ``folder``; what is there is kept."""
    drawn = (voice for engine in TRAINING_VOICES.values() if engine.recorded for voice in engine.voices)
    require_voices((*drawn, *UNSEEN_VOICES))
    _, tatoeba, phrasebook = spoken_pairs(pairs, phrases=0)
    sets = {}
    for name, rows in (("tatoeba", tatoeba), ("phrasebook", phrasebook)):
        texts = [english for english, _ in rows]
        sets[f"{name}-seen"] = (texts[::2], english_voice)
        sets[f"{name}-unseen"] = (texts, unseen_voice)
    make_speech(folder, sets, seed=1)


def test_texts(speech: Path) -> set[str]:
    return {clip.text for name in TEST_SPEECH for clip in load_speech(speech, name)}


def test_clips(speech: Path, name: str, facts: dict[str, Any]) -> list[Clip]:
    """One of ``TEST_SPEECH``, without what an earlier training of the weights had heard."""
    known = frozenset(facts.get("heard_before", ()))
    return [clip for clip in load_speech(speech, name) if clip.text not in known]


@cache  # a process loads a model once
def loaded(config: AsrConfig, directory: Path) -> WhisperRecognizer:
    return WhisperRecognizer(config, "en", directory)


def heard(config: AsrConfig, directory: Path, samples: np.ndarray) -> tuple[Transcript, float]:
    """The transcript of int16 samples with 0.3 s of silence on either side, and the processor time that it took, seconds.

    It may be one that is held back.
    """
    recognizer, padded = loaded(config, directory), np.pad(samples, 3 * SAMPLE_RATE // 10)
    began = time.process_time()
    return recognizer.transcribe(SpeechSegment(0, 0, padded)), time.process_time() - began


def in_pairs(clips: list[Clip]) -> list[Clip]:
    """Two sentences a clip, with a pause between them, as segments that are joined hold them."""
    pause = np.zeros(int(GAP_S * SAMPLE_RATE), np.int16)
    return [
        dataclasses.replace(a, text=f"{a.text} {b.text}", samples=np.concatenate([a.samples, pause, b.samples]))
        for a, b in zip(clips[::2], clips[1::2], strict=False)
    ]


def disturbed(clips: list[Clip]) -> list[Clip]:
    """The same clips over noise at 10 dB in a room, one seed."""
    rng = np.random.default_rng(5)
    found = []
    for clip in clips:
        audio = room(rng, np.asarray(clip.samples, np.float64) / 32768)
        power = float(np.sqrt(np.mean(np.square(audio))))
        audio = 0.5 * (audio + noise(rng, len(audio)) * power * 10 ** (-10 / 20))
        found.append(dataclasses.replace(clip, samples=(audio.clip(-1, 1) * 32767).astype(np.int16)))
    return found


def human_clips(folder: Path) -> list[Clip]:
    """Recordings with a transcript of the same name, or ``transcript.txt`` for a folder's only one. Exits if there are none."""
    clips = []
    for path in sorted(folder.rglob("*.wav")):
        text = path.with_suffix(".txt")
        if not text.exists() and len(list(path.parent.glob("*.wav"))) == 1:
            text = path.with_name("transcript.txt")
        if text.exists():
            recording, parts = Recording(path), []
            while (chunk := recording.read()) is not None:
                parts.append(chunk)
            clips.append(Clip(text.read_text("utf-8").strip(), "human", np.concatenate(parts)))
    if not clips:
        sys.exit(f"--human {folder} has no recording x.wav with its transcript x.txt beside it")
    return clips


def recogniser(directory: Path, speech: Path, human: list[Clip] | None = None) -> None:
    """Measure the speech model in ``directory`` on the clips in ``speech`` and write its card."""
    facts = training_of(directory)
    check_tests(facts, test_texts(speech))
    config = load_config("demo").asr
    quick = dataclasses.replace(config, beam_size=1)
    began = time.process_time()
    WhisperRecognizer(config, "en", directory)
    load_s = time.process_time() - began
    voices: dict[str, list[tuple[str, str]]] = defaultdict(list)
    rows: list[tuple[object, ...]] = []
    held: Counter[tuple[bool, bool]] = Counter()
    took = lasted = 0.0

    # As many processes as there are cores, begun anew: a loaded recogniser's threads would not come along.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:

        def score(name: str, clips: list[Clip], by: AsrConfig = config) -> tuple[list[Transcript], float]:
            samples = [np.array(clip.samples) for clip in clips]
            found, seconds = zip(*pool.map(partial(heard, by, directory), samples), strict=True)
            rate = word_error_rate([clip.text for clip in clips], [transcript.text for transcript in found])
            rows.append((name, len(clips), f"{rate:.1f} %"))
            return list(found), sum(seconds)

        for name, label in TEST_SPEECH.items():
            clips = test_clips(speech, name, facts)
            found, seconds = score(label, clips)
            took += seconds
            lasted += sum(len(clip.samples) for clip in clips) / SAMPLE_RATE
            for clip, transcript in zip(clips, found, strict=True):
                right = word_error_rate([clip.text], [transcript.text]) == 0
                held[right, transcript.rejected is not None] += 1
                if name == "tatoeba-unseen":
                    voices[clip.voice].append((clip.text, transcript.text))
        unseen = test_clips(speech, "phrasebook-unseen", facts)
        score("phrasebook, unseen voices, one hypothesis", unseen, quick)
        score("phrasebook, unseen voices, two sentences in a segment", in_pairs(unseen))
        score("phrasebook, unseen voices, noise at 10 dB in a room", disturbed(unseen))
        if human is not None:
            score("people reading prose (out of domain)", human)
    by_voice = [
        (voice, len(found), f"{word_error_rate(*map(list, zip(*found, strict=True))):.1f} %")
        for voice, found in sorted(voices.items())
    ]
    windows, split, error_s = timestamps(directory, unseen)
    silent = [
        (name, f"{100 * silent_share(directory, pieces(sound, 20)):.0f} %")
        for name, sound in sounds_without_speech().items()
    ]
    silent.append(("speech", f"{100 * silent_share(directory, [clip.samples / 32768 for clip in unseen]):.0f} %"))
    header = ("test set", "recordings", "word error rate")
    write_card(
        directory,
        "Demo speech recogniser, English",
        {
            "What it is": f"A model of Whisper's architecture ({Shape(**facts['shape'])}, a vocabulary of its own), trained "
            "from scratch and converted to CTranslate2 int8 for faster-whisper. It makes the demo work without a "
            f"download. {facts['domain']}",
            "Trained on": facts["trained_on"],
            "Measured": f"Through faster-whisper as the demo is configured (beams: {config.beam_size}), the shipped int8 "
            "files; transcripts that it would hold back as uncertain are counted, too. "
            f"{facts['held_out']}\n\n"
            + table(header, rows)
            + f"\n\nOf {held[True, False] + held[True, True]} right transcripts of the first four sets {held[True, True]} would be held "
            f"back, of {held[False, False] + held[False, True]} wrong ones {held[False, True]}. "
            f"On one core it loads in {load_s:.2f} s and takes {took / lasted:.2f} of the audio's time (processor time).\n\n"
            "The unseen voices on Tatoeba's sentences:\n\n"
            + table(("voice", *header[1:]), by_voice)
            + f"\n\nWith timestamps, {split} of {windows} windows of two sentences came back as two segments, whose times were off "
            f"by {error_s:.2f} s (median). Windows whose no-speech probability is above {SILENT}:\n\n"
            + table(("of", "called silent"), silent),
            "Limits": "Human speech is out of its domain: what it writes then is mostly wrong. Voices unlike those of the training, "
            "noise and rare words are heard worse; numbers that sound alike (fifteen, fifty) are confused. It writes numbers as words, and "
            "knows no other language.",
            "Licence": "Apache-2.0.",
        },
    )
    print(table(header, rows), table(("voice", *header[1:]), by_voice), sep="\n\n")


# --- the chain ------------------------------------------------------------------------------------------------------


async def through_chain(models: Models, samples: np.ndarray) -> tuple[list[Transcript], str]:
    """Transcripts and translation of int16 samples, as the demo would show them."""
    transcripts, text = [], ""
    async with SpeechTranslator(load_config("demo"), models) as running:

        async def feed() -> None:
            await running.feed(samples)
            await running.end()

        feeding = asyncio.create_task(feed())
        async for event in running.events():
            if isinstance(event, Transcript):
                transcripts.append(event)
            elif isinstance(event, Delta):
                text += event.text
        await feeding
    return transcripts, text


def demo_models() -> Models:
    config = load_config("demo")
    recognizer = WhisperRecognizer(config.asr, "en", SHIPPED / "asr-en")
    return Models(recognizer, MarianModel.load(SHIPPED / "nmt-en-zh"))


def evenly(rows: list[T], count: int) -> list[T]:
    """``count`` of the rows, spread over all of them: Tatoeba's are in order of length."""
    count = min(count, len(rows))
    return [rows[i * len(rows) // count] for i in range(count)]


def recognition_costs(models: Models, clips: list[Clip], chinese: dict[str, str], samples: int) -> tuple[object, ...]:
    """WER of what was translated, and BLEU and chrF of the translations beside those of the true transcripts."""
    results = []
    for clip in clips:
        transcripts, text = asyncio.run(through_chain(models, np.pad(clip.samples, SAMPLE_RATE)))
        heard = " ".join(part.text for part in transcripts if part.rejected is None)
        results.append((clip, heard, text, models.translation.translate(clip.text)))
    for clip, heard, text, _ in evenly(results, samples):
        print(f"{clip.voice}\n  said   {clip.text}\n  heard  {heard}\n  shown  {text}")
    wanted = [chinese[clip.text] for clip in clips]
    rate = word_error_rate([clip.text for clip in clips], [heard for _, heard, _, _ in results])
    live = bleu_chrf([text for _, _, text, _ in results], wanted, "zh")
    told = bleu_chrf([text for *_, text in results], wanted, "zh")
    return len(clips), f"{rate:.1f} %", live["bleu"], live["chrf"], told["bleu"], told["chrf"]


def sounds_without_speech() -> dict[str, np.ndarray]:
    """``MINUTES`` of each, float64 [n] in [-1, 1]."""
    rng, count = np.random.default_rng(6), MINUTES * 60 * SAMPLE_RATE
    t = np.arange(count) / SAMPLE_RATE
    return {
        "silence": np.zeros(count),
        "white noise": 0.05 * rng.standard_normal(count),
        "faint noise": 0.003 * rng.standard_normal(count),
        "mains hum": 0.07 * sum(np.sin(2 * np.pi * 50 * k * t) / k for k in (1, 2, 3, 5)),
        "music-like tones": 0.1 * np.concatenate([music(rng, 10 * SAMPLE_RATE) for _ in range(MINUTES * 6)]),
    }


def chain(speech: Path, pairs: Path, samples: int) -> None:
    """What recognition costs, and what is shown where nobody speaks; written to ``models/demo/README.md``."""
    models = demo_models()
    _, tatoeba, phrasebook = spoken_pairs(pairs, phrases=0)
    facts, costs = training_of(SHIPPED / "asr-en"), []
    check_tests(facts, test_texts(speech))
    for label, rows in (("phrasebook", phrasebook), ("Tatoeba", tatoeba)):
        clips = evenly(test_clips(speech, f"{label.lower()}-unseen", facts), CHAIN)
        costs.append((label, *recognition_costs(models, clips, dict(rows), samples)))
    invented: list[tuple[object, ...]] = []
    for name, sound in sounds_without_speech().items():
        transcripts, text = asyncio.run(through_chain(models, (sound.clip(-1, 1) * 32767).astype(np.int16)))
        shown = [part.text for part in transcripts if part.rejected is None]
        invented.append((name, MINUTES, len(transcripts), len(shown)))
        print(name, shown[:5], text[:80])
    header = ("sentences of", "number", "WER", "BLEU heard", "chrF heard", "BLEU said", "chrF said")
    text = f"""# The demo's chain, measured

Recordings of unseen voices, one sentence each, through VAD, recogniser and translator as `configs/demo.toml` sets them.
`heard` is the translation of what the recogniser made of them, `said` that of the true transcript: the difference is
what recognition costs. WER compares what was said with what reached the translator: the words of sentences that are held back as
uncertain count as missed.

{table(header, costs)}

Where nobody speaks nothing should be shown:

{table(("sound", "minutes", "segments that reached the recogniser", "shown"), invented)}

Written by `models/recipes/evaluate.py`.
"""
    (SHIPPED / "README.md").write_text(text, "utf-8")
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="where the test speech is kept")
    parser.add_argument("--human", type=Path, help="recordings of people with their transcripts")
    parser.add_argument("--samples", type=int, default=20, help="transcripts and translations of either kind to print")
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args()
    wanted = {options.only} if options.only else set(PARTS)
    human = human_clips(options.human) if options.human else None
    for name in sorted(wanted & {"nmt-en-zh", "nmt-zh-en"}):
        if (SHIPPED / name / "training.json").exists():
            translator(SHIPPED / name, options.pairs)
        else:
            print(f"{name} is not there yet; models/recipes/nmt.py makes it")
    if wanted & {"asr-en", "chain"}:
        speak_tests(options.work / "speech", options.pairs)
    if "asr-en" in wanted:
        recogniser(SHIPPED / "asr-en", options.work / "speech", human)
    if "chain" in wanted:
        chain(options.work / "speech", options.pairs, options.samples)


if __name__ == "__main__":
    main()

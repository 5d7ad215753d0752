"""Speak sentences with invented names: what the recognition of a glossary is measured with, and a recording of the tests.

    npm pack kokoro-js@1.2.1
    python models/recipes/names.py FOLDER --voices kokoro-js-1.2.1.tgz
    speech-translate translate FOLDER --output-dir out --config demo --glossary FOLDER/names.tsv

Writes 56 sentences with 20 names to FOLDER (NAME.wav, 16 kHz mono, and NAME.txt), and a glossary of these and 80 other invented names.
With --test, writes tests/media/audio/names.opus too: three of the sentences.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
from demo_audio import ROOT, joined, write
from voices import SAMPLE_RATE, require_voices, speak

NAMES = (
    "Velmora", "Quindarra", "Zeptafin", "Brontik", "Oskelund", "Taravelle", "Mirexo", "Dunwick Labs", "Kestrava", "Ilvanna Prosk",
    "Yorrelin", "Gralbeck", "Sunevra", "Plinquist", "Orbitane", "Hexavale", "Norveth", "Cassimund", "Thessaly Varn", "Wexobar",
)  # fmt: skip
SENTENCES = (
    "We decided to move the whole project to {}.",
    "Yesterday I had a long talk with {} about the budget.",
    "Please send the invoice to {} before Friday.",
    "I think {} will open a new office in Berlin next year.",
    "The people at {} did not answer my letter.",
)
VOICES = ("af_heart", "am_michael", "bf_emma", "bm_george", "af_bella")
OTHERS = 80
"""Names of the glossary that nobody says."""
TESTED = ("03-af_bella", "01-bm_george", "05-af_heart")
"""The sentences in the recording of the tests."""
PAUSE_S = 1.1
_PARTS = (
    ("Tor", "Vel", "Mar", "Quo", "Lin", "Zan", "Fer", "Dro", "Sil", "Bac", "Hol", "Wim", "Pra", "Ken", "Jul", "Gor"),
    ("a", "i", "o", "en", "ur", "ili", "emo", "ast"),
    ("dan", "vik", "mont", "leth", "sor", "gram", "pex", "tine", "wood", "field", "bury", "nova"),
)


def spoken() -> Iterator[tuple[str, str, str]]:
    """The stem, voice and text of each sentence: five names by all voices, one by three, the others by two."""
    for number, name in enumerate(NAMES):
        several = {number % 5, (number + 2) % 5} | ({1} if number == 5 else set())
        for voice in range(5) if number < 5 else sorted(several):
            yield f"{number:02}-{VOICES[voice]}", VOICES[voice], SENTENCES[(number + voice) % 5].format(name)


def glossary() -> list[str]:
    """All names, in a random order."""
    chance = random.Random(3)
    others: dict[str, None] = {}
    while len(others) < OTHERS:
        others["".join(chance.choice(part) for part in _PARTS)] = None
    names = [*NAMES, *others]
    random.Random(1).shuffle(names)
    return names


def write_opus(path: Path, samples: np.ndarray) -> None:
    """Write int16 samples [n] at 16 kHz with 24 kbit/s."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libopus", SAMPLE_RATE, layout="mono")
        stream.bit_rate = 24_000
        frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        frame.sample_rate = SAMPLE_RATE
        container.mux([*stream.encode(frame), *stream.encode(None)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the sentences and the glossary are written")
    parser.add_argument("--voices", type=Path, required=True, help="the archive of the npm package kokoro-js")
    parser.add_argument("--test", action="store_true", help="write tests/media/audio/names.opus too")
    options = parser.parse_args()
    require_voices(options.voices)
    options.folder.mkdir(parents=True, exist_ok=True)
    clips = {}
    for stem, voice, text in spoken():
        clips[stem] = speak(text, voice, options.voices)
        write(options.folder / f"{stem}.wav", (clips[stem].clip(-1, 1) * 32767).astype(np.int16))
        (options.folder / f"{stem}.txt").write_text(text, "utf-8")
    (options.folder / "names.tsv").write_text("".join(f"{name}\t=\n" for name in glossary()), "utf-8")
    if options.test:
        samples = joined([clips[stem] for stem in TESTED], 0, lambda _: PAUSE_S)
        write_opus(ROOT / "tests" / "media" / "audio" / "names.opus", samples)


if __name__ == "__main__":
    main()

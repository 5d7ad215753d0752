"""Make the recordings of the demo and the tests: sentences by synthetic voices, and a passage read by a person.

    npm pack kokoro-js@1.2.1
    pip download --no-deps --no-binary :all: pocketsphinx==5.1.1
    python models/recipes/demo_audio.py --voices kokoro-js-1.2.1.tgz --reading pocketsphinx-5.1.1.tar.gz

Writes examples/audio/*.wav, examples/audio-pt/lisbon.wav, tests/media/audio/phrases.wav and tests/media/audio/chinese.wav (16 kHz mono, with pauses as in a conversation),
and tests/media/audio/texts.json. Without --reading, novel.wav is not changed.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
import wave
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from heldout import CHINESE, PORTUGUESE, READING, RECORDINGS, TEST_SENTENCES
from voices import SAMPLE_RATE, require_voices, speak

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "audio"
TESTS = ROOT / "tests" / "media" / "audio"
LEAD_S = 0.6  # silence before the first sentence
PAUSE_S = (1.0, 1.3)  # range of the random pause after each sentence
SPEED = 1.1  # Kokoro reads slowly
LEVEL = 0.08  # root mean square of every sentence; full scale is 1
NOISE = 3e-4  # root mean square of the room noise
EDGE = 0.01  # amplitude below which samples before and after a sentence count as silence
MARGIN_S = 0.05  # length of that silence that is kept


def trimmed(samples: np.ndarray) -> np.ndarray:
    """Remove most of the silence that Kokoro adds before and after a sentence."""
    loud = np.flatnonzero(np.abs(samples) > EDGE)
    margin = int(MARGIN_S * SAMPLE_RATE)
    return samples[max(loud[0] - margin, 0) : loud[-1] + margin]


def joined(clips: Iterable[np.ndarray], seed: int, pause_s: Callable[[np.random.Generator], float]) -> np.ndarray:
    """Sentences in sequence with pauses, at equal levels, with faint room noise: int16 samples [n] at 16 kHz."""
    rng = np.random.default_rng(seed)
    parts = [np.zeros(int(LEAD_S * SAMPLE_RATE))]
    for clip in clips:
        speech = trimmed(clip)
        speech *= LEVEL / np.sqrt(np.mean(speech**2))
        parts += [speech, np.zeros(int(pause_s(rng) * SAMPLE_RATE))]
    audio = np.concatenate(parts)
    audio += rng.standard_normal(len(audio)) * NOISE
    return (audio.clip(-1, 1) * 32767).astype(np.int16)


def recording(lines: tuple[tuple[str, ...], ...], seed: int, voices: Path) -> np.ndarray:
    """Speak the lines (voice, text and, if Chinese, phonemes); see ``joined``."""
    clips = (speak(text, voice, voices, SPEED, *spoken) for voice, text, *spoken in lines)
    return joined(clips, seed, lambda rng: rng.uniform(*PAUSE_S))


def reading(package: Path) -> np.ndarray:
    """Concatenate the clips of READING from the source distribution of pocketsphinx, unchanged: int16 samples [n]."""
    with tarfile.open(package) as archive:
        members = {Path(name).stem: name for name in archive.getnames() if name.endswith(".wav")}
        clips = []
        for stem, _ in READING:
            with wave.open(io.BytesIO(archive.extractfile(members[stem]).read())) as file:
                clips.append(np.frombuffer(file.readframes(file.getnframes()), np.int16))
    return np.concatenate(clips)


def write(path: Path, samples: np.ndarray) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
        file.writeframes(samples.tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voices", type=Path, required=True, help="the archive of the npm package kokoro-js")
    parser.add_argument("--reading", type=Path, help="the source distribution of pocketsphinx")
    options = parser.parse_args()
    require_voices(options.voices)
    for seed, (stem, lines) in enumerate(RECORDINGS):
        write(EXAMPLES / f"{stem}.wav", recording(lines, seed, options.voices))
    write(EXAMPLES.with_name("audio-pt") / "lisbon.wav", recording(PORTUGUESE, 4, options.voices))
    write(TESTS / "phrases.wav", recording(TEST_SENTENCES, 2, options.voices))
    write(TESTS / "chinese.wav", recording(CHINESE, 3, options.voices))
    if options.reading:
        write(EXAMPLES / "novel.wav", reading(options.reading))
    recordings = (
        *RECORDINGS,
        ("lisbon", PORTUGUESE),
        ("phrases", TEST_SENTENCES),
        ("chinese", CHINESE),
        ("novel", READING),
    )
    texts = {stem: [text for _, text, *_ in lines] for stem, lines in recordings}
    (TESTS / "texts.json").write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()

"""The recipe's GnuSpeech: whose body speaks, and how."""

from __future__ import annotations

import random
from pathlib import Path

import gnuspeech
import pytest
from voices import TRAINING_VOICES, english_voice, random_voice


def test_a_body_is_the_same_whenever_it_is_asked_for_and_unlike_the_others() -> None:
    bodies = [gnuspeech.body(str(lot)) for lot in range(400)]
    assert bodies[7] == gnuspeech.body("7")
    assert len({body["radius_3_coef"] for body in bodies}) == len(bodies)
    assert all(10 <= body["vocal_tract_length"] <= 19 for body in bodies)


def test_longer_tracts_speak_lower() -> None:
    bodies = [gnuspeech.body(str(lot)) for lot in range(400)]
    short = [b["reference_glottal_pitch"] for b in bodies if b["vocal_tract_length"] < 13]
    long = [b["reference_glottal_pitch"] for b in bodies if b["vocal_tract_length"] > 17]
    assert sum(short) / len(short) > sum(long) / len(long) + 12


def test_how_a_text_is_said_depends_on_the_text_and_the_body_alone() -> None:
    said = gnuspeech.intonation("7", "Yes.", 1.25, 1.0)
    assert said == gnuspeech.intonation("7", "Yes.", 1.25, 1.0)
    assert said["tempo"] == 0.8
    assert said["tonic_range"] not in {
        gnuspeech.intonation(lot, text, 1.25, 1.0)["tonic_range"] for lot, text in (("8", "Yes."), ("7", "No."))
    }
    assert gnuspeech.intonation("7", "Yes.", 1.25, 1.2)["pitch_offset"] > said["pitch_offset"]


def test_settings_are_replaced_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "settings.txt"
    path.write_text("# cm\ntempo = 1.0\nnot_tempo = 1.0\n")
    assert gnuspeech._with(path, {"tempo": 1.25}) == "# cm\ntempo = 1.25\nnot_tempo = 1.0\n"
    with pytest.raises(ValueError, match="has no pace"):
        gnuspeech._with(path, {"pace": 1.0})


def test_no_voice_of_gnuspeechs_is_drawn_among_the_others() -> None:
    rng = random.Random(1)
    drawn = {voice(rng).partition(":")[0] for voice in (random_voice, english_voice) for _ in range(2_000)}
    assert drawn == TRAINING_VOICES.keys() - {"gnuspeech"}

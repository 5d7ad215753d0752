"""The student of the other direction marks translations in which something is missing."""

from dataclasses import replace

import pytest

from pipeline.config import load_config
from pipeline.events import SourceSentence, Translation
from pipeline.loading import load_translations
from pipeline.nmt.judge import judged_by, other_direction
from pipeline.nmt.load import load_translation_model
from pipeline.nmt.options import NmtConfig
from pipeline.sinks.jsonl import line, read_event

RIGHT = [
    ("He is not guilty.", "Ele não é culpado."),
    ("I would like three tickets to Berlin, please.", "Gostaria de três bilhetes para Berlim, por favor."),
    ("Where is the station?", "Onde está a estação?"),
]
WRONG = [
    ("The red house is very big.", "A casa é muito grande."),
    ("The capital of Moldova is Kishinev.", "A capital da Moldávia é a língua local."),
    ("The bill is 253 euros and forty cents.", ""),
]


@pytest.fixture(scope="module")
def pt_en():
    return load_translation_model("pt", "en", NmtConfig("firefox/pt-en-tiny"))


def test_losses_are_doubtful_and_right_translations_are_not(pt_en):
    doubtful = judged_by(pt_en, ("en", "pt"))
    assert [doubtful(*each) for each in RIGHT] == [False] * 3
    assert [doubtful(*each) for each in WRONG] == [True] * 3
    assert not doubtful("Thanks.", "Obrigado.")


def test_a_configured_judge_marks_final_translations_alone(demo_pt):
    config = load_config("demo")
    judged = load_translations(replace(config, nmt=replace(config.nmt, judge=True)))["pt"]

    def found(model, text, **options):
        *_, last = model.stream(SourceSentence(0, "en", text), "pt", **options)
        return last.doubtful

    lost = "The red house is very big."
    assert found(judged, lost)
    assert not found(judged, lost, draft=True)
    assert not found(judged, RIGHT[0][0])
    assert not found(demo_pt, lost)


@pytest.fixture
def demo_pt():
    return load_translations(load_config("demo"))["pt"]


def test_the_mark_is_in_jsonl_only_where_it_is_set():
    plain = Translation(0, "pt", "a")
    assert "doubtful" not in line(plain)
    assert read_event(
        {"type": "translation", "sentence": 0, "language": "pt", "text": "a", "doubtful": True}
    ) == replace(plain, doubtful=True)


def test_a_student_without_its_other_direction_has_no_judge(pt_en, monkeypatch):
    assert other_direction(pt_en) is not None
    monkeypatch.setattr("pipeline.nmt.judge.local_student", lambda name: None)
    assert other_direction(pt_en) is None

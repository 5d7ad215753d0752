"""The student of the other direction finds translations in which something is missing; others are tried, and what stays so is marked."""

from dataclasses import replace

import pytest

from pipeline.config import load_config
from pipeline.events import SourceSentence, Translation
from pipeline.loading import SharedModels, load_translations
from pipeline.nmt.compiled import other_direction
from pipeline.nmt.decode.generation import Token
from pipeline.nmt.judge import Judge
from pipeline.nmt.load import find_translation_models, load_translation_model, loaded_as
from pipeline.nmt.options import NmtConfig
from pipeline.nmt.translator import TranslationRequest
from pipeline.sinks.jsonl import line, read_event

RIGHT = [
    ("He is not guilty.", "Ele não é culpado."),
    ("I would like three tickets to Berlin, please.", "Gostaria de três bilhetes para Berlim, por favor."),
    ("The price is 50 euros.", "O preço é de 50 euros."),
]
WRONG = [
    ("The red house is very big.", "A casa é muito grande."),
    ("The capital of Moldova is Kishinev.", "A capital da Moldávia é a língua local."),
    ("The bill is 253 euros and forty cents.", ""),
]
LOST = "I saw him sawing a tree."  # no source helps: "Eu o vi uma árvore."


@pytest.fixture(scope="module")
def models():
    """English to Portuguese, without and with a judge; in fp32, since with 8 bits a processor's rounding may decide."""
    plain, judged, back = (
        load_translation_model(*pair.split("-"), NmtConfig(f"firefox/{pair}-tiny", weights="fp32"))
        for pair in ("en-pt", "en-pt", "pt-en")
    )
    judged.judge = Judge(judged, back)
    return plain, judged


def translation(model, text, **options):
    *_, end = model.stream(TranslationRequest(SourceSentence(0, "en", text), "pt", **options))
    return end


@pytest.mark.slow
def test_the_source_is_hardly_found_where_words_are_lost(models):
    judge = models[1].judge
    right, wrong = ([judge.found(*each) for each in pairs] for pairs in (RIGHT, WRONG))
    assert max(wrong) < -1.9 < -1.3 < min(right)


def test_where_something_is_lost_another_source_is_tried(models):
    plain, judged = models
    mended = 0
    for text in (
        "The food isn't very good here.",
        "There are more clouds today than yesterday.",
        "Tom quietly opened the door.",
    ):
        *shown, end = judged.stream(TranslationRequest(SourceSentence(0, "en", text), "pt"))
        before, after = (judged.judge.found(text, each) for each in (plain.translate(text), end.text))
        assert before < -1.3
        assert after >= before
        mended += after > -1.3
        assert shown[-1].text == end.text
        assert shown[-1].complete
        assert end.doubtful == (after < -1.9)
    assert mended >= 1


def test_what_stays_doubtful_is_marked_but_not_in_drafts(models):
    plain, judged = models
    assert translation(judged, LOST).doubtful
    assert translation(judged, LOST).doubtful  # from the cache
    assert translation(judged, f"That is right. {LOST} I know.").doubtful
    assert not translation(judged, LOST, draft=True).doubtful
    assert not translation(plain, LOST).doubtful


@pytest.mark.parametrize(("likelihood", "taken"), [(-1.1, True), (-1.2, False)])
def test_another_translation_is_taken_if_the_translator_finds_it_about_as_likely(
    models, monkeypatch, likelihood, taken
):
    judge = models[1].judge
    part = models[1].parts("The red house is very big.", "en", "pt", complete=True)[0]
    own, other = ([Token(number, -1.0, last=False), Token(0, -1.0, last=True)] for number in (5, 6))
    monkeypatch.setattr(judge, "_text", lambda tokens: str(tokens[0].id))
    monkeypatch.setattr(judge, "found", lambda text, translation, part: {"5": -2.5, "6": -1.0}[translation])
    monkeypatch.setattr(judge, "_own", lambda part, tokens: -1.0 if tokens is own else likelihood)
    monkeypatch.setattr(judge, "_others", lambda part, search: [other])
    made = judge(part, own, lambda part, beams: other)
    assert [token.id for token in made] == [6 if taken else 5, 0]
    assert made[-1].doubtful != taken


@pytest.mark.parametrize(
    ("likelihoods", "tried", "taken"),
    [
        ({"5": -1.0}, [], "5"),  # good enough
        ({"5": -2.5, "6": -2.4, "7": -1.0, "8": -0.5}, ["6", "7"], "7"),  # until one is
        ({"5": -2.5, "6": -2.0, "7": -1.9, "8": -2.0}, ["6", "7", "8"], "7"),  # else the best
        ({"5": -2.5, "6": None, "7": -2.5}, ["6", "7"], "5"),
    ],
)
def test_others_are_tried_until_one_is_good_enough(models, monkeypatch, likelihoods, tried, taken):
    judge = models[1].judge
    part = models[1].parts("The red house is very big.", "en", "pt", complete=True)[0]

    def made(number, *, truncated=False):
        return [Token(int(number), -1.0, last=False), Token(0, -1.0, last=True, truncated=truncated)]

    asked = []

    def others(part, search):
        for number in [*likelihoods][1:]:
            asked.append(number)
            yield made(number)
            yield made(number, truncated=True)  # what was cut is not taken

    monkeypatch.setattr(judge, "_text", lambda tokens: str(tokens[0].id))
    monkeypatch.setattr(judge, "found", lambda text, translation, part: likelihoods[translation])
    monkeypatch.setattr(judge, "_own", lambda part, tokens: -1.0)
    monkeypatch.setattr(judge, "_others", others)
    assert str(judge(part, made(5), lambda part, beams: [])[0].id) == taken
    assert asked == tried
    assert judge(part, cut := made(5, truncated=True), lambda part, beams: []) is cut
    assert asked == tried


def test_right_translations_and_short_ones_stay_as_they_are(models):
    plain, judged = models
    for text, _ in [*RIGHT, ("Thanks a lot.", ""), ("This is exactly what I wanted.", "")]:
        made = translation(judged, text)
        assert made == translation(plain, text)
        assert not made.doubtful


@pytest.mark.slow
def test_the_demo_has_a_judge_that_can_be_switched_off():
    config = load_config("demo")
    assert load_translations(config)["pt"].judge is not None
    assert load_translations(replace(config, nmt=replace(config.nmt, judge=False)))["pt"].judge is None


def test_judges_make_room_first():
    step = load_config("demo").nmt
    ((_, directory),) = find_translation_models(step)
    key, shared = loaded_as(step, directory), SharedModels()
    shared.make_room({key: directory})
    model = shared.translator(key, step, directory)
    shared.add_judges({key: (step, directory)})
    assert model.judge is not None
    shared.limit_bytes = shared.used_bytes // 2
    shared.make_room({key: directory})
    shared.add_judges({key: (step, directory)})
    assert model.judge is None
    assert shared.used_bytes <= shared.limit_bytes


def test_the_mark_is_in_jsonl_only_where_it_is_set():
    plain = Translation(0, "pt", "a")
    assert "doubtful" not in line(plain)
    assert read_event(
        {"type": "translation", "sentence": 0, "language": "pt", "text": "a", "doubtful": True}
    ) == replace(plain, doubtful=True)


def test_a_student_without_its_other_direction_has_no_judge(models, monkeypatch):
    assert other_direction(models[0].languages) is not None
    monkeypatch.setattr("pipeline.nmt.compiled.local_model", lambda ref: None)
    assert other_direction(models[0].languages) is None

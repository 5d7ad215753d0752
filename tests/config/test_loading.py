"""Loading of models: each once, for several targets and directions."""

import json
import re

import pytest

from pipeline import MarianModel, load_config, load_models
from pipeline.backends.asr_options import AsrConfig
from pipeline.backends.whisper import WhisperRecognizer
from pipeline.backends.whisper.files import find_recognizer
from pipeline.backends.whisper.weights import WhisperWeights
from pipeline.config.loading import load_shared
from pipeline.errors import DownloadError, ModelError, UsageError
from tests.commands import loaded_once
from tests.conftest import SHIPPED_TRANSLATORS, TINY, make_model_dir
from tests.fixtures.random_whisper import random_whisper

EN_ZH, ZH_EN = (str(folder) for folder in SHIPPED_TRANSLATORS.values())


@pytest.fixture
def read(monkeypatch):
    """The names of the translation models' directories that are loaded."""
    found = []
    load = MarianModel.load.__func__

    def counted(kind, directory, options):
        found.append(directory.name)
        return load(kind, directory, options)

    monkeypatch.setattr(MarianModel, "load", classmethod(counted))
    monkeypatch.setattr(
        "pipeline.backends.whisper.WhisperRecognizer", lambda config, language, directory, **_: config.model
    )
    return found


def loaded(tmp_path, *lines):
    path = tmp_path / "mine.toml"
    path.write_text("\n".join((*lines, '[asr]\nmodel = "base"')))
    return load_models(load_config(path))


def test_two_directions_have_a_translator_each(tmp_path, read):
    models = loaded(
        tmp_path,
        '[languages]\nsource = "auto"\ntarget = ["en", "zh"]',
        f'[nmt.zh]\nmodel = "{EN_ZH}"\n[nmt.en]\nmodel = "{ZH_EN}"',
    )
    assert sorted(read) == ["nmt-en-zh", "nmt-zh-en"]
    assert list(models.translations) == ["en", "zh"]
    first, second = models.translations.values()
    assert "hotel" in first.translate("酒店在哪里？").lower()
    assert "酒店" in second.translate("Where is the hotel?")


def test_a_model_with_the_same_options_for_several_targets_is_loaded_once(tmp_path, read):
    target = '[languages]\ntarget = ["zh-CN", "zh-TW"]'
    models = loaded(tmp_path, target, f'[nmt]\nmodel = "{EN_ZH}"')
    assert models.translations["zh-CN"] is models.translations["zh-TW"]
    assert read == ["nmt-en-zh"]
    models = loaded(tmp_path, target, f'[nmt]\nmodel = "{EN_ZH}"\n[nmt.zh-TW]\nbeam_size = 2')
    assert models.translations["zh-CN"] is not models.translations["zh-TW"]
    assert len(read) == 3


def test_a_multilingual_model_translates_into_all_its_targets(tmp_path, read):
    folder = make_model_dir(tmp_path / "several", "merged", leave_out="vocab.json")
    vocabulary = json.loads((TINY / "vocab.json").read_text())
    for code, rare in ((">>cmn_Hans<<", 700), (">>deu<<", 701)):
        vocabulary = {code if number == rare else piece: number for piece, number in vocabulary.items()}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    models = loaded(tmp_path, '[languages]\ntarget = ["zh", "de"]', '[nmt]\nmodel = "several"')
    assert models.translations["zh"] is models.translations["de"]
    assert read == ["several"]
    model = models.translations["zh"]
    assert [model.target_code(target) for target in ("zh", "de")] == ["cmn_Hans", "deu"]


def test_two_steps_share_the_model_of_a_direct_translation(tmp_path, read):
    names = json.loads((TINY / "tokenizer_config.json").read_text())
    folder = make_model_dir(tmp_path / "zh-de", "merged", leave_out="tokenizer_config.json")
    (folder / "tokenizer_config.json").write_text(json.dumps(names | {"source_lang": "zh", "target_lang": "de"}))
    models = loaded(
        tmp_path,
        '[languages]\ntarget = ["zh", "de"]',
        f'[nmt]\nmodel = "{TINY}"\n[nmt.de]\nmodel = "{TINY}"\nsecond = "zh-de"\nvia = "zh"',
    )
    both = models.translations["de"]
    assert both.first is models.translations["zh"]
    assert sorted(read) == ["tiny-marian", "zh-de"]


def test_a_model_for_another_language_is_refused(tmp_path, read):
    with pytest.raises(UsageError, match="from en into zh, not into de"):
        loaded(
            tmp_path, '[languages]\ntarget = ["zh", "de"]', f'[nmt.zh]\nmodel = "{EN_ZH}"\n[nmt.de]\nmodel = "{EN_ZH}"'
        )


@pytest.mark.parametrize(
    ("lines", "drafter"),
    [
        ("", None),
        ('[asr.draft]\nmodel = "tiny.en"', "tiny.en"),
        ('[asr.draft]\nmodel = "base"', None),  # the same model drafts for itself
        ('[asr.draft]\nmodel = "tiny.en"\n[drafts]\nenabled = false', None),
    ],
)
def test_a_draft_model_is_loaded_where_there_are_drafts(tmp_path, read, lines, drafter):
    models = loaded(tmp_path, f'[nmt]\nmodel = "{EN_ZH}"', lines)
    assert (models.recognizer, models.drafter) == ("base", drafter)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "draft", "error", "message"),
    [
        ("zh", "tiny.en", UsageError, "does not know the language 'zh'; it knows only English"),
        (
            "auto",
            "tiny.en",
            UsageError,
            "English-only, but the spoken language is one of en, zh; choose a multilingual",
        ),
        ("zh", str(TINY), ModelError, "lacks model.bin, tokenizer.json, vocabulary"),
        ("zh", "/no/such/model", UsageError, "/no/such/model"),
    ],
)
def test_a_draft_model_that_cannot_draft_is_refused_by_name(tmp_path, source, draft, error, message):
    with loaded_once(), pytest.raises(error, match=re.escape(message)) as caught:
        loaded(
            tmp_path,
            f'[languages]\nsource = "{source}"\ntarget = {["en", "zh"] if source == "auto" else ["en"]}',
            f'[nmt.en]\nmodel = "{ZH_EN}"' + (f'\n[nmt.zh]\nmodel = "{EN_ZH}"' if source == "auto" else ""),
            f'[asr.draft]\nmodel = "{draft}"',
        )
    assert f"asr.draft.model, {draft}, which drafts for base: " in str(caught.value)


@pytest.mark.parametrize(
    ("source", "targets", "spoken", "script"),
    [
        ("ENG", ["zh-TW"], ("en",), None),
        ("zh-TW", ["en"], ("zh",), "traditional"),
        ("auto", ["en-US", "zh-Hant"], ("en", "zh"), "traditional"),
        ("auto", ["en", "zh-CN"], ("en", "zh"), None),
    ],
)
def test_the_recogniser_is_told_the_language_and_its_script(source, targets, spoken, script, tmp_path):
    translators = [f'[nmt.{target}]\nmodel = "{EN_ZH if "zh" in target else ZH_EN}"' for target in targets]
    with loaded_once():
        models = loaded(tmp_path, f'[languages]\nsource = "{source}"\ntarget = {targets}', *translators)
    assert isinstance(models.recognizer, WhisperRecognizer)
    assert (models.recognizer.languages, models.recognizer.config.script) == (spoken, script)


def test_a_draft_model_that_cannot_be_fetched_is_called_one(tmp_path, read, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DownloadError, match="asr.draft.model, owner/none, which drafts for base: owner/none is not in"):
        loaded(tmp_path, f'[nmt]\nmodel = "{EN_ZH}"', '[asr.draft]\nmodel = "owner/none"')


def of_one_recognizer(tmp_path, name, languages, *lines):
    path = tmp_path / f"{name}.toml"
    path.write_text("\n".join((f"[languages]\n{languages}", f'[asr]\nmodel = "{tmp_path / "whisper"}"', *lines)))
    return load_config(path)


@pytest.mark.slow
def test_configurations_share_equal_models(tmp_path, monkeypatch):
    loads = []
    load_weights = WhisperWeights.load.__func__

    def counted(kind, directory, *options):
        loads.append((directory.name, *options))
        return load_weights(kind, directory, *options)

    monkeypatch.setattr(WhisperWeights, "load", classmethod(counted))
    random_whisper(tmp_path / "whisper", find_recognizer(AsrConfig(model="base")))
    english, translator = 'source = "en"\ntarget = "zh"', f'[nmt]\nmodel = "{EN_ZH}"'
    both = f'[nmt.zh]\nmodel = "{EN_ZH}"\n[nmt.en]\nmodel = "{ZH_EN}"'
    first, same, other, prompted, threaded = load_shared(
        [
            of_one_recognizer(tmp_path, "en", english, translator),
            of_one_recognizer(tmp_path, "same", english, translator),
            of_one_recognizer(tmp_path, "auto", 'source = "auto"\ntarget = ["zh", "en"]', both),
            of_one_recognizer(tmp_path, "prompted", english, 'prompt = "Hello."', translator),
            of_one_recognizer(tmp_path, "threaded", english, "threads = 1", translator),
        ]
    )
    assert len(loads) == 2
    assert loads[0] != loads[1]
    assert same.recognizer is first.recognizer
    for models in (first, other, prompted, threaded):
        assert isinstance(models.recognizer, WhisperRecognizer)
    assert [models.recognizer.languages for models in (first, other)] == [("en",), ("zh", "en")]
    weights = [models.recognizer.engine.weights for models in (first, other, prompted, threaded)]
    assert weights[0] is weights[1] is weights[2] is not weights[3]
    assert first.translations["zh"] is other.translations["zh"] is prompted.translations["zh"]
    assert list(other.translations) == ["zh", "en"]

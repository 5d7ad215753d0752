"""Chinese transcripts are converted to one script."""

import argparse
from dataclasses import replace

import pytest

from pipeline.apps.options import add_model_arguments, configured
from pipeline.backends.asr_options import AsrConfig
from pipeline.backends.script import in_script, script_conversions, usual_script
from pipeline.backends.whisper import WhisperRecognizer
from pipeline.errors import UsageError
from pipeline.events import Word
from pipeline.languages.chinese import simplified, traditional
from tests.backends.whisper.conftest import Watched, result
from tests.conftest import PHRASES, read_wav
from tests.core.vad.test_stage import cut

# What the recording says first, with few small letters, as names have, so that the words can be aligned with it, and Chinese.
SAID = "The Plane From Tokyo arrives at 7 O'Clock"
TRADITIONAL, SIMPLIFIED = f"{SAID}，理髮。", f"{SAID}，理发。"


def heard(models, script, text):
    """The transcript of a real model whose search result is replaced by ``text``, and which takes it for Chinese."""
    assert isinstance(models.recognizer, WhisperRecognizer)
    weights = models.recognizer.engine.weights
    model = Watched(weights.model)
    config = AsrConfig(model="base", script=script, log_probability_threshold=-20.0)
    recognizer = WhisperRecognizer(config, "zh", weights=replace(weights, model=model))
    model.heard = lambda *_: result(recognizer.engine.tokenizer.encode(text))
    model.detected = lambda: {"zh": 1.0}
    return recognizer.transcribe(cut(read_wav(PHRASES), 1600)[:1])[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "text", "shown"),
    [
        (None, TRADITIONAL, SIMPLIFIED),
        ("simplified", TRADITIONAL, SIMPLIFIED),
        ("simplified", SIMPLIFIED, SIMPLIFIED),
        ("traditional", SIMPLIFIED, TRADITIONAL),
        ("traditional", TRADITIONAL, TRADITIONAL),
        ("as-heard", TRADITIONAL, TRADITIONAL),
        ("as-heard", SIMPLIFIED, SIMPLIFIED),
    ],
)
def test_a_transcript_is_in_the_configured_script_with_its_words(demo_models, script, text, shown):
    transcript = heard(demo_models, script, text)
    assert transcript.text == shown
    assert transcript.rejected is None
    assert len(transcript.words) > 3
    assert "".join(word.text for word in transcript.words).strip() == shown
    as_heard = heard(demo_models, "as-heard", text)
    assert [word.end_s for word in transcript.words] == [word.end_s for word in as_heard.words]


def test_words_are_converted_in_the_context_of_the_whole():
    words = [Word("理", 0.0, 0.2), Word("发。", 0.2, 0.4), Word("出", 0.5, 0.6), Word("发", 0.6, 0.8)]
    assert in_script("理发。出发", words, traditional) == (
        "理髮。出發",
        [replace(word, text=text) for word, text in zip(words, ("理", "髮。", "出", "發"), strict=True)],
    )
    assert in_script("理发", [], traditional) == ("理髮", [])


@pytest.mark.parametrize("language", ["en", "ja", "ko"])
def test_a_script_that_the_language_does_not_have_is_refused(language, tmp_path):
    for script in ("traditional", "simplified"):
        with pytest.raises(
            UsageError, match=rf"asr\.script is '{script}' but the spoken language is '{language}'; simplified"
        ):
            WhisperRecognizer(AsrConfig(model="base", script=script), language)
    path = tmp_path / "my.toml"
    path.write_text('[languages]\nsource = "zh"\ntarget = "de"\n[asr]\nscript = "traditional"\n')
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    with pytest.raises(UsageError, match="leave the key out"):
        configured(parser.parse_args(["--config", str(path), "--source", language]))
    assert configured(parser.parse_args(["--config", str(path)])).asr.script == "traditional"


@pytest.mark.parametrize("languages", [["en", "zh"], ["zh", "en"]])
def test_of_several_languages_a_script_applies_to_those_that_use_it(languages):
    assert script_conversions("traditional", languages) == {"en": None, "zh": traditional}
    assert script_conversions(None, languages) == {"en": None, "zh": simplified}
    assert script_conversions("as-heard", languages) == {"en": None, "zh": None}
    assert script_conversions("simplified", ["zh", "yue"]) == {"zh": simplified, "yue": simplified}
    assert script_conversions(None, ["zh-TW", "ja", "yue", "ko"]) == {
        "zh-TW": simplified,
        "ja": None,
        "yue": None,
        "ko": None,
    }
    with pytest.raises(UsageError, match="simplified and traditional are for Chinese"):
        script_conversions("traditional", ["en", "de"])


@pytest.mark.parametrize(
    ("spoken", "script"),
    [(["zh-CN"], None), (["zh"], None), (["zh-TW"], "traditional"), (["en", "zh-HK"], "traditional"), (["yue"], None)],
)
def test_the_usual_script_is_traditional_where_a_language_says_so(spoken, script):
    assert usual_script(spoken) == script

"""One recording into two languages at once: files, names, failures of one language, and runs that go on."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pipeline import Models, SpeechTranslator, TargetText, Translation, TranslationLost, load_config, load_models
from pipeline.apps import translate
from pipeline.archives.journal import JournalSink, header
from pipeline.archives.outputs import JOURNAL_SUFFIX
from pipeline.archives.recordings import Begin, begin, plan
from pipeline.bench.words import edits, scored_units
from pipeline.config import PipelineConfig, with_overrides
from pipeline.config.resources import CONFIGS
from pipeline.core.nmt.same_language import SameLanguageText
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.errors import UsageError
from pipeline.events import SAMPLE_RATE, PipelineEvent, SourceSentence, SourceText
from pipeline.media.audio.recording import Recording
from tests.chain import events_of
from tests.commands import loaded_once, run
from tests.conftest import CHINESE, EXAMPLES, PHRASES, ROOT, make_model_dir, read_wav, spoken_texts, write_wav
from tests.core.vad.test_stage import cut

MEETING = EXAMPLES / "meeting.wav"


def config_file(folder: Path, targets: list[str], source: str = "en") -> Path:
    """The demo's configuration for ``targets``: the demo translator for zh, random weights that "translate" into de."""
    tiny = make_model_dir(folder / "tiny", "merged", leave_out="tokenizer_config.json")
    names = json.loads((ROOT / "tests/fixtures/tiny-marian/tokenizer_config.json").read_text())
    (tiny / "tokenizer_config.json").write_text(json.dumps(names | {"target_lang": "de"}))
    models = {
        "zh": CONFIGS.parent / "models/demo/nmt-en-zh",
        "de": tiny,
        "en": CONFIGS.parent / "models/demo/nmt-zh-en",
    }
    path = folder / "config.toml"
    sections = "".join(f'[nmt.{target}]\nmodel = "{models[target]}"\n' for target in targets)
    path.write_text(
        f'[languages]\nsource = "{source}"\ntarget = {json.dumps(targets)}\n[asr]\nmodel = "base"\nthreads = 1\n{sections}',
        "utf-8",
    )
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an uninterrupted run into two languages writes: file name → content."""
    folder = tmp_path_factory.mktemp("whole")
    options = ("--config", config_file(folder, ["zh", "de"]), "--format", "srt,txt,jsonl")
    found = run("translate", MEETING, "--output-dir", folder / "out", *options)
    assert found.returncode == 0, found.stderr.decode()
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


@pytest.mark.slow
def test_each_language_has_the_files_of_a_run_of_its_own(whole, tmp_path):
    assert sorted(whole) == [
        "meeting.de.srt", "meeting.de.txt", "meeting.jsonl", "meeting.zh.srt", "meeting.zh.txt",
    ]  # fmt: skip
    for target in ("zh", "de"):
        (tmp_path / target).mkdir()
        config = config_file(tmp_path / target, [target])
        options = ("--output-dir", tmp_path / target / "out", "--config", config, "--format", "srt,txt")
        found = run("translate", MEETING, *options)
        assert found.returncode == 0, found.stderr.decode()
        for kind in ("srt", "txt"):
            alone = (tmp_path / target / "out" / f"meeting.{kind}").read_bytes()
            assert alone == whole[f"meeting.{target}.{kind}"] != b""


def test_jsonl_has_all_languages_and_the_recording_once(whole):
    records = [json.loads(line) for line in whole["meeting.jsonl"].splitlines()]
    spoken = [record["sentence"] for record in records if record["type"] == "source_sentence"]
    assert spoken == list(range(5))
    for target in ("zh", "de"):
        finished = [r for r in records if r["type"] == "translation" and r["language"] == target]
        assert [record.get("sentence", 0) for record in finished] == spoken
        assert "\n".join(record["text"] for record in finished) + "\n" == whole[f"meeting.{target}.txt"].decode()
        cues = [r for r in records if r["type"] == "cue" and r["language"] == target]
        assert len(cues) == whole[f"meeting.{target}.srt"].decode().count("-->") > 0


class FailingError(Exception):
    """Simulates a fault in a model."""


class Failing:
    """A translator that fails at its second sentence."""

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        sentence = request.sentence
        if sentence.sentence > 0:
            raise FailingError("out of order")
        yield TargetText(sentence.sentence, "de", "Ja.", steady=3, complete=True)
        yield Translation(sentence.sentence, "de", "Ja.")


@pytest.mark.slow
def test_a_language_that_fails_does_not_end_the_others(whole, tmp_path, monkeypatch, capsys):
    config = config_file(tmp_path, ["zh", "de"])
    with loaded_once():
        models = load_models(load_config(config))
    broken = Models(models.recognizer, {**models.translations, "de": Failing()})

    def command() -> tuple[int, str]:
        status = translate.run(
            [str(MEETING), "--output-dir", str(tmp_path / "out"), "--config", str(config), "--format", "srt,txt"]
        )
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    async def load(config: PipelineConfig) -> Models:
        return broken

    monkeypatch.setattr(translate, "_load", load)
    status, printed = command()
    assert status == 1
    assert "into de: out of order" in printed
    for kind in ("srt", "txt"):
        assert (tmp_path / "out" / f"meeting.zh.{kind}").read_bytes() == whole[f"meeting.zh.{kind}"]
    assert (tmp_path / "out" / "meeting.de.txt").read_text("utf-8") == "Ja.\n"
    assert (tmp_path / "out" / f"meeting{JOURNAL_SUFFIX}").is_file()

    broken = models  # the same command finishes the language
    status, printed = command()
    assert status == 0, printed
    assert not (tmp_path / "out" / f"meeting{JOURNAL_SUFFIX}").exists()
    for kind in ("srt", "txt"):
        assert (tmp_path / "out" / f"meeting.zh.{kind}").read_bytes() == whole[f"meeting.zh.{kind}"]


@pytest.mark.slow
@pytest.mark.parametrize("kept", [1, 4])
def test_a_killed_run_into_two_languages_goes_on(kept, whole, tmp_path, monkeypatch):
    """The folder as it is after so many translations stands for what a process leaves that was killed then."""
    options = ["--format", "srt,txt,jsonl", "--config", config_file(tmp_path, ["zh", "de"])]
    write, finished = JournalSink.write, []

    def written(sink: JournalSink, event: PipelineEvent) -> None:
        write(sink, event)
        if isinstance(event, Translation):
            finished.append(event)
            if len(finished) == kept:
                shutil.copytree(tmp_path / "out", tmp_path / "left")

    with monkeypatch.context() as patch:
        patch.setattr(JournalSink, "write", written)
        assert run("translate", MEETING, "--output-dir", tmp_path / "out", *options).returncode == 0
    assert (tmp_path / "left" / f"meeting{JOURNAL_SUFFIX}").is_file()
    found = run("translate", MEETING, "--output-dir", tmp_path / "left", *options)
    assert found.returncode == 0, found.stderr.decode()
    assert {path.name: path.read_bytes() for path in (tmp_path / "left").iterdir()} == whole


@pytest.mark.slow
def test_captions_in_the_language_spoken_need_no_model_and_stand_beside_translations(whole, tmp_path):
    options = ["--config", "demo-zh", "--target", "en,zh", "--format", "srt,txt", "--bilingual"]
    found = run("translate", MEETING, "--output-dir", tmp_path / "both", *options)
    assert found.returncode == 0, found.stderr.decode()
    said = [
        one["text"]
        for line in whole["meeting.jsonl"].splitlines()
        if (one := json.loads(line))["type"] == "source_sentence"
    ]
    assert (tmp_path / "both" / "meeting.en.txt").read_text("utf-8").split("\n\n") == [*said, ""]
    in_two = (tmp_path / "both" / "meeting.zh.txt").read_text("utf-8").split("\n\n")
    assert [each.split("\n")[1] for each in in_two if each] == said

    config = with_overrides(load_config("demo-zh"), targets=("en",))
    assert config.translators == {}
    found = run("live", MEETING, "--config", "demo-zh", "--target", "en", "--fast")
    assert found.returncode == 0, found.stderr.decode()
    assert len(found.stdout.decode().splitlines()) == len(said)  # each is shown once


def test_captions_in_the_language_spoken_are_drafted_as_they_are_said(phrase, demo_models):
    config = with_overrides(load_config("demo-zh"), targets=("en",))
    models = Models(demo_models.recognizer, {"en": SameLanguageText("en")})
    found = events_of(config, models, Recording(phrase), live=True)
    said, shown = (
        list(dict.fromkeys((one.sentence, one.text, one.steady) for one in found if isinstance(one, kind)))
        for kind in (SourceText, TargetText)
    )
    assert len(said) > len({one[0] for one in said})  # there were drafts
    assert shown == said


def test_the_end_of_a_language_is_an_event_of_a_live_run_too(demo_models, tmp_path):
    config = load_config(config_file(tmp_path, ["zh", "de"]))
    models = Models(demo_models.recognizer, {**demo_models.translations, "de": Failing()})
    recording = write_wav(tmp_path / "four.wav", read_wav(PHRASES)[: 13 * SAMPLE_RATE])
    found = events_of(config, models, Recording(recording), live=True)
    (lost,) = [event for event in found if isinstance(event, TranslationLost)]
    assert (lost.language, lost.reason) == ("de", "out of order")
    finished = [event for event in found if isinstance(event, Translation)]
    assert [event.sentence for event in finished if event.language == "zh"] == list(range(4))
    errors = [event.error for event in finished if event.language == "de"]
    assert errors == [None, "out of order", "out of order"]


@pytest.mark.slow
def test_a_conversation_in_two_languages_is_translated_both_ways(tmp_path):
    english, chinese = read_wav(MEETING), read_wav(CHINESE)
    english_turns, chinese_turns = cut(english, 1600), cut(chinese, 1600)
    pause = np.zeros(SAMPLE_RATE // 2, np.int16)
    turns = [
        samples
        for pair in zip(english_turns[:2], chinese_turns[:2], strict=True)
        for segment in pair
        for samples in (segment.samples, pause)
    ]
    config = load_config(config_file(tmp_path, ["zh", "en"], source="auto"))

    with loaded_once():
        models = load_models(config)

    async def events() -> list[object]:
        async with SpeechTranslator(config, models, live=True) as translator:
            for samples in turns:
                await translator.feed(samples)
            await translator.end()
            return [event async for event in translator.events()]

    found = asyncio.run(events())
    spoken = [event for event in found if isinstance(event, SourceSentence)]
    assert [sentence.language for sentence in spoken] == ["en", "zh", "en", "zh"]
    texts = spoken_texts()
    for heard, said in zip(spoken[1::2], texts["chinese"], strict=False):
        assert edits(scored_units(said, "zh"), scored_units(heard.text, "zh")) <= len(said) / 4
    translations = {event.sentence: event for event in found if isinstance(event, Translation)}
    assert [translations[sentence.sentence].language for sentence in spoken] == ["zh", "en", "zh", "en"]
    assert all(event.text.isascii() == (event.language == "en") for event in translations.values())


def test_a_run_that_began_the_same_files_is_not_taken_for_finished(tmp_path):
    recording = tmp_path / "meeting.wav"
    recording.write_bytes(MEETING.read_bytes())
    (tmp_path / "one").mkdir()
    several, one = load_config(config_file(tmp_path, ["zh", "de"])), load_config(config_file(tmp_path / "one", ["zh"]))
    (both,) = plan([recording], ["srt"], None, {"zh": "zh", "de": "de"})
    (single,) = plan([recording], ["srt"], None, {"zh": "zh"})
    for begun, config, other, other_config in ((both, several, single, one), (single, one, both, several)):
        first = json.dumps(header(recording, config, ["srt"])) + "\n"
        begun.journal.write_text(first, "utf-8")
        begun.outputs["srt", "zh"].write_text("1\n00:00:01,000 --> 00:00:02,000\nA\n\n", "utf-8")
        with pytest.raises(UsageError, match=r"was begun for the same files with other languages; finish it"):
            begin(other, other_config, overwrite=False)
        assert begin(other, other_config, overwrite=True)[0] is Begin.NEW
        begun.journal.unlink()


def test_a_language_without_translations_has_an_empty_file(tmp_path):
    (job,) = plan([MEETING], ["srt"], tmp_path, {"zh": "zh", "en": "en"})
    job.outputs["srt", "zh"].write_text("1\n00:00:01,000 --> 00:00:02,000\nA\n\n", "utf-8")
    job.outputs["srt", "en"].write_text("", "utf-8")
    assert job.missing() == {}
    job.outputs["srt", "zh"].write_text("", "utf-8")
    assert len(job.missing()) == 2

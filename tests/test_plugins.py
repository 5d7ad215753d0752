"""What other packages add by entry points: one of each from the package in docs/extending.md, wrong names, and broken packages."""

import importlib
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest

from pipeline import MarianModel, load_models, load_translation_model, plugins
from pipeline.apps.known_models import named_models
from pipeline.apps.pushes import PUSHES, open_pushes, some_push
from pipeline.archives.journal import read_journal_header
from pipeline.backends import RECOGNIZERS, AsrConfig, NmtConfig
from pipeline.backends.nmt_options import TRANSLATORS
from pipeline.config import SharedModels, load_translations, parse_config
from pipeline.core import EndOfInput, SourceSentence, Translation
from pipeline.errors import ConfigError, ModelError, UsageError
from pipeline.media import SINKS, SubtitleRules, sink_makers
from pipeline.server.app import create_app
from pipeline.server.languages.offers import Offers
from pipeline.server.protocols import PROTOCOLS
from pipeline.server.service import Service
from pipeline.speaking.voices import VOICES, load_voice
from tests.commands import run
from tests.conftest import EXAMPLES, TINY, read_wav, write_wav
from tests.docs.pages import PAGES, blocks

PAGE = PAGES["docs/extending.md"]
OWN = """
[languages]
source = "en"
target = "pt"
[asr]
backend = "acme"
[nmt]
backend = "acme"
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Makes a package known as pip does: with its modules, and the entry points in its metadata."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def installed(name, points, **modules):
        folder = site / f"{name.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        groups = (
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in of_it.items())
            for group, of_it in points.items()
        )
        (folder / "entry_points.txt").write_text("\n".join(groups))
        for module, text in modules.items():
            (site / f"{module}.py").write_text(text, "utf-8")
            monkeypatch.delitem(sys.modules, module, raising=False)
        importlib.invalidate_caches()
        plugins._entry_points.cache_clear()

    yield installed
    plugins._entry_points.cache_clear()


@pytest.fixture
def acme(install):
    """Installs the package of the page."""
    (project,) = blocks(PAGE, "toml")
    (module,) = blocks(PAGE, "python")
    table = tomllib.loads(project)["project"]
    install(table["name"], table["entry-points"], acme_captions=module)


@pytest.fixture
def speech(tmp_path):
    write_wav(tmp_path / "talk.wav", read_wav(EXAMPLES / "travel.wav")[: 16_000 * 6])
    (tmp_path / "acme.toml").write_text(OWN)
    return tmp_path / "talk.wav"


def test_a_recogniser_a_translator_and_a_format_are_named_in_a_configuration_and_a_command(acme, speech):
    options = ["--config", speech.with_name("acme.toml"), "--target", "tlh", "--format", "acme,srt"]
    done = run("translate", speech, *options)
    assert done.returncode == 0, done.stderr.decode()
    assert set(speech.with_suffix(".acme").read_text().splitlines()) == {"GOOD MORNING."}
    assert "GOOD MORNING." in speech.with_suffix(".srt").read_text()
    (journal := speech.with_suffix(".jsonl")).write_text('{"type": "journal", "formats": ["acme"]}\n')
    assert read_journal_header(journal)["formats"] == ["acme"]


def test_a_translator_needs_no_model_of_ours_for_any_target(acme, tmp_path):
    table = tomllib.loads(OWN.replace('"pt"', '["pt", "tlh"]'))
    for more in ({}, {"model": "auto"}):
        config = parse_config(table | {"nmt": table["nmt"] | more}, tmp_path / "acme.toml")
        assert [(pair, nmt.steps) for pair, nmt in config.translators.items()] == [
            (("en", "pt"), ()),
            (("en", "tlh"), ()),
        ]
        models = load_models(config)
        assert [type(model).__name__ for model in models.translations.values()] == ["Translator"] * 2
    (tmp_path / "acme.toml").write_text(OWN)
    assert named_models([str(tmp_path / "acme.toml")]) == []  # it has nothing to fetch
    assert load_translations(config)["tlh"].target == "tlh"
    assert load_translation_model("en", "pt", config.nmt).target == "pt"


def test_one_target_has_a_translator_of_another_package_and_the_others_have_models(acme, tmp_path):
    languages, acme_alone = {"source": "en", "target": ["de", "pt"]}, {"pt": {"backend": "acme"}}
    for nmt in ({"de": {"model": "firefox/en-de"}} | acme_alone, {"model": "firefox/en-de"} | acme_alone):
        config = parse_config({"languages": languages, "nmt": nmt}, tmp_path / "acme.toml")
        assert [(nmt.backend, len(nmt.steps)) for nmt in config.translators.values()] == [("marian", 1), ("acme", 0)]
    others = {"backend": "acme", "de": {"backend": "marian"}}
    with pytest.raises(ConfigError, match="no translation model is named for the target 'de'"):
        parse_config({"languages": languages, "nmt": others}, tmp_path / "acme.toml")


def test_a_voice_speaks_and_a_live_run_writes_a_format(acme, speech, tmp_path, monkeypatch):
    options = ["--fast", "--speak", "acme", "--speak-to", tmp_path / "said.wav", "--file", f"acme={tmp_path / 'said'}"]
    done = run("live", speech, "--config", speech.with_name("acme.toml"), *options)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "said.wav").stat().st_size > 1_000
    assert set((tmp_path / "said").read_text().splitlines()) == {"GOOD MORNING."}
    again = run("live", speech, "--config", speech.with_name("acme.toml"), *options[:1], *options[-2:])
    assert (again.returncode, b"said exists; name another file" in again.stderr) == (2, True)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert load_voice(Path("acme")).language == "pt"
        Path("acme").mkdir(exist_ok=True)  # and whatever is in the current folder


def test_captions_are_pushed(acme, tmp_path):
    (sink,) = open_pushes([some_push(f"acme={tmp_path / 'pushed'}")], ["pt"], SubtitleRules())
    for event in (SourceSentence(0, "en", "Yes.", 0, 1), Translation(0, "pt", "Sim."), EndOfInput()):
        sink.write(event)
    sink.close()
    assert (tmp_path / "pushed").read_text() == "pt Sim.\n"
    with pytest.raises(UsageError, match="acme takes one of the languages"):
        open_pushes([some_push(f"acme={tmp_path / 'pushed'}")], ["pt", "en"], SubtitleRules())
    (webhook,) = open_pushes([some_push("webhook=http://127.0.0.1:1/")], ["pt", "en"], SubtitleRules())
    webhook.close()


async def test_a_protocol_is_served_when_it_is_named(acme, demo_config, demo_models):
    for named, status in ([], 404), (["acme"], 200):
        app = httpx.ASGITransport(create_app(Service(demo_config, demo_models), protocols=named))
        async with httpx.AsyncClient(transport=app, base_url="http://127.0.0.1:8000") as client:
            assert (await client.get("/acme")).status_code == status


def test_the_command_serves_the_protocols_that_it_is_given(acme, monkeypatch):
    asked = []

    def create(*_, protocols, **more):
        asked.extend(protocols)
        raise UsageError("it was asked for")

    monkeypatch.setattr("pipeline.server.app.create_app", create)
    done = run("serve", "--config", "demo-zh", "--port", "0", "--protocol", "acme")
    assert (asked, done.returncode) == (["acme"], 2)


def test_a_family_of_models_is_asked_if_the_files_are_of_none_of_ours(install, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    with pytest.raises(ModelError) as missing:
        MarianModel.load(own)
    code = "import dataclasses\nfrom pathlib import Path\nfrom pipeline.backends.marian.decode import marian\n\n\ndef load(directory, options):\n"
    code += f"    parts = marian.load(Path({json.dumps(str(TINY))}), options)\n"
    code += '    return dataclasses.replace(parts, languages=("la", "tlh")) if (directory / "own.txt").is_file() else None\n'
    code += "\n\ndef fail(directory, _):\n    return 1 / (directory / 'quiet.txt').is_file() and None\n"
    install(
        "own-family",
        {"speech_translate.families": {"own": "own_family:load", "wrong": "own_family:fail"}},
        own_family=code,
    )
    with pytest.raises(ModelError, match=rf"^{re.escape(str(missing.value))}; the entry point wrong = .* ZeroDivision"):
        MarianModel.load(own)
    (own / "own.txt").touch()
    assert MarianModel.load(own).languages == ("la", "tlh")
    (own / "own.txt").rename(own / "quiet.txt")
    with pytest.raises(ModelError, match=f"^{re.escape(str(missing.value))}$"):
        MarianModel.load(own)


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "--protocol", "nope"],
        ["live", "--push", "nope=x"],
        ["live", "--file", "nope=x"],
        ["live", "talk.wav", "--config", "demo", "--speak", "nope", "--speak-to", "x.wav", "--fast"],
        ["translate", "talk.wav", "--config", "demo", "--format", "nope"],
        ["translate", "talk.wav", "--config", "nope.toml"],
    ],
    ids=str,
)
def test_a_wrong_name_is_refused_with_those_that_there_are(arguments, acme, speech, monkeypatch):
    monkeypatch.chdir(speech.parent)
    (speech.parent / "nope.toml").write_text(OWN.replace('backend = "acme"', 'backend = "nope"', 1))
    done = run(*arguments)
    said = done.stderr.decode()
    assert done.returncode == 2, said
    assert "nope" in said
    assert "acme" in said


@pytest.mark.parametrize("kind", [AsrConfig, NmtConfig])
def test_a_wrong_name_in_a_program_is_refused_too(kind, acme):
    assert kind(backend="acme").backend == "acme"
    with pytest.raises(ConfigError, match="backend is 'nope'; allowed are .*, acme"):
        kind(backend="nope")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import a_module_that_is_missing", "ModuleNotFoundError: No module named 'a_module_that_is_missing'"),
        ("", "AttributeError: module 'broken_captions' has no attribute 'Push'"),
        ("def Push(*_):\n    raise ValueError('no\\nkey')", "ValueError: no key"),
    ],
)
def test_a_package_that_fails_is_named_in_one_line(code, why, install):
    install("broken", {"speech_translate.pushes": {"b": "broken_captions:Push"}}, broken_captions=code)
    expected = f"the entry point b = broken_captions:Push (speech_translate.pushes) of the package broken failed: {why}"
    with pytest.raises(UsageError) as failed:
        open_pushes([some_push("b=x")], ["pt"], SubtitleRules())
    assert str(failed.value) == f"{expected}; update or remove it"


def test_a_package_is_not_told_to_go_for_a_file_that_cannot_be_opened(acme, tmp_path):
    path = tmp_path / "missing" / "talk.acme"
    with pytest.raises(UsageError, match="failed: FileNotFoundError: .*talk.acme'; check its files and addresses$"):
        sink_makers(SubtitleRules(), more=["acme"])["acme"](path, languages=("pt",))


def test_a_server_offers_students_beside_a_translator_of_another_package(acme, tmp_path):
    config = parse_config(tomllib.loads(OWN), tmp_path / "acme.toml")
    offers = Offers([(config, load_models(config))], SharedModels())
    offered = offers._config("en", ("pt", "de"))
    assert [(nmt.backend, len(nmt.steps)) for nmt in offered.translators.values()] == [("acme", 0), ("marian", 1)]


def test_an_error_that_the_package_tells_as_ours_stays(install):
    code = "from pipeline.errors import UsageError\n\n\ndef Push(*_):\n    raise UsageError('give an address')"
    install("own-error", {"speech_translate.pushes": {"o": "own_error:Push"}}, own_error=code)
    with pytest.raises(UsageError, match="^give an address$"):
        PUSHES.make("o")


TABLES = (PROTOCOLS, PUSHES, RECOGNIZERS, SINKS, TRANSLATORS, VOICES)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.group)
def test_ours_are_where_the_table_says_and_no_package_replaces_them(table, install, monkeypatch):
    name = next(iter(table.own))
    install(
        "other", {f"speech_translate.{table.group}": {name: "other:thing", "more": "other:thing", "a.b": "other:thing"}}
    )
    assert (table[name], table["more"]) == (table.own[name], "other:thing")
    assert [*table] == [*table.own, "more"]
    assert len(table) == len(table.own) + 1
    plugins._entry_points.cache_clear()
    monkeypatch.setattr(importlib.metadata, "entry_points", None)  # nobody reads them for ours
    assert all(each in table for each in table.own)
    assert all(map(table.load, table.own))
    with pytest.raises(TypeError):
        list(table)


def test_what_is_optional_is_imported_only_when_it_is_asked_for():
    program = """
import sys
import pipeline.apps.pushes, pipeline.apps.serve, pipeline.server.protocols, pipeline.media.sinks.files, pipeline.speaking.voices
kinds = "pipeline.server.protocols. pipeline.push.hls pipeline.push.obs pipeline.push.webhook pipeline.push.youtube pipeline.push.zoom pipeline.backends.sherpa pipeline.backends.moonshine pipeline.speaking.kokoro pipeline.speaking.hibari"
print([name for name in sys.modules if name.startswith(tuple(kinds.split()))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

"""The Python code of the README and of docs/ runs, and its TOML is accepted. The code of docs/events.md has a test of its own."""

import ast
import asyncio
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pipeline import SpeechTranslator, Translation, load_config
from pipeline.config import parse_config
from pipeline.config.loading import load_shared
from pipeline.events import Samples
from pipeline.server.limits import ServerLimits
from pipeline.server.service import Service
from tests.commands import loaded_once
from tests.conftest import EXAMPLES, HANG_S, ROOT, read_wav, spoken_texts, write_wav
from tests.docs.pages import PAGES, blocks, commands
from tests.server.running import running

MEETING = EXAMPLES / "meeting.wav"
PYTHON = {
    "README.md": 1,
    "docs/archives.md": 1,
    "docs/embedding.md": 7,
    "docs/events.md": 1,
    "docs/extending.md": 1,
    "docs/server-programs.md": 3,
}
"""Page → number of its blocks; each has a test."""


pytestmark = pytest.mark.usefixtures("loaded")


async def run(code: str, **names: Any) -> dict[str, Any]:
    """Run code that may await at its top level; return its names."""
    compiled = compile(code, "snippet", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    namespace: dict[str, Any] = {"asyncio": asyncio, **names}
    if compiled.co_flags & inspect.CO_COROUTINE:
        await eval(compiled, namespace)
    else:
        await asyncio.to_thread(exec, compiled, namespace)
    return namespace


def code_of(page: str, number: int = 0) -> str:
    return blocks(PAGES[page], "python")[number]


async def host_audio(translator: SpeechTranslator) -> None:
    await translator.feed(read_wav(MEETING))
    await translator.end()


def test_every_block_has_a_test():
    assert {name: len(found) for name, page in PAGES.items() if (found := blocks(page, "python"))} == PYTHON


def test_the_readme_prints_translations(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    exec(compile(code_of("README.md"), "snippet", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(spoken_texts()["travel"])
    assert sum("Berlim" in line for line in lines) >= 3


def test_the_whole_chain_shows_growing_texts():
    shown: dict[tuple[int, str], list[str]] = {}

    def show(sentence: int, language: str, steady: str, draft: str) -> None:
        shown.setdefault((sentence, language), []).append(steady + draft)

    asyncio.run(run(code_of("docs/embedding.md"), host_audio=host_audio, show=show))
    assert len(shown) == 10
    assert max(map(len, shown.values())) > 3


def test_languages_in_code_have_translators():
    config = asyncio.run(run(code_of("docs/embedding.md", 1)))["config"]
    assert [(pair, nmt.model != "") for pair, nmt in config.translators.items()] == [
        (("de", "en"), True),
        (("de", "pt-BR"), True),
    ]


async def test_subtitles_are_written_and_a_stage_runs_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with SpeechTranslator(load_config("demo")) as translator, asyncio.TaskGroup() as group:
        group.create_task(host_audio(translator))
        await run(code_of("docs/embedding.md", 2), translator=translator)
    assert "-->" in (tmp_path / "talk.srt").read_text("utf-8")
    shown: list[object] = []
    await run(code_of("docs/embedding.md", 3), show=shown.append)
    assert isinstance(shown[-1], Translation)
    assert "hotel" in shown[-1].text


def test_texts_are_translated_with_their_markup(capsys):
    names = asyncio.run(run(code_of("docs/embedding.md", 4)))
    assert capsys.readouterr().out == "Ele <b>não</b> é culpado.\nOlá {name}!\n"
    assert names["page"] == "<p>Onde está o <i>hotel</i>?</p>"


def test_the_decoder_is_driven_by_a_search_of_ones_own(capsys):
    names = asyncio.run(run(code_of("docs/embedding.md", 5)))
    assert "hotel" in capsys.readouterr().out
    model, state = names["model"], names["model"].decoder.encode(names["model"].tokenizer.encode("Where is the hotel?"))
    model.decoder.step(state, model.generation.start_token)
    for each in (state.fork(), state):
        assert model.decoder.force(each, names["tokens"]).argmax() == model.generation.end_token


@pytest.mark.slow
def test_any_executor_translates_recordings(tmp_path):
    (folder := tmp_path / "examples" / "audio").mkdir(parents=True)
    write_wav(folder / "meeting.wav", read_wav(MEETING)[: 16_000 * 6])
    (tmp_path / "archive.py").write_text(code_of("docs/archives.md"), "utf-8")
    done = subprocess.run(
        [sys.executable, "archive.py"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.stdout == "['done']\n", done.stderr
    assert (tmp_path / "subtitles" / "meeting.srt").stat().st_size > 100


def test_the_harness_gives_subtitles():
    names = asyncio.run(run(code_of("docs/embedding.md", 6)))
    assert "Berlim" in names["translation"].text
    assert "Berlim" in " ".join(names["cue"].lines)


def upsampled(samples: Samples) -> bytes:
    """16 kHz as 24 kHz PCM, by linear interpolation."""
    times = np.arange(0, len(samples), 2 / 3)
    return np.interp(times, np.arange(len(samples)), samples).astype("<i2").tobytes()


@pytest.fixture(scope="module")
def make_serve() -> Callable[[], Service]:
    """Makes the service that `make serve` starts."""
    (names,) = re.findall(r"pipeline\.serve (.*?) --port", (ROOT / "Makefile").read_text("utf-8"))
    configs = [load_config(name) for name in names.replace("--config", "").split()]
    with loaded_once():
        models = load_shared(configs)
    (first, *others) = zip(configs, models, strict=True)
    return lambda: Service(*first, ServerLimits(), others=others)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")  # the package calls its translations deprecated
@pytest.mark.parametrize("number", range(3))
async def test_clients_of_openai_s_interface_print_text(number, make_serve, tmp_path, monkeypatch, capsys):
    (tmp_path / "talk.wav").symlink_to(MEETING)
    monkeypatch.chdir(tmp_path)
    async with running(make_serve()) as server:
        code = code_of("docs/server-programs.md", number)
        assert "http://127.0.0.1:8000/v1" in code
        await run(
            code.replace("http://127.0.0.1:8000/v1", server.address), pcm=upsampled(read_wav(MEETING)[: 10 * 16_000])
        )
    said = capsys.readouterr().out
    assert number == 2 or "orçamento" in said
    assert number == 1 or "budget" in said


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
async def test_commands_that_ask_a_server_are_answered(make_serve):
    asking = [each for each in commands(PAGES["docs/server-programs.md"]) if each.startswith("curl ")]
    assert asking
    async with running(make_serve()) as server:
        for command in asking:
            there = command.replace("http://127.0.0.1:8000", server.url)
            process = await asyncio.create_subprocess_shell(there, cwd=ROOT, stdout=subprocess.PIPE)
            said, _ = await process.communicate()
            answer = json.loads(said)["translatedText"] if "/translate" in command else said.decode()
            assert ("estação" if "/translate" in command else "train to Berlin") in answer, command


@pytest.mark.parametrize(
    ("page", "text"),
    [(name, text) for name, page in PAGES.items() for text in blocks(page, "toml") if "[project]" not in text],
)
def test_a_configuration_is_accepted(page, text):
    parse_config(tomllib.loads(text), ROOT / f"{page}.toml")

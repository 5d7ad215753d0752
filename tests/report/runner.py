"""Run all inputs through the revision in a folder, by its commands and documented API, and write the result as JSON.

python -m tests.report.runner FOLDER RESULT.json CORE KIND …; a CORE of "" is any.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from .compare import InputSet, Item, Result, as_json

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
CONFIGS = {("en", "pt"): "demo", ("pt", "en"): "demo-pt-en"}
"""Directions, and the configurations that users have for them."""
RECORDINGS = {
    source: sorted((ROOT / "examples" / folder).glob("*.wav"))
    for source, folder in (("en", "audio"), ("pt", "audio-pt"))
}
SAID: dict[str, list[str]] = json.loads((ROOT / "tests" / "media" / "audio" / "texts.json").read_text("utf-8"))
TRANSLATED: dict[str, list[str]] = json.loads((DATA / "translations.json").read_text("utf-8"))
PAGES = {"html": "html", "lines": "text"}
"""Kinds of texts that LibreTranslate's protocol divides into sentences, and their format there."""
_HANGS_S = 300
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}


class FailedError(Exception):
    """A program of the revision failed; the message is the last of its own."""


class Programs:
    """Runs programs of a revision, one after another, and adds up what they take."""

    def __init__(self, tree: Path, work: Path) -> None:
        self.tree, self.work = tree, work
        self.cpu_s = self.peak_mb = 0.0
        self.modules: set[str] = set()

    @contextmanager
    def started(self, *arguments: object, standard_input: str = "") -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """A program and the file of its messages. On leaving, it is waited for."""
        output, messages, given = (self.work / name for name in ("output", "messages", "input"))
        given.write_text(standard_input, "utf-8")
        # Prints each module that is imported, also if the program ends without cleaning up. -P: only modules of the revision.
        command = [sys.executable, "-P", "-X", "importtime", *map(str, arguments)]
        surroundings = {**os.environ, "PYTHONPATH": str(self.tree), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        with given.open("rb") as stdin, output.open("wb") as stdout, messages.open("wb") as stderr:
            process = subprocess.Popen(
                command, cwd=self.tree, env=surroundings, stdin=stdin, stdout=stdout, stderr=stderr
            )
        hangs = threading.Timer(_HANGS_S, process.kill)
        hangs.start()
        try:
            yield process, messages
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            hangs.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s += usage.ru_utime + usage.ru_stime
        self.peak_mb = max(self.peak_mb, usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10))
        said = messages.read_text("utf-8", "replace")
        self.modules.update(re.findall(r"^import time: .*\| +(pipeline(?:\.\w+)*)$", said, re.MULTILINE))
        if process.returncode:
            own = [line for line in said.splitlines() if line.strip() and not line.startswith("import time:")]
            raise FailedError(own[-1] if own else f"exit status {process.returncode}")

    def run(self, *arguments: object, standard_input: str = "") -> str:
        """The output of a program."""
        with self.started(*arguments, standard_input=standard_input):
            pass
        return (self.work / "output").read_text("utf-8")

    def lines(self) -> int:
        """Lines of the modules that were loaded."""
        paths = [self.tree.joinpath(*name.split(".")) for name in self.modules]
        files = [path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in paths]
        return sum(len(file.read_bytes().splitlines()) for file in files if file.exists())


def sentences(events: str, name: str) -> list[Item]:
    """The recognised sentences of a recording with their translations, from a file of events."""
    records = [json.loads(line) for line in events.splitlines()]
    sources, texts = (
        {one["sentence"]: one["text"] for one in records if one["type"] == kind}
        for kind in ("source_sentence", "translation")
    )
    known = list(zip(SAID[name], TRANSLATED[name], strict=True))
    if len(known) != len(sources):  # scored as a whole
        known = [(" ".join(SAID[name]), " ".join(TRANSLATED[name])), *[("", "")] * (len(sources) - 1)]
    return [
        Item(f"{name}:{at + 1}", sources[number], texts.get(number, ""), reference, said)
        for at, (number, (said, reference)) in enumerate(zip(sorted(sources), known, strict=False))
    ]


def live(direction: tuple[str, str], programs: Programs) -> list[Item]:
    found = []
    for audio in RECORDINGS[direction[0]]:
        events = programs.work / f"{audio.stem}.jsonl"
        events.unlink(missing_ok=True)
        programs.run("-m", "pipeline.live", audio, "--config", CONFIGS[direction], "--fast", "--jsonl", events)
        found += sentences(events.read_text("utf-8"), audio.stem)
    return found


def recordings(direction: tuple[str, str], programs: Programs) -> list[Item]:
    audio = RECORDINGS[direction[0]]
    options = "--config", CONFIGS[direction], "--format", "jsonl,srt", "--output-dir", programs.work
    programs.run("-m", "pipeline.translate", *audio, *options)
    found = [
        item for one in audio for item in sentences((programs.work / f"{one.stem}.jsonl").read_text("utf-8"), one.stem)
    ]
    for one in audio:
        cues = parts(programs.work / f"{one.stem}.srt")
        found += [Item(f"{one.stem}.srt:{time}", "", text) for time, text in cues.items()]
    return found


def subtitles(direction: tuple[str, str], programs: Programs) -> list[Item]:
    source, target = direction
    files = sorted(DATA.glob(f"*-{source}.*"))
    programs.run("-m", "pipeline.translate", *files, "--config", CONFIGS[direction], "--output-dir", programs.work)
    found = []
    for file in files:
        sources, references = parts(file), parts(file.with_stem(file.stem.replace(f"-{source}", f"-{target}")))
        (written,) = programs.work.glob(f"{file.stem}*{file.suffix}")
        found += [
            Item(f"{file.name}:{time}", sources.get(time, ""), text, references.get(time, ""))
            for time, text in parts(written).items()
        ]
    return found


def parts(path: Path) -> dict[str, str]:
    """Time → the cue that has it; what is no cue stands for itself."""
    text = path.read_text("utf-8")
    if path.suffix == ".ass":
        cues = [re.match(r"(?:Dialogue: \d+,)([\d:.]+,[\d:.]+),(.*)", line) for line in text.splitlines()]
        others = [line for line, cue in zip(text.splitlines(), cues, strict=True) if cue is None]
    else:
        blocks = [block.strip() for block in text.split("\n\n")]
        cues = [re.match(r"(?:.*\n)?([\d:.,]+ --> [\d:.,]+) *(.*)", block, re.DOTALL) for block in blocks]
        others = [block for block, cue in zip(blocks, cues, strict=True) if cue is None]
    return {**{each: each for each in others if each}, **{cue[1]: cue[2].strip() for cue in cues if cue is not None}}


def pairs(kind: str, direction: tuple[str, str]) -> list[tuple[str, str]]:
    """The texts of a kind, each with its reference."""
    name, skipped = ("tatoeba", 0) if kind == "tatoeba" else ("own", 1)
    rows = [line.split("\t") for line in (DATA / f"{name}.tsv").read_text("utf-8").splitlines()]
    texts = [
        [re.sub(r"\\(.)", lambda match: _ESCAPES[match[1]], text) for text in row[skipped:]]
        for row in rows
        if not skipped or row[0] == kind
    ]
    return [(en, pt) if direction[0] == "en" else (pt, en) for en, pt in texts]


def plain(kind: str, direction: tuple[str, str], programs: Programs) -> list[Item]:
    texts = pairs(kind, direction)
    given = json.dumps([source for source, _ in texts])
    done = json.loads(programs.run(HERE / "texts.py", CONFIGS[direction], *direction, standard_input=given))
    return _numbered(kind, texts, done)


def _numbered(kind: str, texts: Sequence[tuple[str, str]], done: Sequence[str]) -> list[Item]:
    return [
        Item(f"{kind} {number}", source, text, reference)
        for number, ((source, reference), text) in enumerate(zip(texts, done, strict=True), 1)
    ]


def pages(direction: tuple[str, str], programs: Programs) -> list[Item]:
    """Texts with markup, as programs for LibreTranslate send them."""
    found = []
    options = "--config", CONFIGS[direction], "--port", 0
    with programs.started("-m", "pipeline.serve", *options) as (process, messages):
        while not (address := re.search(r"^serving on (http://[\d.:]+/)", messages.read_text("utf-8"), re.MULTILINE)):
            if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
            time.sleep(0.1)
        if address:
            for kind, form in PAGES.items():
                texts = pairs(kind, direction)
                source, target = direction
                fields = {"q": [text for text, _ in texts], "source": source, "target": target, "format": form}
                request = urllib.request.Request(
                    f"{address[1]}translate", json.dumps(fields).encode(), {"content-type": "application/json"}
                )
                with urllib.request.urlopen(request, timeout=_HANGS_S) as answer:
                    found += _numbered(kind, texts, json.load(answer)["translatedText"])
            process.terminate()
    return found


KINDS: dict[str, Callable[[tuple[str, str], Programs], list[Item]]] = {
    "live": live,
    "recordings": recordings,
    "subtitles": subtitles,
    "pages": pages,
    **{kind: partial(plain, kind) for kind in ("tatoeba", "talks", "numbers", "questions", "names")},
}


def run(tree: Path, kinds: Sequence[str]) -> Result:
    """The results of the revision in a folder. What it cannot do is reported."""
    result: Result = {}
    for kind in kinds:
        for direction in CONFIGS:
            name = f"{kind} {'→'.join(direction)}"
            print(f"  {name}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                programs, failed, items = Programs(tree, Path(folder)), "", list[Item]()
                try:
                    items = KINDS[kind](direction, programs)
                except (FailedError, OSError, ValueError, KeyError) as error:
                    failed = str(error) or type(error).__name__
                result[name] = InputSet(items, programs.cpu_s, programs.peak_mb, programs.lines(), failed)
    return result


def main(tree: str, file: str, core: str, *kinds: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    if core:
        os.sched_setaffinity(0, {int(core)})
    # Otherwise the first program of a new folder would take the time.
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(Path(tree) / "pipeline")], check=False)
    Path(file).write_text(as_json(run(Path(tree), kinds)), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

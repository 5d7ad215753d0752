"""The program speech-translate, its commands, and what all commands' help has in common."""

import io
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import pytest

import pipeline
from pipeline.apps import check, live, models, nmt, serve, translate
from pipeline.apps.commands import COMMANDS
from pipeline.bench import __main__ as bench
from pipeline.console.cli import Parser
from tests.commands import run
from tests.conftest import HANG_S, ROOT

PARSERS: dict[str, Callable[[], Parser]] = {
    "live": live.arguments,
    "translate": translate.arguments,
    "serve": serve.arguments,
    "check": check.arguments,
    "models": models.arguments,
    "bench": bench.arguments,
    "nmt": nmt.arguments,
}
SUBCOMMANDS = [("models", name) for name in ("list", "pull", "compile", "inspect")]
SUBCOMMANDS += [("bench", name) for name in bench.COMMANDS]
# As the console script, which pip writes, calls it.
SCRIPT = "import sys; sys.argv[0] = '/usr/bin/speech-translate'; from pipeline.__main__ import main; main()"


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Python run with these arguments, to its end."""
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=HANG_S, check=False)


def typed(*arguments: str | Path, module: str = "__main__") -> subprocess.CompletedProcess[str]:
    """What speech-translate does with these arguments, in this process."""
    done = run(module, *arguments)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def help_of(command: str, *subcommands: str) -> str:
    """The help of a command, as printed."""
    with redirect_stdout(io.StringIO()) as said, pytest.raises(SystemExit):
        PARSERS[command]().parse_args([*subcommands, "--help"])
    return said.getvalue()


def test_help_lists_each_command_with_one_line():
    done = typed("--help")
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    for name, what in COMMANDS.items():
        assert f"{name} {what}" in words


def test_help_and_version_import_no_other_package():
    program = (
        "import sys; before = set(sys.modules)\n"
        "import contextlib, io\n"
        "from pipeline.apps.program import run\n"
        "for option in ('--help', '--version'):\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "        run([option], 'x')\n"
        "print({name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)\n"
    )
    assert started("-c", program).stdout.strip() == "{'pipeline'}"


def test_version_is_the_package_s():
    for arguments in (("-c", SCRIPT), ("-m", "pipeline")):
        assert started(*arguments, "--version").stdout == f"speech-translate {pipeline.__version__}\n"


@pytest.mark.parametrize("arguments", [["subtitle"], [], ["--config", "demo-zh"]])
def test_wrong_usage_exits_with_2(arguments):
    done = typed(*arguments)
    assert done.returncode == 2
    assert re.fullmatch("error: .*; speech-translate --help shows what is possible\n", done.stderr)
    assert not done.stdout


def test_unknown_command_names_those_that_exist():
    said = typed("subtitle").stderr
    assert "'subtitle'" in said
    assert all(name in said for name in COMMANDS)


def test_a_recording_is_no_command(tmp_path):
    (recording := tmp_path / "talk.wav").touch()
    done = typed(recording)
    assert (done.returncode, f"speech-translate translate {recording}" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("start", "program"),
    [
        (partial(typed, "models"), "speech-translate models"),
        (partial(started, "-m", "pipeline", "models"), "python -m pipeline models"),
        (partial(typed, module="models"), "python -m pipeline.models"),
    ],
    ids=["script", "package", "module"],
)
def test_help_and_errors_name_the_program_as_started(start, program):
    done = start("pull")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert f"; {program} pull --help shows what is possible\n" in done.stderr
    assert f"\n  {program} pull en-zh" in start("pull", "--help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_starts_by_its_name(command):
    done = typed(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: speech-translate {command} ")


@pytest.mark.parametrize("command", [(name,) for name in PARSERS] + SUBCOMMANDS, ids=" ".join)
def test_help_ends_with_examples_that_parse(command):
    name, *subcommands = command
    program = f"python -m pipeline.{' '.join(command)}"
    before, found, examples = help_of(name, *subcommands).partition("\nexamples:\n")
    assert found
    assert f"usage: {program} " in before
    for line in examples.splitlines():
        arguments = shlex.split(line.partition(f"{program} ")[2].partition(" < ")[0])
        if "--help" not in arguments and line.strip() != program:
            PARSERS[name]().parse_args([*subcommands, *arguments])


@pytest.mark.parametrize("command", ["live", "translate", "serve", "nmt"])
def test_options_are_grouped(command):
    groups = [line for line in help_of(command).splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert {"languages and models:", "examples:"} < set(groups)
    assert len(groups) >= 4
    assert "positional arguments:" not in groups


@pytest.fixture(scope="module")
def completions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the completion script of each shell, named as the shell."""
    folder = tmp_path_factory.mktemp("completions")
    for shell in ("bash", "zsh", "fish"):
        done = typed("--print-completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        (folder / shell).write_text(done.stdout, "utf-8")
    return folder


def test_the_manual_page_has_each_command_and_option():
    done = typed("--print-manual")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.replace(r"\-", "-").splitlines()
    assert lines[0].startswith('.TH SPEECH-TRANSLATE "1" ')
    assert lines[1:3] == [".SH NAME", "speech-translate - translated subtitles while people speak"]
    macros = {line.split()[0] for line in lines if line.startswith((".", "'"))}
    assert macros == {".TH", ".SH", ".SS", ".B", ".TP", ".RS", ".RE"}  # no text is read as one
    for name in COMMANDS:
        start = lines.index(rf".SS \fBspeech-translate {name}\fR")
        usage = next(line for line in lines[start:] if line.startswith("usage: "))
        assert usage.startswith(f"usage: speech-translate {name} ")
    (at,) = (at for at, line in enumerate(lines) if line == r"\fB--output-dir\fR \fI\,D\/\fR")
    assert lines[at - 1] == ".TP"


def test_the_manual_page_says_what_it_needs(monkeypatch):
    for name in ("argparse_manpage", "argparse_manpage.manpage"):
        monkeypatch.setitem(sys.modules, name, None)
    done = typed("--print-manual")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: argparse-manpage, which writes the page, is not installed; ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("live --config demo", ["demo", "demo-pt-en", "demo-zh", "demo-zh-en"]),
        ("ser", ["serve"]),
        ("live --list-d", ["--list-devices"]),
        ("models compile --weights int", ["int8", "int4"]),
        ("bench cap", ["capacity"]),
        ("translate pyproj", ["pyproject.toml"]),
    ],
)
def test_bash_completes_commands_options_and_values(completions, line, found):
    words = " ".join(["speech-translate", *line.split()])
    script = (
        f"source {completions / 'bash'}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        '_shtab_speech_translate speech-translate "${COMP_WORDS[-1]}"; echo "${COMPREPLY[*]}"'
    )
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == found, done.stderr


FISH = (
    "source fish; complete -C 'speech-translate live --list-d'; complete -C 'speech-translate live --config demo-zh-'"
)
ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=($PWD \\$fpath); autoload -U compinit; compinit -u -D; bindkey '^I' complete-word; echo RE''ADY"
zpty -r shell out '*READY*'
for typed found in 'live --list-d' '*list-devices*' 'live --config demo-zh-' '*demo-zh-en*'; do
  zpty -n -w shell "speech-translate $typed"$'\t'
  zpty -r shell out $found
  echo $out
  zpty -n -w shell $'\x15'
done
"""


@pytest.mark.parametrize(("shell", "script"), [("zsh", ZSH), ("fish", FISH)])
def test_other_shells_complete_options_and_values(completions, shell, script, tmp_path):
    said = (completions / shell).read_text("utf-8")
    assert all(name in said for name in (*COMMANDS, "list-devices", "demo-zh-en", "int4"))
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed; .ci/run installs it")
    (tmp_path / {"zsh": "_speech-translate"}.get(shell, shell)).write_text(said, "utf-8")
    words = [shell, *(["-f"] if shell == "zsh" else []), "-c", script]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert "list-devices" in done.stdout, done.stderr
    assert "demo-zh-en" in done.stdout, done.stderr


def test_an_unknown_shell_is_wrong_usage():
    done = typed("--print-completion", "cmd")
    assert done.returncode == 2
    assert "choose from 'bash', 'zsh', 'fish'" in done.stderr


@pytest.mark.parametrize("command", ["live", "translate", "check"])
def test_a_file_whose_name_begins_with_a_dash_gets_a_hint(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for hint in ("--help shows what is possible\n", "; write ./-dash.wav for the file\n"):
        with pytest.raises(SystemExit, match="2"):
            PARSERS[command]().parse_args(["-dash.wav"])
        assert capsys.readouterr().err.endswith(hint)
        (tmp_path / "-dash.wav").touch()

"""What surrounds the code: version, changelog, guides, workflows, and the packages that are built."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from importlib.util import find_spec
from typing import Any

import pytest
import yaml

import pipeline
from tests.commands import run
from tests.conftest import EXAMPLES, HANG_S, ROOT, TINY

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CHANGELOG, CONTRIBUTING, SECURITY = (
    (ROOT / f"{name}.md").read_text("utf-8") for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")
)
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
ISSUES = ROOT / ".github" / "ISSUE_TEMPLATE"
FAST = [line for line in (ROOT / "tests" / "fast.txt").read_text("utf-8").splitlines() if line.startswith("tests/")]


def output_of(*command, cwd=None, status=0):
    """What a program prints that does not find the modules of this checkout."""
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=without, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == status, done.stdout[-2_000:] + done.stderr[-2_000:]
    return done.stdout


def lines_of(text):
    """The commands in a page's shell blocks, without comments."""
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]


COMMANDS = lines_of(CONTRIBUTING)
BY_CI = {"make demo", "make test", "make test-fast", "ruff check . && ruff format --check .", "mypy"}
"""What .ci/run or a workflow runs, in these words or as a part of ``make test``."""
SETS_UP = {
    "python3 -m venv .venv",
    ".venv/bin/python -m pip install --editable '.[dev]'",
    ". .venv/bin/activate",
    "pip install pre-commit",
    "pre-commit install",
}
BUILDS = {"python -m build", "python -m twine check --strict dist/*"}
"""See the tests of the wheel below."""
HERE = [command for command in COMMANDS if command not in BY_CI | SETS_UP | BUILDS]


def test_the_newest_version_of_the_changelog_is_the_package_s():
    versions = re.findall(r"^## (\S+) - (Unreleased|\d{4}-\d\d-\d\d)$", CHANGELOG, re.MULTILINE)
    assert versions[0][0] == pipeline.__version__
    assert all(date != "Unreleased" for _, date in versions[1:])
    assert len(CHANGELOG.splitlines()) <= 150


def test_changes_are_in_the_sections_of_keep_a_changelog():
    sections = set(re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE))
    assert {"Added"} <= sections <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_changes_since_the_last_release_are_fragments():
    for path in (ROOT / "docs" / "changes").iterdir():
        if path.name != "README.md":
            assert re.fullmatch(r"\+[\w-]+\.(added|changed|deprecated|removed|fixed|security)\.md", path.name), path
            (line,) = path.read_text("utf-8").splitlines()
            assert line[:1].strip("-# "), path


@pytest.mark.skipif(find_spec("towncrier") is None, reason="towncrier is not installed")
def test_a_release_collects_the_fragments(tmp_path):
    for name in ("pyproject.toml", "CHANGELOG.md", "docs/changes"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    (tmp_path / "docs" / "changes" / "+more.fixed.md").write_text("Mended.\n", "utf-8")
    output_of(sys.executable, "-m", "towncrier", "build", "--yes", "--version", "9.8.7", cwd=tmp_path)
    changelog = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    new, old = changelog.split("\n## ")[1:3]
    assert re.match(r"9\.8\.7 - \d{4}-\d\d-\d\d\n", new)
    assert "\n- Mended.\n" in new.split("### Fixed\n")[1]
    assert old.startswith(f"{pipeline.__version__} - ")
    assert [path.name for path in (tmp_path / "docs" / "changes").iterdir()] == ["README.md"]


def test_dependencies_with_version_numbers_that_tell_are_bounded_above():
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *extras["server"]]
    unbounded = {re.match(r"[\w-]+", each)[0] for each in needed if "<" not in each}
    assert unbounded == {"cryptography"}


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_lead_to_files(name):
    links = re.findall(r"\]\(([^)#]+)", (ROOT / name).read_text("utf-8"))
    assert links
    assert [link for link in links if not link.startswith("https://") and not (ROOT / link).exists()] == []


def test_each_command_of_the_guide_is_run_or_known():
    assert set(COMMANDS) >= BY_CI | SETS_UP | BUILDS
    assert len(HERE) >= 5
    assert len(CONTRIBUTING.splitlines()) <= 120


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in HERE if "pytest" not in command])
def test_a_command_of_the_guide_runs(command, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    *program, name = shlex.split(command)[:4]
    assert program == ["python", "-m", "pipeline"]
    done = run("__main__", name, *shlex.split(command)[4:])
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("command", [command for command in HERE if "pytest" in command])
def test_a_command_of_the_guide_names_tests_that_exist(command):
    for name in re.findall(r"tests/\S+", command):
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text("utf-8"), test


def test_the_guide_names_each_folder_of_tests():
    named = set(re.findall(r"`(tests/\w+)`", CONTRIBUTING))
    folders = {f"tests/{path.parent.name}" for path in (ROOT / "tests").glob("*/test_*.py")}
    assert folders <= named


def test_the_fast_tests_exist():
    assert FAST
    assert [path for path in FAST if not (ROOT / path).exists()] == []


def test_the_workflow_runs_what_the_guide_says_on_the_promised_systems():
    jobs = WORKFLOW["jobs"]
    assert {"run": ".ci/run"} in jobs["all"]["steps"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert any("@tests/fast.txt" in step.get("run", "") for step in jobs["fast"]["steps"])
    matrix = jobs["fast"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} >= {"macos", "windows"}
    versions = {name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d", name)}
    assert set(matrix["python"]) == versions
    assert min(versions) == PROJECT["requires-python"].removeprefix(">=")


def test_a_bug_s_form_asks_for_what_is_needed():
    form = yaml.safe_load((ISSUES / "bug.yml").read_text("utf-8"))
    asked = {part["id"] for part in form["body"] if "id" in part}
    assert {"version", "command", "configuration", "audio", "output"} <= asked


@pytest.mark.skipif(find_spec("check_jsonschema") is None, reason="check-jsonschema is not installed")
@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("github-workflows", [ROOT / ".github" / "workflows" / "ci.yml"]),
        ("github-issue-forms", [ISSUES / "bug.yml", ISSUES / "feature.yml"]),
        ("github-issue-config", [ISSUES / "config.yml"]),
    ],
)
def test_files_for_github_are_valid(schema, paths):
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*check, *paths], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout


def test_commits_are_checked_with_ruff_and_mypy():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
    assert {hook["entry"].split()[0] for hook in hooks} == {".venv/bin/ruff", ".venv/bin/mypy"}
    assert all({"id", "name", "entry", "language"} <= set(hook) for hook in hooks)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the source archive and the wheel that was built from it; beside it ``editable``, with such a wheel."""
    if find_spec("build") is None or find_spec("hatchling") is None:
        pytest.skip("build and hatchling are not installed")
    folder = tmp_path_factory.mktemp("built")
    clone = folder / "clone"
    for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines():
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    output_of(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", cwd=clone)
    (folder / "editable").mkdir()
    editable = "import hatchling.build, sys; hatchling.build.build_editable(sys.argv[1])"
    output_of(sys.executable, "-c", editable, folder / "editable", cwd=clone)
    return folder / "dist"


@pytest.fixture(scope="module", params=["dist", "editable"])
def python(request, built, tmp_path_factory):
    """The interpreter of an environment in which the package is installed, beside the libraries of this one."""
    folder = tmp_path_factory.mktemp(request.param)
    venv.create(folder, symlinks=True)
    found = folder / "bin" / "python"
    (wheel,) = (built.parent / request.param).glob("*.whl")
    output_of(sys.executable, "-m", "pip", "--python", found, "install", "--no-deps", "--no-index", wheel)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
    return found


@pytest.mark.slow
def test_the_wheel_has_the_package_and_the_demo_alone(built):
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"streaming_speech_translation-{pipeline.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "pipeline.py", "speech_translate", wheel.name.rpartition("-py3")[0] + ".dist-info"
    }  # fmt: skip
    bundled = {name.removeprefix("speech_translate/_bundled/").split("/")[0] for name in names if "/_bundled/" in name}
    assert bundled == {"configs", "examples", "models"}
    assert {name for name in names if name.endswith(".wav")} == {"speech_translate/_bundled/examples/audio/travel.wav"}
    needed = {"py.typed", "server/static/index.html", "_bundled/configs/demo.toml"}
    assert {f"speech_translate/{name}" for name in needed} <= set(names)
    assert not [name for name in names if "test" in name.split("/")[1:-1]]
    assert wheel.stat().st_size <= 30e6


@pytest.mark.slow
def test_the_wheel_s_metadata(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = archive.read(name).decode()
        scripts = archive.read(name.replace("METADATA", "entry_points.txt")).decode()
    assert f"\nVersion: {pipeline.__version__}\n" in metadata
    assert "\nRequires-Python: >=3.11\n" in metadata  # pip says so on an older Python
    assert re.findall(r"^[\w-]+ = .*$", scripts, re.MULTILINE) == ["speech-translate = speech_translate.__main__:main"]


def test_the_source_archive_has_what_the_wheel_is_built_from(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        ".ci/build_hook.py",
        "pipeline/__main__.py",
    } <= names
    assert not [name for name in names if name.startswith("tests/")]


def test_the_container_is_built_from_what_the_source_archive_has():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    first, *rest = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[0] != "#"]
    assert first == "*"
    assert {line for line in rest if line[0] == "!"} == {
        "!pyproject.toml",
        *(name.replace("/", "!", 1) for name in included),
    }


@pytest.mark.slow
@pytest.mark.parametrize("names", [("pipeline", "speech_translate"), ("speech_translate", "pipeline")])
def test_both_names_are_of_the_same_modules(python, names, tmp_path):
    first, second = names
    program = f"""
import importlib.util, sys
import {first}.events, {first}.core.nmt.stage
import {second}.events
from {second}.core.nmt.stage import NmtStage
assert {first} is {second} and {first}.events is {second}.events
assert {first}.NmtStage is {second}.NmtStage is NmtStage
assert importlib.reload({first}.events) is {second}.events
assert {first}.events.__spec__.name == {first}.events.__name__
assert importlib.util.find_spec("{first}.nothing") is importlib.util.find_spec("{second}.nothing") is None
own = {{id(module): module.__file__ for module in sys.modules.values() if {first}.__path__[0] in str(vars(module).get("__file__"))}}
assert len(own) == len(set(own.values())) > 5, "imported twice"
"""
    output_of(python, "-c", program, cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pipeline", "speech_translate"])
def test_commands_run_under_both_names(python, name, tmp_path):
    module = {"pipeline": "live", "speech_translate": "bench"}[name]
    said = output_of(python, "-m", f"{name}.{module}", "--help", cwd=tmp_path)
    assert f"usage: python -m pipeline.{module} " in said
    assert output_of(python, "-m", name, "--version", cwd=tmp_path) == f"speech-translate {pipeline.__version__}\n"
    script = python.with_name("speech-translate")
    assert "usage: speech-translate live " in output_of(script, "live", "--help", cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("python", ["dist"], indirect=True)
def test_a_host_may_have_a_module_called_pipeline(python, tmp_path):
    (tmp_path / "pipeline.py").write_text("raise SystemExit('the module of the host was imported')\n")
    program = """
import importlib, pkgutil, sys, speech_translate
for module in pkgutil.walk_packages(speech_translate.__path__, "speech_translate."):
    importlib.import_module(module.name)
for name in speech_translate.__all__:
    getattr(speech_translate, name)
"""
    output_of(python, "-c", program, cwd=tmp_path)
    module = (python, "-m", "speech_translate")
    assert "_speech_translate" in output_of(*module, "--print-completion", "bash", cwd=tmp_path)
    live = ("live", EXAMPLES / "travel.wav", "--config", "demo-zh", "--asr", "tiny.en", "--fast", "--verbose")
    assert "柏林" in output_of(*module, *live, cwd=tmp_path)
    output_of(*module, "bench", "nmt", "--model", TINY, "--rounds", "1", cwd=tmp_path)  # starts processes


@pytest.mark.slow
@pytest.mark.skipif(find_spec("twine") is None, reason="twine is not installed")
def test_the_packages_can_be_published(built):
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout


def test_tests_that_hang_are_ended(request):
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    assert options["timeout"] == 60
    assert any(package.startswith("pytest-timeout") for package in PROJECT["optional-dependencies"]["dev"])
    own = request.node.get_closest_marker("timeout")
    if request.config.option.timeout is None:
        assert own is not None, "this one starts programs, so it may take longer"
        assert 60 < own.args[0] < HANG_S


HANGING = """
import subprocess, sys
def test_waits_for_a_program():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE):
        input()
async def test_waits_for_a_task():
    import asyncio
    await asyncio.Event().wait()
def test_does_not():
    pass
"""


@pytest.mark.slow
def test_tests_that_hang_are_ended_with_what_they_started(tmp_path):
    (tmp_path / "test_hanging.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "tests.conftest", "--timeout", "3", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as running:
        said = running.stdout.read()
    assert "2 failed, 1 passed" in said


@pytest.mark.slow
def test_without_playwright_all_but_the_pages_is_tested():
    code = "import sys, pytest; sys.modules['playwright'] = None; sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--collect-only", "-q", "tests/server/test_voices.py", "tests/browser"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout
    assert "tests/server/test_voices.py::" in done.stdout
    assert "tests/browser/test_page.py::" not in done.stdout
    users = {path.parent.name for path in (ROOT / "tests").rglob("*.py") if "playwright" in path.read_text("utf-8")}
    assert users == {"browser", "tests"}, "the pages' tests, and this file"


def test_the_one_file_gets_every_package_of_the_demo():
    script = (ROOT / "examples/deploy/onefile.sh").read_text("utf-8")
    demo = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["demo"]
    (collected,) = re.findall(r"for package in (.*); do  # weights", script)
    assert collected.split() == [package.partition("==")[0].replace("-", "_") for package in demo]

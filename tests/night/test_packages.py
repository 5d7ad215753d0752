"""What the installed package gives to type checkers, which takes ten seconds."""

import sys

import pytest

from tests.test_project import built, output_of, python

__all__ = ["built", "python"]  # fixtures


@pytest.mark.parametrize("python", ["dist"], indirect=True)
def test_types_reach_a_program_that_uses_the_package(python, tmp_path):
    wrong = "from speech_translate import load_config\n\nwrong: int = load_config('demo').asr.model\n"
    (tmp_path / "program.py").write_text(wrong)
    command = (sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "program.py")
    first, *rest = output_of(*command, cwd=tmp_path, status=1).splitlines()
    assert first.startswith('program.py:3: error: Incompatible types in assignment (expression has type "str')
    assert len(rest) == 1

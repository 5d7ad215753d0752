"""How errors are shown: in one line, with the class where that says more than the message."""

import re

import pytest

from pipeline import errors
from pipeline.errors import PipelineError, StageError, UsageError, described, first_line, one_line


class BrokenError(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "text", "line", "first"),
    [
        (ValueError("a\nb  c"), "a\nb  c", "a b c", "a"),
        (ValueError(" "), "ValueError", "ValueError", "ValueError"),
        (ValueError(), "ValueError", "ValueError", "ValueError"),
        (UsageError("the file a\nb"), "the file a\nb", "the file a\nb", "the file a"),
        (StopIteration(3), "StopIteration: 3", "StopIteration: 3", "3"),
        (StopAsyncIteration(), "StopAsyncIteration", "StopAsyncIteration", "StopAsyncIteration"),
        (SystemExit(1), "SystemExit: 1", "SystemExit: 1", "1"),
        (KeyboardInterrupt(), "KeyboardInterrupt", "KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_an_error_is_its_message_or_its_class(error, text, line, first):
    assert (described(error), one_line(error), first_line(error)) == (text, line, first)
    stage = StageError("ASR", error)
    assert (str(stage), stage.stage, stage.__cause__) == (f"the ASR stage failed: {line}", "ASR", error)


def test_an_error_whose_message_fails_is_its_class():
    assert described(BrokenError()) == one_line(BrokenError()) == "BrokenError"


def test_the_tree_of_classes_is_as_it_is_drawn():
    parents, drawn = {}, set()
    for indent, name in re.findall(r"^((?:[│├└─]| )*)(\w+Error)\b", errors.__doc__, re.MULTILINE):
        parents[len(indent)] = name
        drawn.add((name, parents.get(len(indent) - 4)))
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PipelineError)]
    assert drawn == {(kind.__name__, kind.__base__.__name__ if kind is not PipelineError else None) for kind in classes}

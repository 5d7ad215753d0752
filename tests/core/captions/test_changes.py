"""Changes of texts for readers that keep the text themselves: made from states, and made into states again."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.captions.changes import Delta, SourceDelta, States, edit
from pipeline.core.captions.states import TextChangeError
from pipeline.events import SourceSentence, SourceText, TargetText, TargetToken
from tests.streams import changes, states, streams


@given(st.text("abc你", max_size=6), st.text("abc你", max_size=6))
def test_an_edit_is_the_smallest_one_at_the_end(old, new):
    withdrawn, text = edit(old, new)
    assert old[: len(old) - withdrawn] + text == new
    assert not (withdrawn and text and old[len(old) - withdrawn] == text[0])


def without_tokens(events):
    return [replace(event, tokens=()) if isinstance(event, TargetText) else event for event in events]


@given(streams(st.text("ab 你。", max_size=8)))
def test_the_changes_of_a_stream_make_its_states(stream):
    found = changes(stream.events)
    assert not any(isinstance(event, SourceText | TargetText) for event in found)
    assert without_tokens(states(found)) == without_tokens(stream.events)


def test_a_change_has_the_tokens_that_are_new():
    one, two, three = (TargetToken(number, -(2.0**number), number) for number in (1, 2, 3))
    other = TargetToken(4, -16.0, 2)
    texts = [
        TargetText(0, "zh", "a", tokens=(one,)),
        TargetText(0, "zh", "abc", tokens=(one, two, three)),
        TargetText(0, "zh", "ax", tokens=(one, other), complete=True),
        TargetText(0, "zh", "ax", 2, (one, other), complete=True),  # another translation: of all its tokens
    ]
    found = changes(texts)
    assert found == [
        Delta(0, "zh", "a", token=1, log_probability=-2.0),
        Delta(0, "zh", "bc", log_probability=-12.0),
        Delta(0, "zh", "x", 2, token=4, log_probability=-16.0, complete=True),
        Delta(0, "zh", "", 0, 2, log_probability=-18.0, complete=True),
    ]
    assert [event.tokens for event in states(found) if isinstance(event, TargetText)] == [
        (one,),
        (one, TargetToken(None, -12.0, 3)),
        (one, other),
        (TargetToken(None, -18.0, 2),),
    ]
    assert changes(states(found)) == found


def test_a_change_of_final_text_is_refused():
    read = States()
    read.push(SourceDelta(0, "en", "ab", steady=1))
    read.push(SourceSentence(0, "en", "ab"))
    with pytest.raises(TextChangeError, match="the text of sentence 0 is final"):
        read.push(SourceDelta(0, "en", "c"))

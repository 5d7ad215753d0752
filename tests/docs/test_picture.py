"""The pictures of the README: their texts are the demo's; the moving one's frames follow each other and show drafts."""

import asyncio
import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from xml.etree import ElementTree

import pytest
from PIL import Image

from pipeline.events import PipelineEvent, SourceSentence, SourceText, TargetText, Translation
from tests.commands import loaded_once
from tests.conftest import EXAMPLES, ROOT
from tests.docs.pages import script

picture = script("picture")
SVG = "{http://www.w3.org/2000/svg}"


def test_a_draft_is_dim_until_it_is_steady():
    screen = picture.Screen()
    screen.take(SourceText(0, "en", "Thank you", steady=5))
    assert screen.lines()[0].endswith(' opacity=".5"> you</tspan>')
    screen.take(SourceText(0, "en", "Thank you.", steady=10))
    screen.take(SourceSentence(0, "en", "Thank you."))
    screen.take(TargetText(0, "zh", "谢谢", heard_s=1.0))
    assert any('opacity=".5">谢谢' in line for line in screen.lines())
    screen.take(TargetText(0, "zh", "谢谢", steady=2, heard_s=1.0, complete=True))
    screen.take(Translation(0, "zh", "谢谢"))
    assert not any("opacity" in line or "▌" in line for line in screen.lines())


def test_each_frame_is_shown_from_its_time_on():
    frames = [picture.Frame(0, ()), picture.Frame(1.0, ("a &lt; b",)), picture.Frame(7.0, ("a &lt; b", "c"))]
    drawn = picture.svg(frames, "the command")
    steps = re.findall(r"([\d.]+)%\{transform:translateY\((-?\d+)px\)\}", drawn)
    assert [float(share) for share, _ in steps] == [0, 10, 70]  # of 7 s and 3 s of the last one
    height = -int(steps[1][1])
    assert [int(moved) for _, moved in steps] == [0, -height, -2 * height]
    film = ElementTree.fromstring(drawn).find(f".//{SVG}g[@id='film']")
    assert film is not None
    assert [(int(text.attrib["y"]) // height, text.text) for text in film] == [(1, "a < b"), (2, "a < b"), (2, "c")]


def test_the_picture_shows_drafts_of_the_demo():
    root = ElementTree.parse(ROOT / "docs" / "terminal.svg").getroot()
    dim = {"".join(span.itertext()).strip() for span in root.iter(f"{SVG}tspan") if span.get("opacity") == ".5"}
    assert any(re.search("[ãõçáéíóúâêô]", text) for text in dim)
    assert any(re.search("[a-z]", text) for text in dim)


@pytest.fixture(scope="module")
def demo() -> Sequence[PipelineEvent]:
    """What the demo makes of the recording in the pictures."""
    with loaded_once():
        return asyncio.run(picture.finished(EXAMPLES / "travel.wav"))


def shown(lines):
    """The words of rows of the terminal."""
    return [word for line in lines for word in words_of(ElementTree.fromstring(f"<text>{line}</text>"))]


def words_of(row):
    return picture.words("".join(row.itertext()))


def alike(words, others):
    """Whether all but a few words are the same: one processor's rounding chooses another word than another's."""
    return SequenceMatcher(None, words, others, autojunk=False).ratio() > 0.9


@pytest.mark.slow
def test_the_terminal_shows_what_the_demo_makes_of_the_recording(demo):
    screen = picture.Screen()
    for event in demo:
        screen.take(event)
    film = ElementTree.parse(ROOT / "docs" / "terminal.svg").getroot().find(f".//{SVG}g[@id='film']")
    assert film is not None
    last = screen.lines()
    drawn = [word for row in film[-len(last) :] for word in words_of(row)]
    assert alike(drawn, shown(last)), "run: make pictures"
    anywhere = {word for row in film for word in words_of(row)}
    every = shown(screen.lines(limit=100))
    assert alike([word for word in every if word in anywhere], every), "run: make pictures"


def test_the_page_shows_what_the_demo_makes_of_the_recording(demo):
    sentences = [event for event in demo if isinstance(event, SourceSentence | Translation)]
    made = {(event.sentence, event.language): picture.words(event.text) for event in sentences}
    with Image.open(ROOT / "docs" / "page.png") as page:
        lines = json.loads(page.info["Description"])
    assert len(lines) >= 4
    drawn = [word for *_, text in lines for word in picture.words(text)]
    assert alike(drawn, [word for number, language, _ in lines for word in made[number, language]]), (
        "run: make pictures"
    )

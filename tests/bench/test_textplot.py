"""The picture of text over time."""

import re
from xml.etree import ElementTree

import pytest

from pipeline.bench.measures import Curves
from pipeline.bench.textplot import Panel, _ticks, text_plot

CURVES = Curves("word", (1.0, 2.0, 2.0, 4.0), (1.5, 2.5, 4.5), (3.0, 3.0, 5.0))


def paths(picture: str) -> list[str]:
    root = ElementTree.fromstring(picture)
    return [element.attrib["d"] for element in root.iter() if element.tag.endswith("path")]


def test_a_panel_has_three_lines_that_rise_with_each_word():
    picture = text_plot("a & b <c>", [Panel("source", CURVES)], 8.0)
    title = ElementTree.fromstring(picture).find("{*}text")
    assert title is not None
    assert title.text == "a & b <c>"
    *legend, spoken, shown, committed = paths(picture)
    assert len(legend) == 3
    # 860 pixels for 8 s from x = 60; 200 pixels for the 4 words that were said, above y = 260.
    assert spoken == "M60.0 260H167.5V210.0H275.0V110.0H490.0V60.0"
    assert shown == "M60.0 260H221.2V210.0H328.8V160.0H543.8V110.0"
    assert committed == "M60.0 260H382.5V160.0H597.5V110.0"


def test_panels_are_below_each_other_and_a_text_without_words_has_no_lines():
    empty = Panel("translation", Curves("char", (), (), ()))
    picture = text_plot("talk.wav", [Panel("source", CURVES), empty], 0.0)
    root = ElementTree.fromstring(picture)
    assert len(paths(picture)) == 3 + 3
    titles = {element.text: float(element.attrib["y"]) for element in root.iter() if element.tag.endswith("text")}
    assert titles["source: words"] < titles["translation: characters"] < float(root.attrib["height"])
    assert all(0 <= float(x) <= 940 for d in paths(picture) for x in re.findall(r"[MH]([\d.]+)", d))


@pytest.mark.parametrize(("most", "step"), [(1, 1), (10, 1), (11, 2), (47.5, 5), (90, 10), (250, 50), (3600, 500)])
def test_ticks_are_round_numbers(most, step):
    found = _ticks(most)
    assert (found[0], found.step) == (0, step)
    assert found[-1] <= most < found[-1] + step

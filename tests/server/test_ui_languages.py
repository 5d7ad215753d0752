"""The tables of the pages' texts: each language has every text, and no text of the pages is in none."""

import json
import re
from html.parser import HTMLParser

import pytest

from pipeline.server.app import STATIC

LANGUAGES = ("pt", "zh", "es", "de", "fr")
CALL = re.compile(r'\bt\("((?:[^"\\]|\\.)*)"')
# English for people in a script: a text in quotation marks with a capital and a blank, or words in a template.
SENTENCE = re.compile(r'"([A-Z][^"\n]* [^"\n]*)"|`[^`\n]*\b[a-z]{2,} [a-z]{2,}[^`\n]*`')
ATTRIBUTES = ("aria-label", "aria-description", "title", "alt")
NAMES = {"SRT", "VTT", "TXT"}
"""The same in every language."""


class Page(HTMLParser):
    """Collects the texts of a page."""

    def __init__(self):
        super().__init__()
        self.texts = set()

    def handle_starttag(self, tag, attrs):
        self.texts |= {value for name, value in attrs if name in ATTRIBUTES and value}

    def handle_data(self, data):
        self.texts |= {data.strip()} - {""}


def scripts():
    return {path.name: path.read_text("utf-8") for path in STATIC.glob("*.js")}


def texts():
    """All English texts."""
    found = {text for script in scripts().values() for text in CALL.findall(script)}
    for path in STATIC.glob("*.html"):
        page = Page()
        page.feed(path.read_text("utf-8"))
        found |= page.texts - NAMES
    return found - {"Subtitles"}  # the title of the overlay, which nobody sees


def table(language):
    def unique(pairs):
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    return json.loads((STATIC / "ui" / f"{language}.json").read_text("utf-8"), object_pairs_hook=unique)


def placeholders(text):
    return sorted(re.findall(r"\{\w+\}", text))


def test_every_table_is_offered():
    assert {path.stem for path in (STATIC / "ui").iterdir()} == set(LANGUAGES)
    offered = re.search(r"LANGUAGES = (\[.*\])", scripts()["ui.js"])
    assert set(json.loads(offered[1])) == {"en", *LANGUAGES}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_every_text_and_no_other(language):
    found = table(language)
    assert found.keys() == texts()
    for english, text in found.items():
        assert text.strip() == text != ""
        assert placeholders(text) == placeholders(english), text


def test_no_script_has_english_of_its_own():
    for name, script in scripts().items():
        code = re.sub(r"(?m)^\s*//.*$|\s// .*$", "", script)
        left = CALL.sub("", code).replace("`, in term ${rowOf(line) + 1}, `", "")  # in a message of the server
        assert not SENTENCE.search(left), (name, SENTENCE.search(left)[0])

"""What of a translation is shown, and when."""

import pytest

from pipeline.core.captions.policy import AgreeingDrafts, at_once, rewritten, updates, visible_length, whole_words
from pipeline.core.run.options import DraftOptions
from pipeline.events import TargetText, Translation
from pipeline.languages.chinese import conversion

END = Translation(0, "pt", "")


def draft(text, steady=0, *, complete=True, language="pt"):
    return TargetText(0, language, text, steady, complete=complete)


def growing(text, *, complete=True):
    """The texts of a translation, a character longer each, and its end."""
    texts = [draft(text[:end], complete=complete and end == len(text)) for end in range(1, len(text) + 1)]
    return [*texts, END]


def told(events):
    return [(event.text, event.steady, event.complete) for event in events if isinstance(event, TargetText)]


@pytest.mark.parametrize(
    ("old", "new", "final", "expected"),
    [
        (draft("Bom dia", 3), draft("Bom dia", 7), False, [("Bom dia", 7, True)]),  # more of it is steady
        (draft("Bom dia", 7), draft("Bom dia", 7), False, []),
        (draft("Bom dia", 7), draft("Bom dia", 7), True, [("Bom dia", 7, True)]),
        (draft("Bom dia"), draft("Bom", complete=False), False, []),  # it would shrink in between
        (draft("Bom dia"), draft("Boa noite", 3, complete=False), False, [("Boa noite", 3, False)]),
        (draft("Bom dia"), draft("Boa noite", 3, complete=False), True, []),  # final text comes whole
        (draft("Bom dia"), draft("Bom", 2), True, [("Bom", 3, True)]),  # all of final text is steady
        (draft("Bom dia"), draft("Bom", 2), False, [("Bom", 2, True)]),
        (None, draft("Bom", complete=False), False, [("Bom", 0, False)]),
        (draft(""), draft(""), False, [("", 0, True)]),
        (draft("Bom dia"), None, False, [("", 0, True)]),
        (None, None, True, []),
    ],
)
def test_what_takes_the_place_of_a_draft(old, new, final, expected):
    found = list(updates(old, iter([new, END] if new else [END]), final=final))
    if new is not None and not new.complete and old is not None:
        found = found[: -1 - final]  # a translation that never completed is withdrawn at its end
    assert told(found) == expected


def test_an_unfinished_translation_withdraws_what_is_shown():
    assert told(updates(draft("Bom"), iter([draft("Bom d", complete=False), END]), final=False)) == [
        ("Bom d", 0, False), ("", 0, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "language", "shown"),
    [
        ("um dois três quatro cinco", "pt", "um dois"),
        ("um dois três quatro", "pt", "um"),
        ("um dois", "pt", "um"),
        ("um", "pt", "um"),
        ("", "pt", ""),
        ("一二三四五六七八", "zh", "一二"),
        ("一二三四", "zh", "一"),
        ("一", "zh", "一"),
        ("我用Python3", "zh", "我用"),
    ],
)
def test_the_last_words_of_a_draft_are_hidden_but_not_all(text, language, shown):
    assert text[: visible_length(text, language, DraftOptions())] == shown


@pytest.mark.parametrize(
    ("text", "length", "language", "expected"),
    [
        ("um dois", 5, "pt", 2),
        ("um dois", 2, "pt", 2),
        ("um dois", 7, "pt", 7),
        ("um dois", 9, "pt", 7),
        ("um", 1, "pt", 0),
        ("我用Python", 4, "zh", 2),
        ("我用Python吧", 8, "zh", 8),
        ("我用吧", 2, "zh", 2),
    ],
)
def test_a_text_is_cut_between_words(text, length, language, expected):
    assert whole_words(text, length, language) == expected


def test_a_translation_at_once_has_its_last_text_alone():
    texts = [draft("Bom", complete=False), draft("Bom dia")]
    assert list(at_once([*texts, END])) == [texts[-1], END]
    assert list(at_once([END])) == [END]


class Reader:
    """Who sees the drafts of a sentence; ``agreeing`` of them must agree that what is shown is to change."""

    def __init__(self, agreeing):
        self._policy = AgreeingDrafts(DraftOptions(mask_words=0, mask_characters=0, agreeing=agreeing))
        self.shown = draft("")

    def sees(self, text, **options):
        """The text and what of it is steady after one more draft."""
        events = self._policy.events(growing(text, **options), self.shown.text)
        self.shown = [self.shown, *(event for event in events if isinstance(event, TargetText))][-1]
        return self.shown.text, self.shown.steady


def test_what_several_drafts_begin_with_is_steady_in_whole_words():
    reader = Reader(3)
    assert reader.sees("Bom dia a") == ("Bom dia a", 0)
    assert reader.sees("Bom dia a todos") == ("Bom dia a todos", 0)
    assert reader.sees("Bom dia aqui e ali estamos") == ("Bom dia aqui e ali estamos", 7)  # all begin with "Bom dia a"


def test_drafts_need_not_be_equal_to_agree_that_a_word_is_another():
    reader = Reader(2)
    found = [reader.sees(text)[0] for text in ("O comboio para Lisboa sai", "Um trem para Faro", "Um trem vai já")]
    assert found == ["O comboio para Lisboa sai"] * 2 + ["Um trem vai já"]


@pytest.mark.parametrize(
    ("text", "now"),
    [
        ("O trem vai para Faro", True),
        ("O trem vai", False),  # too little is new
        ("Um trem sai para Faro hoje", False),  # too much changes
    ],
)
def test_a_small_change_with_much_new_text_is_made_at_once(text, now):
    reader = Reader(4)
    reader.sees("O trem sai")
    assert reader.sees(text)[0] == (text if now else "O trem sai")


def test_a_draft_without_text_agrees_with_no_other():
    reader = Reader(2)
    for text in ("Bom dia", "Boa tarde", "", "Boa tarde"):
        assert reader.sees(text)[0] == "Bom dia"
    assert reader.sees("Boa tarde")[0] == "Boa tarde"


def test_text_in_other_characters_waits_until_it_is_settled():
    convert = conversion("Hant", "TW")
    texts = [draft(text, len(text), complete=False, language="zh") for text in ("她的头", "她的理发", "她的理发以后，")]
    found = told(rewritten([*texts, draft("她的理发以后，再", 7, language="zh"), END], convert))
    assert found == [("她的理髮", 0, False), ("她的理髮以後，", 0, False), ("她的理髮以後，再", 7, True)]

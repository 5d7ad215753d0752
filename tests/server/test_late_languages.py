"""Rules of the languages that are added to a session, without a server."""

import pytest

from pipeline.core.nmt.same_language import SameLanguageText
from pipeline.core.nmt.targets import LateTargets
from pipeline.languages.options import LanguageConfig
from pipeline.server.languages.session_targets import SessionTargets
from pipeline.server.limits import MOST_TARGETS, ServerLimits
from pipeline.server.protocol import ProtocolError

MODEL = SameLanguageText("en")


@pytest.fixture
def targets() -> SessionTargets:
    """Of a session in progress."""
    session = SessionTargets(LanguageConfig("en", ("pt", "zh-TW")), ServerLimits(reader_targets=2))
    session.late.add = lambda *_: True
    return session


def code_of(targets: SessionTargets, language: str, *, by_reader: bool = False) -> str:
    with pytest.raises(ProtocolError) as error:
        targets.add(language, MODEL, by_reader=by_reader)
    assert len(str(error.value)) < 300
    return error.value.code


def test_a_language_is_known_by_any_of_its_codes(targets):
    assert targets.wanted("deu", by_reader=True) == targets.wanted("German", by_reader=True) == "de"
    for same in ("PT", "por", "zh-Hant", "zh-HK"):
        assert targets.wanted(same, by_reader=True) is None
    assert targets.wanted("zh-CN", by_reader=True) == "zh-CN"  # in other characters than those of Taiwan


@pytest.mark.parametrize(
    "language", ["", "de fr", "en-x-a-menu-of-my-own", "de-u-co-phonebk", "de-" * 30_000, "🎈" * 9]
)
def test_what_is_no_language_is_none(targets, language):
    assert code_of(targets, language, by_reader=True) == "unknown-target"
    assert targets.languages.targets == ("pt", "zh-TW")


def test_a_language_is_added_once(targets):
    assert targets.add("de", MODEL, by_reader=True)
    assert not targets.add("de-DE", MODEL, by_reader=True)
    assert targets.languages.targets == ("pt", "zh-TW", "de")


def test_readers_may_add_so_many_and_the_speaker_up_to_the_limit(targets):
    added = ["de", "fr", "it", "es", "pl", "cs"]
    assert targets.add(added[0], MODEL, by_reader=False)  # does not count as the readers'
    assert targets.add(added[1], MODEL, by_reader=True)
    assert targets.add(added[2], MODEL, by_reader=True)
    assert code_of(targets, "ru", by_reader=True) == "too-many-targets"
    assert targets.wanted("fr-FR", by_reader=True) is None  # it is there
    for language in added[3:]:
        assert targets.add(language, MODEL, by_reader=False)
    assert len(targets.languages.targets) == MOST_TARGETS
    assert code_of(targets, "ru") == "too-many-targets"


def test_a_conversation_has_its_two_languages():
    assert code_of(SessionTargets(LanguageConfig("auto", ("en", "pt")), ServerLimits()), "de") == "unknown-target"


def test_nothing_is_added_to_a_session_that_has_not_begun_or_has_ended():
    targets = SessionTargets(LanguageConfig("en", ("pt",)), ServerLimits())
    assert not LateTargets(1).add("de", MODEL)
    assert code_of(targets, "de", by_reader=True) == "ended"
    targets.late.add = lambda *_: True
    assert targets.languages.targets == ("pt",)
    assert targets.add("de", MODEL, by_reader=True)  # the refused one was not counted


def test_a_reader_reads_a_language_in_its_own_characters_or_all(targets):
    assert targets.read(None) is None
    assert targets.read("pt-BR") == "pt"
    assert targets.read("zh-Hant-HK") == "zh-TW"
    for other in ("zh-CN", "de", "de-" * 30_000):
        with pytest.raises(ProtocolError, match="choose from pt, zh-TW") as error:
            targets.read(other)
        assert error.value.code == "unknown-target"
        assert len(str(error.value)) < 300

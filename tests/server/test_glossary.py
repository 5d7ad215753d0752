"""The glossary of a session: brought at its start, replaced while it runs, and refused with its mistakes named."""

from dataclasses import replace

import pytest

from pipeline import SpeechTranslator
from pipeline.core.run.options import GlossaryOptions
from pipeline.glossary.terms import Glossary, Term
from pipeline.media.audio.recording import read_audio
from pipeline.server.chains import chain_of
from pipeline.server.glossary import SessionGlossary, read_glossary
from pipeline.server.protocol import ProtocolError
from tests.conftest import ROOT
from tests.server.running import ask, final, finish, heard, running, say, speak

NAMES_AUDIO = ROOT / "tests" / "media" / "audio" / "names.opus"
SERVERS = Glossary((Term("Acme", None),))


def test_a_session_uses_the_servers_glossary_until_it_has_its_own():
    assert SessionGlossary(None)() == Glossary()
    session = SessionGlossary(lambda: SERVERS)
    assert session() == SERVERS
    session.replace(own := read_glossary("Brontik\t=\n"))
    assert session() is own
    session.replace(Glossary())
    assert session().terms == ()
    assert read_glossary('English;Chinese\r\n"Acme, ""Ltd""";艾克米\r\n') == Glossary(
        (Term('Acme, "Ltd"', "艾克米"),), ("en", "zh")
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Brontik\n", "line 1: no translation"),
        ("name\t=\n" * 20_000, "has 140000 characters; it may have 65536 at most"),
        ("".join(f"n{number}\t=\n" for number in range(1_001)), "1001 terms; 1000 are allowed"),
    ],
)
def test_what_is_wrong_with_a_glossary_is_said(text, words):
    with pytest.raises(ProtocolError, match=words) as error:
        read_glossary(text)
    assert error.value.code == "bad-glossary"


@pytest.mark.slow
async def test_a_session_hears_the_terms_that_its_speaker_sends(new_service):
    async with running(new_service()) as server:
        async with server.connect() as refused:
            error = await ask(refused, type="start", glossary="Brontik\n")
            assert (error["type"], error["code"]) == ("error", "bad-glossary")
            assert "line 1" in error["message"]
        async with server.connect() as speaker:
            started = await ask(speaker, type="start", glossary="Velmora\t=\nZeptafin\t龘龘\n")
            assert started["type"] == "started"
            assert started["glossary"] == {"terms": 2, "unspellable": {"zh": ["Zeptafin"]}}
            replies = []
            for text in ("Brontik\t\n", "Brontik\t=\nQuindarra\t龘龘\nTaravelle\t=\n"):
                await say(speaker, type="glossary", text=text)
                while (reply := await heard(speaker))["type"] != "glossary":
                    pass
                replies.append(reply)
            assert replies[0]["code"] == "bad-glossary"
            assert "line 1" in replies[0]["message"]
            assert replies[1] == {"type": "glossary", "terms": 3, "unspellable": {"zh": ["Quindarra"]}}
            await speak(speaker, read_audio(NAMES_AUDIO))
            spoken = " ".join(text for (_, language), text in final(await finish(speaker)).items() if language == "en")
            assert all(name in spoken for name in ("Brontik", "Quindarra", "Taravelle")), spoken


async def test_terms_that_the_servers_models_cannot_write_are_named(demo_config, demo_models, tmp_path, caplog):
    path = tmp_path / "terms.tsv"
    path.write_text("source:zh\ttarget:en\n龘龘\tZeptafin\n张伟\tChang Wei\n", "utf-8")
    config = replace(demo_config, glossary=GlossaryOptions(str(path)))
    warning = "the model that translates into zh cannot write the translation of 1 of the glossary's terms: Zeptafin"
    assert chain_of(config, demo_models).glossary is not None
    assert caplog.messages == [warning]  # the other term can be written
    caplog.clear()
    async with SpeechTranslator(config, demo_models) as translator:
        await translator.end()
        assert caplog.messages == [warning]

"""The stage of sentences: what it passes on, and the terms in what was said."""

from pipeline.core.sentences.stage import SentenceStage
from pipeline.events import EndOfInput, Pause, SourceSentence, SourceText, Transcript, TranscriptSoFar
from pipeline.glossary.terms import Glossary, Term
from tests.chain import through

GLOSSARY = Glossary((Term("load balancer", None), Term("Ann", None)))


def said(*items, glossary=GLOSSARY):
    return through(lambda *queues: SentenceStage(*queues, None, lambda: glossary), *items)


def test_a_transcript_comes_before_its_sentences_and_a_draft_or_a_pause_is_not_passed_on():
    draft = Transcript(0, 0.0, 1.0, "Hello Ann", "en")
    final = Transcript(0, 0.0, 2.0, "Hello Ann. Where is", "en", heard_s=2.0)
    found = said(TranscriptSoFar((draft,)), final, Pause(2.0, 2.0))
    assert found[1] is final
    assert [type(item) for item in found if not isinstance(item, SourceText)] == [
        Transcript, SourceSentence, SourceSentence, EndOfInput,
    ]  # fmt: skip
    assert isinstance(found[0], SourceText)


def test_sentences_that_have_ended_have_their_terms():
    found = said(Transcript(0, 0.0, 2.0, "The Load balancer of Ann. Where is Ann", "en"))
    assert [each.terms for each in found if isinstance(each, SourceSentence)] == [("load balancer", "Ann"), ("Ann",)]

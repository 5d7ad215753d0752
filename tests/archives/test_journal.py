"""What a resumed run takes from a journal."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from pipeline import Models
from pipeline.archives import journal
from pipeline.archives.journal import (
    JournalSink,
    KnownTranslation,
    difference,
    header,
    known_speech,
    read_journal_header,
)
from pipeline.backends.asr_options import DraftModel
from pipeline.backends.whisper import WhisperRecognizer
from pipeline.config import load_config, with_overrides
from pipeline.core.asr.recognizer import RecognitionOptions
from pipeline.core.nmt.translator import TextTranslator, TranslationRequest
from pipeline.core.run.options import SoundOptions
from pipeline.errors import UsageError
from pipeline.events import SourceSentence, SpeechSegment, TargetText, Transcript, Translation, Word
from pipeline.media.sinks.jsonl import Text
from tests.conftest import PHRASES, read_wav
from tests.core.vad.test_stage import cut

SAID = Transcript(
    0, 1.0, 5.0, "Where is the bank? Where is the hotel?", "en", words=(Word(" Where", 1.1, 1.25),), speech_end_s=4.9
)
HEADER = {"type": "journal", "version": 1, "formats": ["srt"]}


SENTENCES = [
    SourceSentence(0, "en", "Where is the bank?", 1.0, 2.5, 5.0, words=(Word("Where", 1.1, 1.25),), before_pause=False),
    SourceSentence(1, "en", "Where is the hotel?", 2.5, 4.9, 5.0),
]


def said(models: Models) -> list[Text]:
    """The events of a run of two sentences."""
    events: list[Text] = [SAID]
    for sentence in SENTENCES:
        events += [sentence, *models.translations["zh"].stream(TranslationRequest(sentence, "zh"))]
    return events


def journal_of(path: Path, events: Sequence[Text]) -> Path:
    sink = JournalSink(path, HEADER, resume=False)
    for event in events:
        sink.write(event)
    sink.close()
    return path


class Counting:
    """A translator that counts the sentences it translates."""

    def __init__(self, translation: TextTranslator) -> None:
        self.translation, self.count = translation, 0

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        self.count += 1
        return self.translation.stream(request)


@pytest.mark.parametrize("torn", [b"", b'{"type": "delta", "sent'])
def test_a_run_resumes_after_its_last_finished_translation(demo_models, tmp_path, torn):
    events = said(demo_models)
    whole = [event for event in events if isinstance(event, TargetText | Translation)]
    for kept in range(1, len(events) + 1):
        path = journal_of(tmp_path / f"{kept}.jsonl", events[:kept])
        path.write_bytes(path.read_bytes() + torn)
        others = Counting(demo_models.translations["zh"])
        known = KnownTranslation(others, path, "zh")
        assert [event for sentence in SENTENCES for event in known.stream(TranslationRequest(sentence, "zh"))] == whole
        assert others.count == 2 - sum(isinstance(event, Translation) for event in events[:kept])


def test_the_translation_of_another_text_or_into_another_language_is_not_taken(demo_models, tmp_path):
    model = demo_models.translations["zh"]
    path = journal_of(tmp_path / "journal", said(demo_models))
    changed = dataclasses.replace(SENTENCES[0], text="Where is the museum?")
    for sentence, target in ((changed, "zh"), (SENTENCES[0], "de")):
        others = Counting(model)
        found = list(KnownTranslation(others, path, target).stream(TranslationRequest(sentence, "zh")))
        assert found == list(model.stream(TranslationRequest(sentence, "zh")))
        assert others.count == 1


def test_a_translation_that_failed_is_made_again(demo_models, tmp_path):
    failed = Translation(0, "zh", "", error="connection refused")
    whole = said(demo_models)
    second = whole.index(SENTENCES[1])
    others = Counting(demo_models.translations["zh"])
    known = KnownTranslation(
        others, journal_of(tmp_path / "journal", [SAID, SENTENCES[0], failed, *whole[second:]]), "zh"
    )
    found = [event for sentence in SENTENCES for event in known.stream(TranslationRequest(sentence, "zh"))]
    assert found == [event for event in whole if isinstance(event, TargetText | Translation)]
    assert others.count == 1


def test_transcripts_come_back_exactly(demo_models, tmp_path):
    segments = cut(read_wav(PHRASES), 1600)[:2]
    heard = demo_models.recognizer.transcribe([segments[0]])[0]
    speech = known_speech(demo_models.recognizer, journal_of(tmp_path / "journal", [heard]))
    assert speech.transcribe([segments[0]])[0] == heard
    assert speech.transcribe([segments[1]])[0].segment_id == segments[1].id


@pytest.mark.slow
def test_only_windows_that_are_not_known_are_recognised(demo_models, tmp_path):
    first, second, third, fourth = cut(read_wav(PHRASES), 1600)[:4]
    recognizer = demo_models.recognizer
    assert isinstance(recognizer, WhisperRecognizer)
    whole = recognizer.transcribe_batch([[first], [second, third], [fourth]])
    known = [dataclasses.replace(one, no_speech_probability=0.5) for each in whole for one in each][:2]
    speech = known_speech(recognizer, journal_of(tmp_path / "journal", known))
    assert speech.transcribe_batch([[first], [second, third], [fourth]]) == [
        known[:1],
        [known[1], whole[1][1]],
        whole[2],
    ]
    speech = known_speech(Refusing(), journal_of(tmp_path / "journal", [one for each in whole for one in each]))
    assert speech.transcribe_batch([[first], [second, third]]) == whole[:2]


def test_what_is_heard_again_with_a_later_segment_is_known(demo_models, tmp_path):
    first, second, third = cut(read_wav(PHRASES), 1600)[:3]
    whole = [Transcript(one.id, one.speech_start_s, one.end_s, "Hello.", "en") for one in (first, second, third)]
    speech = known_speech(Refusing(), journal_of(tmp_path / "journal", whole))
    assert speech.transcribe_batch([[first], [first, second]]) == [whole[:1], whole[:2]]
    assert speech.transcribe_batch([[first, second, third]]) == [whole]
    heard = [dataclasses.replace(one, text="Good bye.") for one in whole]
    speech = known_speech(Hearing(heard), journal_of(tmp_path / "begun", whole[:1]))
    assert speech.transcribe_batch([[first], [first, second]]) == [whole[:1], heard[:2]], "as they are heard together"


def test_the_last_transcript_is_known_while_the_journal_is_rewritten_from_there(demo_models, tmp_path):
    segments = cut(read_wav(PHRASES), 1600)[:3]
    heard = [
        Transcript(one.id, one.speech_start_s, one.end_s, "Hello. " * 2000, "en") for one in segments
    ]  # more than is read ahead
    journal = journal_of(tmp_path / "journal", heard)
    speech = known_speech(Refusing(), journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    with journal.open("r+b") as file:
        file.truncate(sum(map(len, lines[:-1])))
    assert speech.transcribe_batch([segments]) == [heard]


class Hearing:
    def __init__(self, heard: list[Transcript]) -> None:
        self.heard = heard

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        return [self.heard[segment.id] for segment in segments]

    def transcribe_batch(
        self, groups: Sequence[Sequence[SpeechSegment]], options: RecognitionOptions
    ) -> list[list[Transcript]]:
        return [self.transcribe(group, options) for group in groups]


class Refusing:
    def transcribe(self, *_: object) -> list[Transcript]:
        raise AssertionError("these are known")

    def transcribe_batch(self, *_: object) -> list[list[Transcript]]:
        raise AssertionError("these are known")


def test_segments_that_differ_from_the_journals_are_refused(demo_models, tmp_path):
    speech = known_speech(demo_models.recognizer, journal_of(tmp_path / "journal", [SAID]))
    with pytest.raises(UsageError, match=r"from 1\.00 to 5\.00 s where this run finds one from 2\.00 to .*--overwrite"):
        speech.transcribe([SpeechSegment(0, 32_000, read_wav(PHRASES)[:16_000])])


@pytest.mark.parametrize(
    "damage", [b"{x}\n", b"[1]\n", b'{"type": "delta", "text": 5}\n', b'{"type": "transcript", "x": 1}\n']
)
def test_a_damaged_line_is_reported(demo_models, tmp_path, damage):
    path = journal_of(tmp_path / "journal", [SAID])
    path.write_bytes(path.read_bytes() + damage)
    with pytest.raises(UsageError, match=r"journal is damaged \(.*\); start again with --overwrite"):
        KnownTranslation(demo_models.translations["zh"], path, "zh")


def test_a_resumed_run_keeps_a_header_with_unknown_keys(demo_models, tmp_path):
    """Another version may write such a header; later lines are read by their offset in the file."""
    events = said(demo_models)
    path = tmp_path / "journal"
    sink = JournalSink(path, HEADER | {"asr.retired": 1}, resume=False)
    for event in events:
        sink.write(event)
    sink.close()
    before = path.read_bytes()
    sink = JournalSink(path, HEADER, resume=True)
    for event in events:
        sink.write(event)
    sink.close()
    assert path.read_bytes() == before


def test_a_transcript_in_another_script_is_not_resumed():
    config = load_config("demo-zh-en")
    begun = header(PHRASES, config, ["srt"])
    shown = dataclasses.replace(config, asr=dataclasses.replace(config.asr, script="traditional"))
    assert difference(begun, header(PHRASES, shown, ["srt"])) == "with asr.script = None, which is now 'traditional'"
    config = load_config("demo-zh")
    begun = header(PHRASES, with_overrides(config, targets=("zh-Hant_tw",)), ["srt"])
    assert difference(begun, header(PHRASES, with_overrides(config, targets=("zh-hant-TW",)), ["srt"])) is None
    assert difference(begun, header(PHRASES, with_overrides(config, targets=("zh-HK",)), ["srt"])) is not None


def test_a_recording_is_resumed_whatever_the_draft_model():
    config = load_config("demo-zh")
    begun = header(PHRASES, config, ["srt"])
    other = dataclasses.replace(config, asr=dataclasses.replace(config.asr, draft=DraftModel(model="tiny.en")))
    assert begun == header(PHRASES, other, ["srt"])


def test_a_run_with_captions_of_sounds_begins_anew():
    plain = load_config("demo")
    begun, wanted = (
        header(PHRASES, config, ["srt"]) for config in (plain, dataclasses.replace(plain, sounds=SoundOptions(True)))
    )
    assert difference(begun, wanted) == "with sounds.captions = None, which is now True"
    del begun["sounds.captions"]  # of an earlier version
    assert difference(begun, header(PHRASES, plain, ["srt"])) is None


@pytest.mark.parametrize("targets", [("zh",), ("zh", "de")])
def test_a_run_that_an_earlier_version_began_goes_on(targets):
    config = with_overrides(load_config("demo-zh"), targets=targets)
    wanted = header(PHRASES, config, ["srt"])
    earlier = {key: value for key, value in wanted.items() if not key.startswith("nmt") or not key.endswith(".backend")}
    assert len(wanted) - len(earlier) == len(targets)
    assert difference(earlier, wanted) is None


def test_a_run_with_another_glossary_begins_anew(tmp_path):
    config = load_config("demo-zh")
    terms = tmp_path / "terms.tsv"
    terms.write_text("Acme\t=\n", "utf-8")
    with_terms = with_overrides(config, glossary=str(terms))
    begun = header(PHRASES, with_terms, ["srt"])
    assert difference(begun, header(PHRASES, with_terms, ["srt"])) is None
    assert difference(begun, header(PHRASES, config, ["srt"])) == "with another glossary"
    terms.write_text("Acme\t阿克米\n", "utf-8")
    assert difference(begun, header(PHRASES, with_terms, ["srt"])) == "with another glossary"


def test_the_journal_of_another_version_is_refused_by_name():
    now = header(PHRASES, load_config("demo-zh"), ["srt"])
    for version in (1, 4, 99):
        why = difference(now | {"version": version}, now)
        assert why == f"by another version of this program: its journal has version {version}, not {now['version']}"


def test_a_name_too_long_for_its_journal_is_reported(tmp_path):
    with pytest.raises(UsageError, match=r"File name too long\); choose another --output-dir"):
        read_journal_header(tmp_path / ("x" * 250 + ".unfinished.jsonl"))


def test_a_file_with_an_incomplete_header_is_not_a_journal(tmp_path):
    assert read_journal_header(tmp_path / "none") is None
    for torn in (b"", b'{"type": "journal"'):
        (tmp_path / "some").write_bytes(torn)
        assert read_journal_header(tmp_path / "some") is None


@pytest.mark.parametrize(
    "content",
    [
        b"no json\n",
        b'{"type": "delta"}\n',
        b"[1]\n",
        b'{"type": "journal", "formats": ["../x"]}\n',
        b'{"type": "journal"}\n',
    ],
)
def test_a_file_without_a_journal_header_is_refused(tmp_path, content):
    (tmp_path / "some").write_bytes(content)
    with pytest.raises(UsageError, match=r"some is not a journal; start again with --overwrite"):
        read_journal_header(tmp_path / "some")


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        ([SENTENCES[0]], None),
        ([SAID, SENTENCES[0], dataclasses.replace(SAID, segment_id=1), SENTENCES[1]], 2),
        ([SAID, SENTENCES[0], dataclasses.replace(SAID, segment_id=1, rejected="failed"), SAID], 2),
        ([SAID, SENTENCES[0], Translation(0, "zh", "", error="busy"), SAID, SENTENCES[1]], 0),
        ([dataclasses.replace(SAID, speaker=name) for name in ("Ann", "Ann", "Bob", "Bob")], 1),
        ([dataclasses.replace(SAID, speaker=name) for name in ("Ann", "Bob", "Ann", "Bob")], 2),
        ([dataclasses.replace(SAID, speaker=name) for name in ("Bob", "Ann", "Ann")], 0),
    ],
    ids=[
        "no transcript",
        "the last",
        "a failed one",
        "a failed translation",
        "the one before",
        "in turns",
        "the first",
    ],
)
def test_what_is_read_at_once_begins_at_the_last_transcript_that_is_sure_to_stay(events, kept, tmp_path):
    path = journal_of(tmp_path / "journal", events)
    lines = path.read_bytes().splitlines(keepends=True)
    assert journal._kept(path) == sum(map(len, lines if kept is None else lines[: 1 + kept]))


class Heard:
    """A recogniser that hears its own name for each segment."""

    def transcribe(self, segments: Sequence[SpeechSegment], _: object = None) -> list[Transcript]:
        return [Transcript(one.id, one.speech_start_s, one.end_s, "heard again", "en") for one in segments]


def segment(number: int, start_s: float, end_s: float) -> SpeechSegment:
    return SpeechSegment(number, round(16_000 * start_s), np.zeros(round(16_000 * (end_s - start_s)), np.int16))


def test_a_transcript_that_failed_and_one_of_another_speaker_are_not_taken(tmp_path):
    said = [Transcript(number, float(number), number + 1.0, "known", "en", speaker="Ann") for number in range(3)]
    said[1] = dataclasses.replace(said[1], rejected="failed")
    path = journal_of(tmp_path / "journal", said)
    segments = [segment(number, number, number + 1) for number in range(3)]
    for speaker, texts in (
        ("Ann", ["known", "heard again", "known"]),
        ("Bob", ["heard again"] * 3),
        (None, ["heard again"] * 3),
    ):
        speech = known_speech(Heard(), path, speaker)
        assert speech.has_more is (speaker == "Ann")
        assert [speech.transcribe([one])[0].text for one in segments] == texts


def test_the_last_segment_alone_may_end_elsewhere(tmp_path):
    path = journal_of(
        tmp_path / "journal", [Transcript(number, 2.0 * number, 2.0 * number + 1, "known", "en") for number in range(2)]
    )
    speech = known_speech(Heard(), path)
    assert [speech.transcribe([segment(*each)])[0].text for each in ((0, 0, 1), (1, 2, 4))] == ["known", "heard again"]
    with pytest.raises(UsageError, match="another version wrote it"):
        known_speech(Heard(), path).transcribe([segment(0, 0, 1.5)])


class Again:
    """A translator of the word "again"."""

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        yield Translation(request.sentence.sentence, "zh", "again")


def test_the_sentences_of_a_speaker_are_counted_without_those_of_others(tmp_path):
    events: list[Text] = []
    for number, speaker in enumerate(["Ann", "Bob", "Bob", "Ann"]):
        events += [
            dataclasses.replace(SENTENCES[0], sentence=number, speaker=speaker),
            Translation(number, "zh", f"{speaker} {number}"),
        ]
    path = journal_of(tmp_path / "journal", events)
    for speaker, texts in (("Ann", ["Ann 0", "Ann 3", "again"]), ("Bob", ["Bob 1", "Bob 2", "again"])):
        known = KnownTranslation(Again(), path, "zh", speaker)
        asked = [dataclasses.replace(SENTENCES[0], sentence=number) for number in range(3)]
        found = [event for one in asked for event in known.stream(TranslationRequest(one, "zh"))]
        assert [(event.sentence, event.text) for event in found] == list(enumerate(texts))


def test_a_recording_is_known_by_its_ends_and_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_DIGEST_BYTES", 4)
    path = tmp_path / "a.wav"

    def digest(content: bytes) -> str:
        path.write_bytes(content)
        return journal._digest(path)

    known = digest(b"abcd--efgh")
    assert known == digest(b"abcd++efgh")
    assert known not in (digest(b"abcd---efgh"), digest(b"abcx--efgh"), digest(b"abcd--xfgh"))
    path.write_bytes(b"abcd--efgh")
    assert not journal.is_of(journal_of(tmp_path / "journal", SENTENCES), path)
    begun = JournalSink(tmp_path / "begun", HEADER | {"recording": known}, resume=False)
    begun.write(SENTENCES[0])
    begun.close()
    assert journal.is_of(tmp_path / "begun", path)
    assert not journal.is_of(tmp_path / "none", path)
    assert not journal.is_of(tmp_path / "begun", tmp_path / "none.wav")

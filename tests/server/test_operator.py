"""Whoever operates a session masks words, names who speaks and pauses: readers and the record get it."""

import json

import numpy as np
import pytest

from pipeline.events import SourceSentence, SourceText, Translation
from pipeline.server.service import Service
from pipeline.server.speakers import Speakers
from tests.conftest import PHRASE_SECONDS, PHRASES, read_wav
from tests.server.running import ask, finish, heard, rest, running, say, speak

RATE = 16_000
SPEECH = read_wav(PHRASES)[: round(2 * PHRASE_SECONDS * RATE)]
SILENCE = np.zeros(3 * RATE, np.int16)


async def answered(socket, *types, **message):
    """Send a message; the first answer of one of these types."""
    await say(socket, **message)
    return await told(socket, *types)


async def told(socket, *types):
    while (record := await heard(socket))["type"] not in types:
        pass
    return record


def finals(records, kind="source_sentence"):
    return [record for record in records if record["type"] == kind]


@pytest.mark.slow
async def test_a_word_is_masked_in_its_line_and_in_all_later_text(demo_config, demo_models, tmp_path):
    async with running(Service(demo_config, demo_models, record=tmp_path)) as server, server.connect() as speaker:
        started = await ask(speaker, type="start")
        async with server.connect() as reader:
            await ask(reader, type="watch", session=started["session"])
            await speak(speaker, np.concatenate([SPEECH, SILENCE]))
            first = await told(speaker, "source_sentence")
            chinese = await told(speaker, "translation")
            word = first["text"].split()[1]
            hidden = first["text"].replace(word, word[0] + "*" * (len(word) - 1))
            mask = {"type": "mask", "sentence": 0}
            for text, said in [
                ("***", "no letters"),
                (word[:-1], "does not have"),
                ("a\x07b", "control"),
                ("x" * 101, "101"),
            ]:
                refused = await answered(speaker, "correction", "not_corrected", **mask, text=text)
                assert (refused["code"], refused["sentence"]) == ("bad-word", 0)
                assert said in refused["message"]
            gone = await answered(speaker, "correction", "not_corrected", **(mask | {"sentence": 99}), text=word)
            assert gone["code"] == "no-line"
            done = await answered(speaker, "correction", "not_corrected", **mask, text=f" {word.upper()} ")
            assert done == {"type": "correction", "sentence": 0, "text": hidden}
            again = await answered(speaker, "correction", "not_corrected", **mask, text=hidden.split()[1])
            assert again["code"] == "bad-word"
            part = chinese["text"][:2]
            done = await answered(speaker, "correction", "not_corrected", **mask, language="zh", text=part)
            assert done["text"] == part[0] + "*" + chinese["text"][2:]
            await speak(speaker, np.concatenate([SPEECH, SILENCE]))
            records = await finish(speaker)
            typed = [record for record in finals(records) if "*" in record["text"]]
            assert [record["text"].split()[1] for record in typed] == [hidden.split()[1]]
            assert typed[0]["sentence"] > 0
            assert any(record["text"].startswith(done["text"][:2]) for record in finals(records, "translation"))
            assert not any(part in record["text"] for record in finals(records, "translation"))
            seen = await rest(reader)
            after = seen[seen.index(done) + 1 :]
            assert not [record for record in after if word in record.get("text", "")]
    lines = next(tmp_path.glob("*.jsonl")).read_text("utf-8").splitlines()
    assert done in map(json.loads, lines)


async def test_sentences_carry_the_name_of_who_speaks_and_it_can_be_corrected(demo_config, demo_models, tmp_path):
    async with running(Service(demo_config, demo_models, record=tmp_path)) as server, server.connect() as speaker:
        started = await ask(speaker, type="start")
        assert started["speaker"] is None
        await say(speaker, type="speaker", name=" Ana\n María ")
        await speak(speaker, SPEECH[: round(PHRASE_SECONDS * RATE)])
        assert await told(speaker, "speaker") == {"type": "speaker", "name": "Ana María"}
        for name in ("x" * 61, "a\u202eb", "a\x00"):
            refused = await answered(speaker, "speaker", type="speaker", name=name)
            assert refused["code"] == "bad-speaker"
            assert "may have 60, all of them visible" in refused["message"]
        await say(speaker, type="speaker", name="Bo")
        await speak(speaker, np.concatenate([SPEECH[round(PHRASE_SECONDS * RATE) :], SILENCE]))
        records = [await told(speaker, "source_sentence"), await told(speaker, "source_sentence")]
        assert [record.get("speaker") for record in records] == ["Ana María", "Bo"]
        fields = {"type": "correct", "sentence": 1}
        refused = await answered(
            speaker, "correction", "not_corrected", **fields, language="zh", speaker="Cy", text="x"
        )
        assert refused["code"] == "no-line" or "leave the language out" in refused["message"]
        refused = await answered(speaker, "correction", "not_corrected", **fields, speaker="x" * 61)
        assert refused["code"] == "bad-speaker"
        told_of = {"type": "correction", "sentence": 1, "text": records[1]["text"], "speaker": "Cy"}
        assert await answered(speaker, "correction", "not_corrected", **fields, speaker="Cy") == told_of
        later = await answered(speaker, "correction", "not_corrected", **fields, text="Other words.")
        assert later == told_of | {"text": "Other words."}  # the name stays
        async with server.connect() as late:
            await ask(late, type="watch", session=started["session"])
            snapshot = await heard(late)
            assert later in snapshot["events"]
        nobody = {"type": "correction", "sentence": 0, "text": records[0]["text"], "speaker": ""}
        assert await answered(speaker, "correction", "not_corrected", type="correct", sentence=0, speaker="") == nobody
        await finish(speaker)
    vtt = next(tmp_path.glob("*.zh.vtt")).read_text("utf-8")
    assert "<v Cy>" in vtt
    assert "<v Ana" not in vtt
    assert '"speaker": "Ana María"' in next(tmp_path.glob("*.jsonl")).read_text("utf-8")


@pytest.mark.slow
async def test_what_is_said_in_a_pause_is_not_heard_and_all_are_told(demo_config, demo_models, tmp_path):
    async with running(Service(demo_config, demo_models, record=tmp_path)) as server, server.connect() as speaker:
        started = await ask(speaker, type="start")
        one = SPEECH[: round(PHRASE_SECONDS * RATE)]
        await speak(speaker, one)
        for on in (True, True):
            await say(speaker, type="pause", on=on)
        await speak(speaker, SPEECH[round(PHRASE_SECONDS * RATE) :])
        await told(speaker, "pause")
        async with server.connect() as late:
            await ask(late, type="watch", session=started["session"])
            assert (await heard(late))["events"][-1] == {"type": "pause", "on": True, "at_s": PHRASE_SECONDS}
            await say(speaker, type="pause", on=False)
            assert await told(late, "pause") == {"type": "pause", "on": False, "at_s": 2 * PHRASE_SECONDS}
        await speak(speaker, one)
        await finish(speaker)
    lines = [json.loads(line) for line in next(tmp_path.glob("*.jsonl")).read_text("utf-8").splitlines()]
    said = finals(lines)
    assert not [one for one in said if PHRASE_SECONDS + 0.5 < one["end_s"] < 2 * PHRASE_SECONDS]
    assert said[0]["end_s"] < PHRASE_SECONDS + 0.5 < 2 * PHRASE_SECONDS < said[-1]["start_s"]
    assert [line["type"] for line in lines if line["type"] in ("paused", "resumed")] == ["paused", "resumed"]


def test_a_sentence_is_of_whom_speaks_for_most_of_it():
    speakers = Speakers()

    def name(start_s, end_s, kind=SourceSentence):
        return speakers.named(kind(0, "en", "Yes.", start_s=start_s, end_s=end_s)).speaker

    assert name(0.0, 1.0) is None
    speakers.change(10.0, "Ana")
    assert [name(8.0, 11.0), name(9.0, 11.5, SourceText), name(9.9, 14.0)] == [None, "Ana", "Ana"]
    for at in range(1_000):
        speakers.change(20.0 + at, str(at))
    assert name(1018.0, 1019.8) == "998"
    speakers.change(1020.0, "")
    assert (speakers.name, name(1020.0, 1021.0)) == (None, None)
    translation = Translation(0, "zh", "是。")
    assert speakers.named(translation) is translation
    own = SourceText(0, "en", "Yes.", speaker="of a stage")
    assert Speakers().named(own) is own

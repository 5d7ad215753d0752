"""The logs and subtitles in other projects' readers and scorers, if installed; .ci/night installs all of them.

They require PyTorch, other large packages or a copyleft one, but reading logs needs none of these.
"""

import importlib.util
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.events import TargetText, Translation
from pipeline.media.latency.delay_measures import average_lagging, length_adaptive_average_lagging, long_yaal
from pipeline.media.latency.emissions import Emission, TextSoFar, Unit, units
from pipeline.media.sinks.latency_log import open_latency_log
from pipeline.media.sinks.srt import SrtSink
from pipeline.media.subtitles.rules import SubtitleRules
from tests.conftest import examples
from tests.media.latency.streams import DURATION_S, REFERENCES, events, received_s, written
from tests.media.subtitles.strategies import CHINESE, ENGLISH
from tests.streams import Stream, spoken, streams, translated

UNITS: list[Unit] = ["char", "word"]
needs_omnisteval = pytest.mark.skipif(
    importlib.util.find_spec("omnisteval") is None, reason="OmniSTEval is not installed; .ci/night does"
)
needs_simulstream = pytest.mark.skipif(
    importlib.util.find_spec("simulstream") is None, reason="simulstream is not installed; .ci/night does"
)
needs_simuleval = pytest.mark.skipif(
    importlib.util.find_spec("simuleval") is None, reason="SimulEval is not installed; .ci/night does"
)

needs_suber = pytest.mark.skipif(
    importlib.util.find_spec("suber") is None, reason="subtitle-edit-rate is not installed; .ci/night does"
)


def expected(unit: Unit) -> list[Emission]:
    text, times = TextSoFar(unit), received_s(unit)
    for event in events(unit):
        if isinstance(event, TargetText):
            text.push(event, next(times))
    return text.emissions()


def lagging(unit: Unit) -> dict[str, float | None]:
    """Our AL, LAAL and LongYAAL of the whole recording, by the names that SimulEval uses, which lacks the last."""
    emissions = expected(unit)
    # SimulEval counts a reference's characters with its spaces; the Chinese one has none.
    length = len(units(REFERENCES[unit], unit))
    found: dict[str, float | None] = {}
    for suffix, delays in (
        ("", [emission.delay_ms for emission in emissions]),
        ("_CA", [emission.elapsed_ms for emission in emissions]),
    ):
        found["AL" + suffix] = average_lagging(delays, DURATION_S * 1000, length)
        found["LAAL" + suffix] = length_adaptive_average_lagging(delays, DURATION_S * 1000, length)
        found["LongYAAL" + suffix] = long_yaal(delays, DURATION_S * 1000, length)
    return found


@needs_omnisteval
@pytest.mark.parametrize("unit", UNITS)
def test_omnisteval_reads_every_unit_and_agrees(unit, tmp_path):
    from omnisteval.data import Word, load_hypothesis_jsonl
    from omnisteval.io import load_shortform_instances
    from omnisteval.scoring import ALScorer, LAALScorer, YAALScorer

    path = tmp_path / "instances.log"
    written(path, unit, streams=2)
    first, second = load_hypothesis_jsonl(str(path), unit == "char", ["talk0", "talk1"], fix_emission_ca_flag=False)
    assert first == second
    assert all(isinstance(word, Word) for word in first)
    assert [(word.text, word.emission_cu) for word in first] == [(e.text, e.delay_ms) for e in expected(unit)]
    assert [word.emission_ca for word in first] == pytest.approx([e.elapsed_ms for e in expected(unit)], abs=0.05)
    instances = load_shortform_instances(str(path), None, "delays", "elapsed", char_level=unit == "char")
    found = {}
    for suffix, aware in (("", False), ("_CA", True)):
        found["AL" + suffix] = ALScorer(aware)(instances)
        found["LAAL" + suffix] = LAALScorer(aware)(instances)
        found["LongYAAL" + suffix] = YAALScorer(aware, is_longform=True)(instances)
    assert found == pytest.approx(lagging(unit), abs=0.1)


@needs_simuleval
@pytest.mark.parametrize("unit", UNITS)
def test_simuleval_agrees(unit, tmp_path):
    from simuleval.evaluator import SentenceLevelEvaluator

    written(tmp_path / "instances.log", unit, streams=2)
    (tmp_path / "config.yaml").write_text("source_type: speech\ntarget_type: text\n")
    options = SimpleNamespace(
        score_only=True,
        no_scoring=False,
        output=str(tmp_path),
        eval_latency_unit=unit,
        latency_metrics=["AL", "LAAL"],
        quality_metrics=[],
        computation_aware=True,
        no_use_ref_len=False,
        no_progress_bar=True,
    )
    scores = SentenceLevelEvaluator.from_args(options).latency
    # The options must also ask for AL and LAAL without the clock: computation_aware makes both forms aware of it.
    assert {name: value for name, value in scores.items() if name.endswith("_CA")} == pytest.approx(
        {name: value for name, value in lagging(unit).items() if name in ("AL_CA", "LAAL_CA")}, abs=0.1
    )
    options.computation_aware = False
    assert SentenceLevelEvaluator.from_args(options).latency == pytest.approx(
        {name: value for name, value in lagging(unit).items() if name in ("AL", "LAAL")}, abs=0.1
    )


@needs_simulstream
@pytest.mark.parametrize("unit", UNITS)
def test_simulstream_reads_every_unit(unit, tmp_path):
    from simulstream.metrics.readers import LogReader
    from simulstream.metrics.stats import NormalizedErasure

    written(tmp_path / "run.jsonl", unit, streams=2)
    config: Any = SimpleNamespace(detokenizer_type="simuleval", latency_unit="spm")
    reader = LogReader(config, str(tmp_path / "run.jsonl"), latency_unit=unit)
    outputs = reader.final_outputs_and_latencies()
    assert list(outputs) == ["talk0", "talk1"]
    for output in outputs.values():
        assert output.text_items(unit) == [emission.text for emission in expected(unit)]
        assert output.ideal_delays == [emission.delay_ms / 1000 for emission in expected(unit)]
        assert output.computational_aware_delays == pytest.approx([e.elapsed_ms / 1000 for e in expected(unit)])
    assert NormalizedErasure().compute(reader) == 0


def logged(folder: Path, stream: Stream, unit: Unit, suffix: str, *, final: bool) -> tuple[Path, TextSoFar]:
    """The log of a stream, an event a second, and the text that it should have."""
    path, text = folder / f"run{suffix}", TextSoFar(unit)
    clock = iter(range(1000, 9999))
    log = open_latency_log(path, unit, final=final)
    log.start("talk.wav", lambda: float(next(clock)))
    received_s = iter(range(1000, 9999))
    for event in stream.events:
        log.write(event)
        if final and isinstance(event, Translation):
            now = TargetText(event.sentence, event.language, event.text, heard_s=event.heard_s)
            text.push(now, float(next(received_s)))
        elif isinstance(event, TargetText) and not final:
            text.push(event, float(next(received_s)))
    log.close()
    return path, text


@needs_simulstream
@pytest.mark.parametrize("final", [False, True], ids=["displayed", "final"])
@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=examples(40))
@given(stream=streams(st.one_of(CHINESE, ENGLISH), languages=["zh"]))
def test_simulstream_reads_drafts_as_displayed_and_as_final(unit, final, stream):
    from simulstream.metrics.readers import LogReader
    from simulstream.metrics.stats import NormalizedErasure

    with tempfile.TemporaryDirectory() as folder:
        path, text = logged(Path(folder), stream, unit, ".jsonl", final=final)
        config: Any = SimpleNamespace(detokenizer_type="simuleval", latency_unit="spm")
        reader = LogReader(config, str(path), latency_unit=unit)
        (output,) = reader.final_outputs_and_latencies().values()
        erasure = NormalizedErasure().compute(reader)
    assert units(output.final_text, unit) == [emission.text for emission in text.emissions()]
    if final:
        assert erasure == 0


@needs_omnisteval
@needs_simulstream
@pytest.mark.parametrize("final", [False, True], ids=["displayed", "final"])
@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=examples(40))
@given(stream=streams(st.one_of(CHINESE, ENGLISH), languages=["zh"], ahead=False))
def test_omnisteval_reads_both_formats_as_displayed_and_as_final(unit, final, stream):
    from omnisteval.data import Word, load_hypothesis_jsonl, load_hypothesis_simulstream

    with tempfile.TemporaryDirectory() as folder:
        path, text = logged(Path(folder), stream, unit, ".log", final=final)
        (words,) = load_hypothesis_jsonl(str(path), unit == "char", ["talk"], fix_emission_ca_flag=False)
        path, _ = logged(Path(folder), stream, unit, ".jsonl", final=final)
        config = Path(folder) / "eval.yaml"
        config.write_text("detokenizer_type: simuleval\nlatency_unit: spm\n", "utf-8")
        (streamed,) = load_hypothesis_simulstream(str(path), str(config), unit == "char", ["talk"])
    assert all(isinstance(word, Word) for word in words)
    assert [(word.text, word.emission_cu, word.emission_ca) for word in words] == [
        (emission.text, emission.delay_ms, emission.elapsed_ms) for emission in text.emissions()
    ]
    # Spaces between words are characters there.
    assert [word.text for word in streamed if word.text.strip()] == [emission.text for emission in text.emissions()]


@needs_suber
def test_suber_reads_subtitle_files(tmp_path):
    from suber.file_readers import SRTFileReader
    from suber.metrics.suber import calculate_SubER

    def subtitles(name, *texts):
        sink = SrtSink(tmp_path / name, SubtitleRules())
        for number, text in enumerate(texts):
            times = (5.0 * number, 5.0 * number + 4)
            for event in (*spoken(number, text, *times), *translated(number, [text], language="en")):
                sink.write(event)
        sink.close()
        return SRTFileReader(str(tmp_path / name)).read()

    said = "The museum, which was built in 1880, is closed on Tuesday; it opens on Wednesday.", "Where is the bank?"
    found, other = subtitles("found.srt", *said), subtitles("other.srt", said[0], "Where is a bank?")
    read = [word.string for subtitle in found for word in subtitle.word_list]
    assert read == " ".join(said).split()
    assert calculate_SubER(found, found) == 0
    breaks = 3  # a line's and two cues' ends count as words
    assert calculate_SubER(found, other) == pytest.approx(100 / (len(read) + breaks), abs=0.01)

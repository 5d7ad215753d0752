"""Play a recording in real time to a running WhisperLiveKit server, and measure its text as ``live`` measures ours.

docs/benchmarks.md says how to install and start the server, docs/measuring.md defines the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pipeline.apps.cli import some_path, some_text, whole_number
from pipeline.apps.options import add_model_arguments, configured
from pipeline.audio.recording import read_audio
from pipeline.bench.live import default_recording, transcripts
from pipeline.bench.measures import LiveMeasures, TextMeasures, measured
from pipeline.bench.offline import offline_sentences
from pipeline.bench.peer_messages import PeerError, as_received, taken_back
from pipeline.bench.peer_play import PeerRun, check_server, play_to_peer
from pipeline.bench.report import delay_table
from pipeline.config import PipelineConfig
from pipeline.errors import AudioError, UsageError
from pipeline.events import Samples, SourceSentence
from pipeline.names import escaped

_NAME = "WhisperLiveKit"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "audio", nargs="?", type=some_path, metavar="FILE",
        help="a recording (default: read speech that comes with the examples); what is said in talk.wav is compared with "
        "talk.txt if there is one",
    )  # fmt: skip
    parser.add_argument(
        "--url", type=_web_socket, default="ws://localhost:8000/asr", metavar="URL",
        help="the server's WebSocket (default: %(default)s); it must take PCM (--pcm-input)",
    )  # fmt: skip
    parser.add_argument(
        "--wait", type=whole_number(1, 86_400), default=120, metavar="S",
        help="seconds that the server has to finish after the end of the audio (default: %(default)s)",
    )  # fmt: skip
    add_model_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _web_socket(text: str) -> str:
    """Argument type: the address of a WebSocket."""
    try:
        parts = urlsplit(some_text(text))
        valid = parts.scheme in ("ws", "wss") and bool(parts.hostname) and parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:  # no number as port, wrong brackets, or an empty or too long label
        valid = False
    if not valid:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a WebSocket address; give one such as ws://localhost:8000/asr"
        )
    return text


def run(options: argparse.Namespace) -> int:
    config = configured(options)
    if config.languages.only_spoken is None:
        raise UsageError(
            f"the source language is {config.languages.source}, but this benchmark needs a single one; name it with "
            "--source"
        )
    path = options.audio or default_recording()
    text = transcripts([path]).get(path)
    samples = read_audio(path)
    asyncio.run(check_server(options.url))
    # First, so that a missing model is reported before anything is played. The models are released again.
    print(f"recognising {escaped(str(path))} as a whole …", file=sys.stderr)
    offline = _recognised(samples, config)
    print(f"playing {escaped(str(path))} to {escaped(options.url)} …", file=sys.stderr)
    played = asyncio.run(play_to_peer(samples, options.url, options.wait))
    result = _Result(str(path), played, _measures(played, config, offline, text))
    print(result.as_json() if options.json else result.as_text())
    if played.failure is not None:
        raise PeerError(played.failure)
    return 0


def _recognised(samples: Samples, config: PipelineConfig) -> list[SourceSentence]:
    """The sentences of the whole recording, which the recogniser alone gives.

    Raises:
        ModelError, DownloadError, UsageError: see ``find_recognizer`` and ``WhisperRecognizer``.
        AudioError: there are none.
    """
    from pipeline.asr.files import find_recognizer
    from pipeline.asr.whisper import WhisperRecognizer
    from pipeline.loading import Models

    recognizer = WhisperRecognizer(config.asr, config.languages.source, find_recognizer(config.asr))
    found = offline_sentences(samples, Models(recognizer, {}), config)
    if not found:
        raise AudioError("no speech was recognised in the recording, so nothing can be compared; give another one")
    return found


def _measures(played: PeerRun, config: PipelineConfig, offline: list[SourceSentence], text: str | None) -> LiveMeasures:
    """The figures of the source text; those of the translation are of an empty text."""
    language = config.languages.source
    received = as_received(played.states, language, played.duration_s)
    return measured(received, (language, language), played.duration_s, offline=offline, transcript=text)


@dataclass(frozen=True)
class _Result:
    """A recording, what the server made of it, and the figures."""

    recording: str
    run: PeerRun
    measures: LiveMeasures

    def as_json(self) -> str:
        run, measures = self.run, self.measures
        record: dict[str, Any] = {"recording": self.recording}
        record |= {name: getattr(run, name) for name in (field.name for field in dataclasses.fields(run))}
        del record["states"]
        record |= {"taken_back": taken_back(run.states), "source": dataclasses.asdict(measures.source)}
        for name in ("displayed_lagging", "committed_lagging"):
            for unknown in ("al_ms", "laal_ms") if record["source"][name] else ():
                del record["source"][name][unknown]
        for name in ("against_offline", "against_text"):
            errors = getattr(measures, name)
            record[name] = None if errors is None else dataclasses.asdict(errors) | {"rate": errors.rate}
        return json.dumps(record, ensure_ascii=False, indent=1)

    def as_text(self) -> str:
        run, measures = self.run, self.measures
        source, offline, text = measures.source, measures.against_offline, measures.against_text
        lines = [f"{escaped(self.recording)}: {run.duration_s:.1f} s", *delay_table([(_NAME, source)], len(_NAME))]
        lines += [
            "",
            f"{'AL+':>6} {'LAAL+':>6}   {'AL+':>6} {'LAAL+':>6}   {'wrong':>6} {'missing':>7} {'extra':>5}  {'of text':>7}  "
            f"{'CPU':>5}  {'MB':>5}  {'waiting':>7}  {'drained':>7}",
            f"{_lagging(source)}   {f'{offline.rate:6.1%} {offline.missing:7} {offline.extra:5}' if offline else ''}  "
            f"{_number(text.rate if text else None, '.1%', 7)}  {_number(run.cpu_share, '.0%', 5)}  "
            f"{_number(run.memory_mb, '.0f', 5)}  {_number(source.waiting_s, '.2f', 7)}  {_number(run.drained_s, '.2f', 7)}",
            *_LEGEND,
        ]
        if back := taken_back(run.states):
            lines.append(
                f"{back} characters that the server had committed changed later; they count as committed from then"
            )
        if run.cpu_share is None:
            lines.append(
                "CPU and memory: the server's process was not found on this machine, or belongs to another user"
            )
        return "\n".join(lines)


_LEGEND = (
    "after: the end of the word; AL+, LAAL+: average lagging by the clock, s, as displayed and as committed; wrong: word error",
    "rate against the recording recognised at once by this project; of text: against NAME.txt; CPU: of all cores, and MB: of",
    "the server; waiting: when the audio ended, the age of the oldest word not committed, s; drained: from then to the end, s",
)


def _number(value: float | None, form: str, width: int) -> str:
    return f"{'–' if value is None else format(value, form):>{width}}"


def _lagging(source: TextMeasures) -> str:
    parts = []
    for scores in (source.displayed_lagging, source.committed_lagging):
        values = (None, None) if scores is None else (scores.computation_aware_al_ms, scores.computation_aware_laal_ms)
        parts.append(" ".join(_number(None if value is None else value / 1000, ".2f", 6) for value in values))
    return "   ".join(parts)

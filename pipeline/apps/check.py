"""python -m pipeline.check: what in subtitle files breaks the rules of layout, one line each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..config import load_config
from ..console import Parser, description_of, some_path, tell
from ..errors import UsageError
from ..media import PRESETS, ReadCue, both_languages, read_cues, timestamp, violations
from ..names import escaped
from .options import add_preset_argument

_EXAMPLES = ("%(prog)s talk.srt", "%(prog)s talk.zh.vtt --preset broadcast-zh", "%(prog)s talk.srt --bilingual")
# An hour of subtitles has 100 kB.
_MOST_BYTES = 50 << 20


def arguments(prog: str = "python -m pipeline.check") -> Parser:
    parser = Parser(
        prog=prog,
        description=f"{description_of(__doc__)} Exits with 0 if there is nothing, 1 if there is something, 2 if a file cannot be "
        "read.",
        examples=_EXAMPLES,
    )
    parser.add_argument("files", nargs="+", type=some_path, metavar="FILE", help="SubRip or WebVTT")
    parser.add_argument("--config", default="en-zh", metavar="NAME|FILE", help="whose [subtitles] are the rules")
    add_preset_argument(parser)
    parser.add_argument(
        "--bilingual", action="store_true", help="each subtitle has two languages, with lines and a speed of their own"
    )
    return parser


def run(argv: list[str], prog: str = "python -m pipeline.check") -> int:
    options = arguments(prog).parse_args(argv)
    rules = load_config(options.config).subtitles
    rules = replace(rules, bilingual=rules.bilingual or options.bilingual, **PRESETS.get(options.preset, {}))
    files = [(path, _read(path)) for path in options.files]
    if rules.bilingual:
        files = [(path, both_languages(cues)) for path, cues in files]
    broken = 0
    for path, cues in files:
        faults = list(violations(cues, rules))
        for fault in sorted(faults, key=lambda fault: fault.cue.line):
            print(f"{escaped(str(path))}:{fault.cue.line}: {timestamp(fault.cue.start_ms / 1000, ',')} {fault.what}")
        broken += len({fault.cue for fault in faults})
    count = sum(len(cues) for _, cues in files)
    tell(f"{broken} of {count} subtitles break a rule" if broken else f"all {count} subtitles keep the rules")
    return 1 if broken else 0


def _read(path: Path) -> list[ReadCue]:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageError(f"{path} is larger than {_MOST_BYTES >> 20} MiB; name a subtitle file")
        return read_cues(data.decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read {path} ({error.strerror}); name a subtitle file") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not in UTF-8 (byte {error.start}); convert it first") from None
    except UsageError as error:
        raise UsageError(str(error) if str(path) in str(error) else f"{path}: {error}") from None

"""A Marian model directory, ready to translate: tokenizer, decoder and generation settings put together."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pipeline.errors import ModelError, UsageError
from pipeline.events import Delta, Transcript
from pipeline.nmt.decoder import Decoder, DecoderState, load_decoder
from pipeline.nmt.layout import find_layout
from pipeline.nmt.search import GenerationOptions, greedy
from pipeline.nmt.sentences import fit, split_sentences
from pipeline.nmt.tokenizer import MarianTokenizer

log = logging.getLogger(__name__)

# ISO 639-3 codes that opus-mt's files use, and the two-letter codes that Whisper uses.
_TWO_LETTERS = {
    "eng": "en",
    "zho": "zh",
    "cmn": "zh",
    "deu": "de",
    "fra": "fr",
    "spa": "es",
    "ita": "it",
    "por": "pt",
    "rus": "ru",
    "jpn": "ja",
    "jap": "ja",
    "kor": "ko",
    "nld": "nl",
    "pol": "pl",
    "ukr": "uk",
    "ara": "ar",
    "tur": "tr",
    "vie": "vi",
}
# Target codes of multilingual models, the preferred first.
_PREFERRED_CODES = {"zh": ("cmn_Hans", "zho_Hans", "cmn", "zho", "zh")}
_SURROGATE = re.compile("[\ud800-\udfff]")
# Scripts without spaces between sentences.
_UNSPACED = {"zh", "ja", "th", "lo", "km", "my"}


class MarianModel:
    """A loaded model. Safe to use from several threads at once; each translation has its own state."""

    def __init__(
        self,
        tokenizer: MarianTokenizer,
        decoder: Decoder,
        generation: GenerationOptions,
        languages: tuple[str | None, str | None],
        max_source_tokens: int,
    ) -> None:
        self.tokenizer, self.decoder, self.generation = tokenizer, decoder, generation
        self.languages = languages
        """(source, target) as the model's files name them in two letters; None where they do not."""
        self.max_source_tokens = max_source_tokens

    @classmethod
    def load(cls, directory: Path, *, suffix: str = "", max_tokens: int = 256, threads: int = 1) -> MarianModel:
        """Open the model in ``directory``; see ``find_layout`` for ``suffix``.

        Raises:
            ModelError: a file is missing, damaged, or does not fit the others.
        """
        layout = find_layout(directory, suffix)
        tokenizer = MarianTokenizer.load(directory)
        config = _read_json(directory / "config.json", required=True)
        generation_config = _read_json(directory / "generation_config.json", required=False)
        if tokenizer.size != layout.vocabulary:
            raise ModelError(
                f"{directory}: vocab.json has {tokenizer.size} entries, the decoder scores {layout.vocabulary}; "
                "the files are of different models: copy them from one checkpoint"
            )
        positions = _integer(config, "max_position_embeddings", 512, directory)
        generation = _generation({**config, **generation_config}, tokenizer, min(max_tokens, positions), directory)
        names = _read_json(directory / "tokenizer_config.json", required=False)
        languages = _two_letters(names.get("source_lang")), _two_letters(names.get("target_lang"))
        return cls(tokenizer, load_decoder(layout, threads), generation, languages, positions)

    def target_code(self, target: str) -> str | None:
        """The code that a multilingual model wants before the source for ``target``; None for a bilingual model.

        Raises:
            UsageError: the model is multilingual and does not know the target.
        """
        codes: list[str] = self.tokenizer.target_codes
        if not codes:
            return None
        candidates: tuple[str, ...] = (
            *_PREFERRED_CODES.get(target, ()),
            target,
            *(long for long, two in _TWO_LETTERS.items() if two == target),
        )
        for code in candidates:
            if code in codes:
                return code
        raise UsageError(f"this model does not translate into {target!r}; its targets are {', '.join(codes)}")

    def check_languages(self, source: str, target: str) -> None:
        """Raise UsageError where the model's files say that it does another pair."""
        for asked, has, side in ((source, self.languages[0], "from"), (target, self.languages[1], "into")):
            if has is not None and asked != has and not (side == "into" and self.tokenizer.target_codes):
                raise UsageError(
                    f"the translation model translates from {self.languages[0] or 'an unnamed language'} into "
                    f"{self.languages[1] or 'an unnamed language'}, not {side} {asked}; "
                    "choose the languages with --source and --target, or another model with --nmt"
                )
        self.target_code(target)

    def stream(
        self,
        transcript: Transcript,
        target: str,
        on_start: Callable[[DecoderState], None] | None = None,
    ) -> Iterator[Delta]:
        """Translate a transcript sentence by sentence, yielding one delta a target token.

        The deltas' texts, joined, are the translation. The last delta of a sentence is its end token's; the last of all
        is ``final``. A blank transcript yields nothing.
        """
        code = self.target_code(target)

        def fits(text: str) -> bool:
            return len(self.tokenizer.encode(text, code)) <= self.max_source_tokens

        # A lone surrogate is no character and cannot be encoded.
        text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", transcript.text)
        sentences = [part for whole in split_sentences(text, transcript.language) for part in fit(whole, fits)]
        total = max(1, sum(map(len, sentences)))
        at = 0
        for index, sentence in enumerate(sentences):
            # Without word times, a sentence's share of the segment's time is its share of the letters.
            duration = transcript.end_s - transcript.start_s
            start_s = transcript.start_s + duration * at / total
            at += len(sentence)
            end_s = transcript.start_s + duration * at / total
            detokenizer = self.tokenizer.detokenizer()
            separator = " " if index and target not in _UNSPACED else ""
            for token in greedy(self.decoder, self.tokenizer.encode(sentence.strip(), code), self.generation, on_start):
                text = detokenizer.push(token.id)
                if token.last:
                    text += detokenizer.flush()
                if text:
                    text, separator = separator + text, ""
                yield Delta(
                    segment_id=transcript.segment_id,
                    sentence=index,
                    start_s=start_s,
                    end_s=end_s,
                    text=text,
                    log_probability=token.log_probability,
                    token=token.id,
                    source=sentence.strip(),
                    end_of_sentence=token.last,
                    final=token.last and index == len(sentences) - 1,
                    truncated=token.truncated,
                )

    def translate(self, text: str, *, source: str = "en", target: str = "zh") -> str:
        """The whole translation of ``text`` at once."""
        transcript = Transcript(0, 0.0, 0.0, text, source)
        return "".join(delta.text for delta in self.stream(transcript, target))


def _generation(
    settings: dict[str, Any], tokenizer: MarianTokenizer, max_tokens: int, directory: Path
) -> GenerationOptions:
    pad = _integer(settings, "pad_token_id", tokenizer.pad_token, directory)
    length = _integer(settings, "max_length", 512, directory)
    forced = settings.get("forced_eos_token_id")
    found = settings.get("bad_words_ids") or []
    bad: list[Any] = found if isinstance(found, list) else [found]
    words = [
        word for word in bad if isinstance(word, list) and all(type(i) is int and 0 <= i < tokenizer.size for i in word)
    ]
    if len(words) != len(bad):
        raise ModelError(
            f"{directory}/generation_config.json: bad_words_ids must be lists of ids below {tokenizer.size}"
        )
    return GenerationOptions(
        start_token=_integer(settings, "decoder_start_token_id", pad, directory),
        end_token=_integer(settings, "eos_token_id", tokenizer.end_token, directory),
        pad_token=pad,
        bad_words=tuple(tuple(word) for word in words if word),
        forced_end_token=forced if type(forced) is int else None,
        # transformers' max_length counts the start token, which is not generated.
        max_tokens=max(1, min(max_tokens, length - 1)),
    )


def _read_json(path: Path, *, required: bool) -> dict[str, Any]:
    if not path.is_file() and not required:
        return {}
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"{path.parent} lacks {path.name}; copy it from the checkpoint the model was exported from"
        ) from None
    except (ValueError, OSError, RecursionError) as error:
        raise ModelError(f"{path} is not readable JSON ({error}); fetch it again") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} must hold a JSON object; fetch it again")
    return value


def _integer(settings: dict[str, Any], key: str, default: int, directory: Path) -> int:
    value = settings.get(key, default)
    if type(value) is not int or value < 0:
        raise ModelError(f"{directory}: {key} is {value!r}; expected a whole number; fetch the settings again")
    return value


def _two_letters(code: object) -> str | None:
    if not isinstance(code, str) or not code:
        return None
    base = code.split("_")[0].split("-")[0].lower()
    return _TWO_LETTERS.get(base, base if len(base) == 2 else None)

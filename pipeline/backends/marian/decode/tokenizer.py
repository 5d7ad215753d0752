"""Marian's tokenizer: SentencePiece pieces mapped through vocab.json, and incremental detokenisation."""

from __future__ import annotations

import codecs
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from ....errors import ModelError

_SPECIAL = ("</s>", "<unk>", "<pad>")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_TARGET_CODE = re.compile(r">>([^<>]+)<<")
_WORD = re.compile(r"(?<![\w.@/'’-])[^\W\d_]{2,}(?![\w@/]|\.\w)")
_CAPITALISED = re.compile(r"(?<!\w)[À-Ž](?:[^\WA-Z]*)(?!\w)")
# Of log-probabilities. Of 7,077 words of Tatoeba's English sentences it changes 309: names, days, months and nationalities, and
# about 60 others (Bay, Tiger, Queen).
_MARGIN = 2.0
_PLAIN_SIGNS = str.maketrans("“”„«»‘’‚‐‑‒–—―−", '"""""\'\'\'-------')
_PLAIN_LETTERS = str.maketrans(
    dict(zip("łŁøØđĐðÐıħĦŧŦŋŊĸſ", "lLoOdDdDihHtTnNks", strict=True))
    | {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "þ": "th", "Þ": "Th"}
)
RESERVED = re.compile(r"\0?__[a-z]+\d*__")
"""A piece of newer Firefox models that stands for no text, such as __source__."""
CHARACTERS = 1 << 20
"""Target tokens from this number on are characters that the vocabulary lacks: CHARACTERS + ord(character)."""
UNKNOWN = 1
"""Marian's token for what the vocabulary lacks; a decoder is fed it for such a character."""
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""SentencePiece writes spaces as this character."""


class MarianTokenizer:
    """Source text → ids, target ids → text.

    SentencePiece's own ids are never used: a piece is looked up in ``vocab.json`` (or ``target_vocab.json``).
    """

    def __init__(
        self, source: Path, target: Path, vocabulary: dict[str, int], target_vocabulary: dict[str, int]
    ) -> None:
        self._source = _load_spm(source)
        self._vocabulary = vocabulary
        self._pieces = {index: piece for piece, index in target_vocabulary.items()}
        joint = target_vocabulary is vocabulary
        self._source_table = self._pieces if joint else {index: piece for piece, index in vocabulary.items()}
        self._special = {target_vocabulary[token] for token in _SPECIAL if token in target_vocabulary}
        self.end_token = vocabulary["</s>"]
        self.unknown_token = vocabulary["<unk>"]
        self.pad_token = vocabulary["<pad>"]
        self.size = len(vocabulary)
        self.target_size = len(target_vocabulary)
        self.target_codes = sorted(match.group(1) for token in vocabulary if (match := _TARGET_CODE.fullmatch(token)))
        """Target codes that a multilingual model accepts before the source, such as cmn_Hans."""
        self._target_file = target
        self._source_file = source
        self._forms: dict[str, str] = {}
        """What is fed for each character that is not ASCII."""
        if target != source:
            # Load target.spm only to detect damage. Joining pieces does not need it, and it takes 8 MB for opus-mt.
            _load_spm(target)

    @classmethod
    def load(cls, directory: Path) -> MarianTokenizer:
        """Read source.spm, target.spm, vocab.json and, if present, target_vocab.json."""
        names = ("source.spm", "target.spm", "vocab.json")
        if missing := [name for name in names if not (directory / name).is_file()]:
            raise ModelError(
                f"{directory} lacks {', '.join(missing)}; copy them from the checkpoint the model was exported from"
            )
        vocabulary = _load_vocabulary(directory / "vocab.json", _SPECIAL)
        separate = directory / "target_vocab.json"
        target_vocabulary = _load_vocabulary(separate, ("</s>",)) if separate.is_file() else vocabulary
        return cls(directory / "source.spm", directory / "target.spm", vocabulary, target_vocabulary)

    @classmethod
    def from_pieces(cls, source: Path, target: Path) -> MarianTokenizer:
        """Read vocabularies that are SentencePiece models themselves: ids are those of the pieces, <pad> comes after them."""
        table = _pieces_of(source)
        return cls(source, target, table, table if target == source else _pieces_of(target))

    def encode(self, text: str, target_code: str | None = None) -> list[int]:
        """Return the ids of ``text`` and the end token, preceded by ``>>target_code<<`` if given."""
        prefix = [self._vocabulary[f">>{target_code}<<"]] if target_code else []
        pieces = self.source_pieces(text)
        return [*prefix, *(self._vocabulary.get(piece, self.unknown_token) for piece in pieces), self.end_token]

    def without_unknown_signs(self, text: str) -> str:
        """Replace signs that the vocabulary lacks by similar ones that it knows.

        Accented letters become their base letters: a model reads "Muller" better than "M<unk>ller". A word that is known with a
        small letter gets that instead (À noite). Typographic quotes and dashes become plain ones. Letters of other scripts are kept.
        """
        return text if text.isascii() else "".join(map(self._known_form, _CAPITALISED.sub(self._small, text)))

    def _small(self, word: re.Match[str]) -> str:
        small = word.group().lower()
        return small if len(self.source_pieces(small)) == 1 and not self.knows(word.group()) else word.group()

    def _known_form(self, character: str) -> str:
        if character.isascii():
            return character
        if character not in self._forms:
            base = unicodedata.normalize("NFD", character)[0].translate(_PLAIN_SIGNS).translate(_PLAIN_LETTERS)
            usable = base != character and base.isascii() and not self.knows(character) and self.knows(base)
            self._forms[character] = base if usable else character
        return self._forms[character]

    def knows(self, text: str) -> bool:
        """Whether the vocabulary has all signs of a text."""
        return all(piece in self._vocabulary for piece in self.source_pieces(text))

    def with_capitals(self, text: str) -> str:
        """Write a text that is all in small letters with capitals in the words that the vocabulary knows better with one.

        These are mostly names. A student translates "tom" as a tone, and "mary" as nobody.
        """
        if text != text.lower() or text == text.upper():
            return text

        def weight(word: str) -> float:
            index = self._source.piece_to_id(SPACE + word)
            # An unknown word is at most as frequent as the rarest piece, which is the last one.
            return float(self._source.get_score(len(self._source) - 1 if self._source.is_unknown(index) else index))

        def cased(match: re.Match[str]) -> str:
            word, capital = match.group(), match.group().capitalize()
            return capital if weight(capital) > weight(word) + _MARGIN else word

        return _WORD.sub(cased, text)

    def source_pieces(self, text: str) -> list[str]:
        """The pieces of ``text``. One that the vocabulary lacks is as it stands in the normalised text."""
        pieces: list[str] = self._source.encode(text, out_type=str)
        return pieces

    def target_spellings(self, text: str, *, apart: bool) -> Iterator[tuple[int, ...]]:
        """Ways to write ``text`` in target tokens, the tokenizer's own first; none if the vocabulary cannot write it.

        ``apart``: whether it begins with a space. Without, a tokenizer that was trained on words with spaces may know no
        such beginning; then the characters are written one by one.
        """
        if not text.strip():
            return
        whole: list[str] = self._target.encode(text, out_type=str)
        letters = list(text.replace(" ", SPACE))
        if apart:
            ways = [whole, [SPACE + letters[0], *letters[1:]], [SPACE, *letters]]
        else:
            begun = [whole[0].removeprefix(SPACE), *whole[1:]]
            ways = [begun if begun[0] else begun[1:], letters]
        for pieces in ways:
            ids = [self._target_ids.get(piece) for piece in pieces]
            if None not in ids:
                yield tuple(index for index in ids if index is not None)

    def target_tokens(self, text: str) -> list[int]:
        """The target tokens of ``text``; UNKNOWN for what the vocabulary lacks."""
        return [self._target_ids.get(piece, UNKNOWN) for piece in self._target.encode(text, out_type=str)]

    def source_piece(self, index: int) -> str:
        """The piece of a source token, with SPACE for spaces."""
        return self._source_table.get(index, "")

    def target_piece(self, index: int) -> str:
        """The piece of a target token, with SPACE for spaces; empty for special tokens."""
        return "" if index in self._special else _piece(self._pieces, index)

    @cached_property
    def _target(self) -> Any:
        return self._source if self._target_file == self._source_file else _load_spm(self._target_file)

    @cached_property
    def _target_ids(self) -> dict[str, int]:
        return {piece: index for index, piece in self._pieces.items()}

    @property
    def target_ids(self) -> set[int]:
        """Ids that can occur in target sentences: the pieces of target.spm and the special tokens."""
        pieces = {self._target.id_to_piece(index) for index in range(len(self._target))}
        return {index for index, piece in self._pieces.items() if piece in pieces} | self._special

    @property
    def target_characters(self) -> set[int]:
        """Ids of target pieces that are one character or one byte; any word can be spelled with them."""
        return {i for i in self.target_ids if len(self._pieces[i].strip(SPACE)) < 2 or _BYTE.fullmatch(self._pieces[i])}

    def target_frequencies(self, lines: Iterable[str]) -> Counter[int]:
        """Count each target id in ``lines`` of the target language."""
        pieces = (piece for line in lines for piece in self._target.encode(line, out_type=str))
        return Counter(self._target_ids[piece] for piece in pieces if piece in self._target_ids)

    def pseudo_text(self, sentences: int) -> list[str]:
        """Generate lines of 4 to 16 source pieces, sampled with the tokenizer's own probabilities.

        A substitute for real source text if none is available.
        """
        rng = np.random.default_rng(0)
        kept = [
            i for i in range(len(self._source)) if not self._source.is_control(i) and not self._source.is_unknown(i)
        ]
        chances = np.exp(np.array([self._source.get_score(index) for index in kept], np.float64))
        lines = (rng.choice(kept, rng.integers(4, 17), p=chances / chances.sum()) for _ in range(sentences))
        return [self._source.decode([int(index) for index in line]) for line in lines]

    def is_plain(self, index: int) -> bool:
        """Whether a target token contains no letter: only digits, punctuation or part of a character."""
        return not any(character.isalpha() for character in _piece(self._pieces, index))

    def is_reserved(self, index: int) -> bool:
        """Whether a target token stands for no text; the end of a sentence does."""
        piece = self._pieces.get(index, "")
        return index in self._special - {self.end_token} or RESERVED.fullmatch(piece) is not None

    def is_word(self, index: int) -> bool:
        """Whether a source token is known and contains a letter or digit."""
        return index != self.unknown_token and any(map(str.isalnum, self._source_table.get(index, "")))

    def detokenizer(self) -> IncrementalDetokenizer:
        return IncrementalDetokenizer(self._pieces, self._special)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of a complete id sequence, without special tokens."""
        detokenizer = self.detokenizer()
        return "".join([detokenizer.push(index) for index in ids] + [detokenizer.flush()])


class IncrementalDetokenizer:
    """Converts target ids to text one by one.

    The concatenated deltas equal the text detokenised at once, and no delta ends within a character.
    """

    def __init__(self, pieces: dict[int, str], special: set[int]) -> None:
        self._pieces, self._special = pieces, special
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._spaces = ""  # held back, so that the text does not end with a space
        self._begun = False

    def push(self, index: int) -> str:
        """Return the text that this token completes; empty for special tokens and partial characters."""
        if index in self._special:
            return ""
        piece = _piece(self._pieces, index)
        if match := _BYTE.fullmatch(piece):
            text = self._bytes.decode(bytes([int(match.group(1), 16)]))
        else:
            text = self._bytes.decode(b"", final=True) + piece.replace(SPACE, " ")
            self._bytes.reset()
        return self._emit(text)

    def flush(self) -> str:
        """Return the replacement of an incomplete byte sequence at the end, if there is one."""
        return self._emit(self._bytes.decode(b"", final=True))

    def _emit(self, text: str) -> str:
        if not self._begun:
            text = text.lstrip(" ")
            self._begun = bool(text)
        text, self._spaces = self._spaces + text, ""
        kept = text.rstrip(" ")
        self._spaces = text[len(kept) :]
        return kept


def _piece(pieces: dict[int, str], index: int) -> str:
    return chr(index - CHARACTERS) if index >= CHARACTERS else pieces.get(index, "")


def _load_spm(path: Path) -> Any:
    try:
        if not (content := path.read_bytes()):
            raise RuntimeError("the file is empty")
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        ids = list(range(len(processor)))
        processor.id_to_piece(ids)  # raises if a damaged piece is not valid UTF-8
        if not np.isfinite(processor.get_score(ids)).all():
            raise RuntimeError("a piece has a score that is not a finite number")
        return processor
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is not a SentencePiece model ({str(error).strip()[:80]}); fetch it again") from None


def _pieces_of(path: Path) -> dict[str, int]:
    """The id of each piece. One that the training of newer models reserves has a name that no text can have."""
    processor = _load_spm(path)
    pieces = processor.id_to_piece(list(range(len(processor))))
    table = {f"\0{piece}" if RESERVED.fullmatch(piece) else piece: index for index, piece in enumerate(pieces)}
    if missing := [token for token in ("</s>", "<unk>") if token not in table]:
        raise ModelError(f"{path} has no {', '.join(missing)}: not the vocabulary of a Marian model")
    return table | {"<pad>": len(table)}


def _load_vocabulary(path: Path, needed: tuple[str, ...]) -> dict[str, int]:
    try:
        table = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise ModelError(f"{path} is not readable JSON ({error}); fetch it again") from None
    if not isinstance(table, dict) or not all(type(index) is int for index in table.values()):
        raise ModelError(f"{path} must map pieces to integer ids; fetch it again")
    if sorted(table.values()) != list(range(len(table))):
        raise ModelError(
            f"{path} must give its {len(table)} pieces the ids 0 to {len(table) - 1}, each once; fetch it again"
        )
    if missing := [token for token in needed if token not in table]:
        raise ModelError(f"{path} has no {', '.join(missing)}: not a Marian vocabulary")
    return table

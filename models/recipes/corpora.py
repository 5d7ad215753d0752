"""What each model trains on and is tested on: Tatoeba's pairs and the phrasebook's, with nothing in common."""

from __future__ import annotations

import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from heldout import SENTENCES
from phrasebook import corpus, draws, numbers, prices
from tatoeba import Pair, near_forms, read_pairs, split

PHRASES = 20_000
TEST_PHRASES = 300
LONGEST = 10  # words of a sentence that the recogniser learns
VOCABULARY = 15_000  # the most frequent words of English are looked through for what it must learn besides
RARE = 20
WORDS_FROM = "those frequent in wordfreq's list of English (data CC BY-SA 4.0) and in SCOWL's American word list"
EXAMPLES_FROM = "WordNet 3.0's examples of its words' use (© 2006 Princeton University, the WordNet licence)"
EVERYDAY_FROM = (
    "the sentences of `models/recipes/everyday.txt`, which a language model wrote for this (the project's licence)"
)
_DICTIONARY = Path("/usr/share/dict/american-english")
_WORDNET = Path("/usr/share/wordnet")
_EVERYDAY = Path(__file__).with_name("everyday.txt")
_EXAMPLE = re.compile(r'"([^"]+)"')
_COARSE = re.compile("bitch|cock|cunt|dick|fag|fuck|nigg|porn|rape|shit|slut|whore")  # not to be taught besides
_WORD = re.compile(r"(?<![\w'-])[A-Za-z]+(?![\w'-])")
_SPEAKABLE = re.compile(r"[A-Za-z][A-Za-z ,.'?!-]*")


@cache
def held_out_phrases() -> tuple[Pair, ...]:
    """Sentences that training does not miss: of templates so rich that twenty thousand draws hardly repeat one."""
    repeats = Counter(english for english, _ in draws(20_000, seed=9))
    common = {english for english, count in repeats.items() if count > 1}
    return tuple(corpus(TEST_PHRASES, seed=3, exclude=SENTENCES | common))


def training_phrases(count: int) -> list[Pair]:
    """Drawn by template, so that templates with few combinations come as often as those with many."""
    return draws(count, seed=2, exclude=SENTENCES | {english for english, _ in held_out_phrases()})


def translators_phrases() -> list[Pair]:
    """For training translators: the phrasebook as the recogniser has it, and its numbers, each in several sentences."""
    kept = SENTENCES.union(english for english, _ in (*held_out_phrases(), *prices()))
    return [pair for pair in training_phrases(PHRASES) + numbers(seed=5) if pair[0] not in kept]


def unseen_numbers() -> list[Pair]:
    """Other sentences with every number, none of them in ``translators_phrases``."""
    learned = {english for english, _ in translators_phrases()}
    return [pair for pair in dict.fromkeys(numbers(seed=6)) if pair[0] not in learned]


def translation_pairs(path: Path, direction: str) -> tuple[list[Pair], list[Pair], list[Pair], list[Pair]]:
    """(source, target) pairs for training, of Tatoeba and of the phrasebook, then for testing, likewise."""
    training, test = split(read_pairs(path))
    sets = (training, apart(translators_phrases(), test), test, list(held_out_phrases()))
    if direction == "zh-en":
        sets = tuple([(chinese, english) for english, chinese in pairs] for pairs in sets)
    return sets


def apart(phrases: list[Pair], test: list[Pair]) -> list[Pair]:
    """Those that are not nearly a sentence of Tatoeba's ``test``: its own training has none such."""
    near = {form for english, _ in test for form in near_forms(english)}
    return [pair for pair in phrases if near.isdisjoint(near_forms(pair[0]))]


def speakable(pairs: list[Pair]) -> list[Pair]:
    """Different English sentences of up to ``LONGEST`` words, without digits and symbols, each with one translation."""
    found: dict[str, str] = {}
    for english, chinese in pairs:
        if _SPEAKABLE.fullmatch(english) and len(english.split()) <= LONGEST:
            found.setdefault(english, chinese)
    return list(found.items())


def crossed(sentences: list[str], held_out: list[str], count: int, seed: int) -> list[str]:
    """New sentences: the beginning of one and the end of another that have two words in a row in common.

    So every three words in a row are from a real one, but for case. Fewer than ``count`` where ``sentences`` are too
    few; none is nearly one of ``held_out``.
    """
    rng = random.Random(seed)
    long_enough = [words for words in map(str.split, sentences) if len(words) >= 3]
    ends: defaultdict[tuple[str, str], list[list[str]]] = defaultdict(list)
    for words in long_enough:
        for at in range(1, len(words) - 1):
            ends[words[at - 1].lower(), words[at].lower()].append(words[at + 1 :])

    def draws() -> Iterator[str]:
        for _ in range(20 * count if long_enough else 0):
            words = rng.choice(long_enough)
            at = rng.randrange(1, len(words) - 1)
            new = [*words[: at + 1], *rng.choice(ends[words[at - 1].lower(), words[at].lower()])]
            if words[-1].endswith("?") == new[-1].endswith("?") and len(new) <= LONGEST:
                yield " ".join(new)

    return _new(draws(), sentences, held_out, count)


def _new(draws: Iterator[str], sentences: list[str], held_out: list[str], count: int) -> list[str]:
    """The first ``count`` of ``draws`` that differ, are none of ``sentences``, and not nearly one of ``held_out``."""
    known = set(sentences)
    near = {form for sentence in held_out for form in near_forms(sentence)}
    found: dict[str, None] = {}
    for text in draws:
        if text not in known and near.isdisjoint(near_forms(text)):
            found[text] = None
        if len(found) == count:
            break
    return list(found)


def varied(path: Path, texts: list[str], seed: int) -> tuple[list[str], list[str]]:
    """Half as many sentences as ``texts``, crossed from them, and two thirds as many with rarer words.

    None is nearly one that any model is tested on.
    """
    tests = tested(path)
    rare = reworded(texts, rarer_words(texts), tests, len(texts) * 2 // 3, seed)
    return crossed(texts, tests, len(texts) // 2, seed), rare


def tested(path: Path) -> list[str]:
    """The English sentences that any model is tested on."""
    return [*(english for english, _ in (*split(read_pairs(path))[1], *held_out_phrases())), *SENTENCES]


def rarer_words(texts: list[str]) -> list[str]:
    """Everyday English words, most frequent first, that ``texts`` have fewer than ``RARE`` times; names are capitalised."""
    if not _DICTIONARY.exists():
        sys.exit(f"no such file: {_DICTIONARY}. Install Debian's word list: apt-get install wamerican")
    from wordfreq import top_n_list

    spelled: defaultdict[str, set[str]] = defaultdict(set)
    for word in _DICTIONARY.read_text("utf-8").split():
        spelled[word.lower()].add(word)
    counts = Counter(word.lower() for text in texts for word in _WORD.findall(text))
    rare = [word for word in top_n_list("en", VOCABULARY) if counts[word] < RARE and len(word) > 2]
    found = [form for word in rare if len(spelled[word]) == 1 and not _COARSE.match(word) for form in spelled[word]]
    return [word for word in found if _WORD.fullmatch(word) and not word.isupper()]


def reworded(sentences: list[str], words: list[str], held_out: list[str], count: int, seed: int) -> list[str]:
    """New sentences, of sense or none: one or two words of a sentence replaced by ``words`` that end alike.

    Names for names; the most frequent words and a sentence's first stay. Each of ``words`` comes as often as its kind
    allows. Fewer than ``count`` where ``sentences`` are too few; none is nearly one of ``held_out``.
    """
    rng = random.Random(seed)
    queues: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        queues[_kind(word)].append(word)
    turns = {kind: _in_turn(queue, rng) for kind, queue in queues.items()}
    common = Counter(word for text in sentences for word in _WORD.findall(text))
    stays = {word for word, _ in common.most_common(200)}

    def draws() -> Iterator[str]:
        for _ in range(5 * count if sentences and words else 0):
            text = rng.choice(sentences)
            places = [m for m in _WORD.finditer(text) if m.start() and len(m[0]) > 2 and m[0] not in stays]
            places = [m for m in places if _kind(m[0]) in turns]
            for m in sorted(rng.sample(places, min(len(places), 2)), key=lambda m: -m.start()):
                text = text[: m.start()] + next(turns[_kind(m[0])]) + text[m.end() :]
            yield text

    return _new(draws(), sentences, held_out, count)


def examples(texts: list[str], held_out: list[str], count: int, seed: int) -> list[str]:
    """Up to ``count`` of WordNet's examples of three to ``LONGEST`` words, each as one of Tatoeba's sentences is written.

    None is one of ``texts`` or nearly one of ``held_out``.
    """
    if not _WORDNET.is_dir():
        sys.exit(f"no such folder: {_WORDNET}. Install WordNet's files: apt-get install wordnet-base")
    lines = [line for path in sorted(_WORDNET.glob("data.*")) for line in path.read_text("utf-8").splitlines()]
    found = [told.strip() for line in lines for told in _EXAMPLE.findall(line.partition(" | ")[2])]
    written = [f"{told[0].upper()}{told[1:]}" + ("" if told[-1] in ".?!" else ".") for told in found if told]
    fit = [told for told in written if _SPEAKABLE.fullmatch(told) and 3 <= len(told.split()) <= LONGEST]
    fit = [told for told in fit if not any(map(_COARSE.match, told.lower().split()))]
    return _new(iter(random.Random(seed).sample(fit, len(fit))), texts, held_out, count)


def everyday(texts: list[str], held_out: list[str], seed: int) -> list[str]:
    """The sentences of ``everyday.txt``, in an order drawn; none is one of ``texts`` or nearly one of ``held_out``."""
    lines = _EVERYDAY.read_text("utf-8").splitlines()
    fit = [line for line in lines if _SPEAKABLE.fullmatch(line) and len(line.split()) <= LONGEST]
    fit = [line for line in fit if not any(map(_COARSE.match, line.lower().split()))]
    return _new(iter(random.Random(seed).sample(fit, len(fit))), texts, held_out, len(fit))


def _kind(word: str) -> str:
    return "name" if word[0].isupper() else next((end for end in ("ing", "ed", "ly", "s") if word.endswith(end)), "")


def _in_turn(words: list[str], rng: random.Random) -> Iterator[str]:
    while True:
        yield from rng.sample(words, len(words))


def spoken_pairs(path: Path, phrases: int) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """What the recogniser hears, as (English, Chinese): for training, then for testing of Tatoeba and the phrasebook."""
    training, test = split(read_pairs(path))
    train = speakable(training) + apart(training_phrases(phrases), test)
    random.Random(4).shuffle(train)
    return train, speakable(test), list(held_out_phrases())
